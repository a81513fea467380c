package scenario

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scenarioName matches the name of a scenario's test, with its number.
var scenarioName = regexp.MustCompile(`^Scenario(\d\d)[A-Z]`)

// Rule: workflows promise 45 scenarios. Each has one test or several that state the rule they
// guard.
func TestEveryScenarioHasATest(t *testing.T) {
	const scenarios = 45
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := make(map[int]bool)
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || !strings.HasPrefix(fn.Name.Name, "Scenario") {
				continue
			}
			name := scenarioName.FindStringSubmatch(fn.Name.Name)
			require.NotNil(t, name, "%s: %s has no number of a scenario", file, fn.Name.Name)
			number, err := strconv.Atoi(name[1])
			require.NoError(t, err)
			require.True(t, 1 <= number && number <= scenarios, "%s: there is no scenario %d", file, number)
			require.True(t, strings.HasPrefix(fn.Doc.Text(), "Rule: "), "%s: %s does not say its rule", file, fn.Name.Name)
			found[number] = true
		}
	}
	for number := 1; number <= scenarios; number++ {
		if !found[number] {
			t.Errorf("scenario %d has no test", number)
		}
	}
}
