package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite what these tests compare with")

// allowance counts, for each retired word, the identifiers that still have it.
const allowance = "glossary-allowance.txt"

const allowanceHead = `# How many declared identifiers still have a retired word of glossary.md.
# A number may only shrink. After a rename: go test ./docs -run RetiredWords -update
`

// Rule: no declared identifier has a word that glossary.md retires, but for those that had it
// when the glossary was written. Their number may only shrink.
func TestRetiredWordsAreNotUsed(t *testing.T) {
	retired := retiredWords(t)
	used := make(map[string][]string)
	walkGo(t, func(file string) {
		for _, name := range declared(t, file) {
			for _, word := range camelWords(name) {
				if retired[word] != "" {
					used[word] = append(used[word], fmt.Sprintf("%s in %s", name, file))
				}
			}
		}
	})
	allowed := readAllowance(t)
	if *update {
		writeAllowance(t, used, allowed)
		return
	}
	for word, names := range used {
		if len(names) > allowed[word] {
			t.Errorf("%q is retired: glossary.md says %s. %d identifiers have it, %d may:\n\t%s",
				word, retired[word], len(names), allowed[word], strings.Join(names, "\n\t"))
		}
	}
}

// Rule: the check finds a retired word in every kind of declaration, at any place in a name.
func TestCamelWords(t *testing.T) {
	for name, want := range map[string][]string{
		"hasten":          {"hasten"},
		"EventHastened":   {"event", "hastened"},
		"HTTPRider":       {"http", "rider"},
		"newURLRider2":    {"new", "url", "rider2"},
		"Example_deadJob": {"example", "dead", "job"},
		"IDs":             {"ids"},
	} {
		require.Equal(t, want, camelWords(name), name)
	}
	file := filepath.Join(t.TempDir(), "a.go")
	source := `package a
import alias "fmt"
type T[P any] struct{ field int }
const c = 1
var v = alias.Sprint(c)
func (r T[P]) method(in int) (out int) {
label:
	for i, j := range []int{in} { short := i + j; _ = short; continue label }
	return
}`
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	require.ElementsMatch(t, []string{"alias", "T", "P", "field", "c", "v", "r", "method", "in", "out", "label", "i", "j", "short"}, declared(t, file))
}

// retiredWords reads the glossary: each retired word in code font, and the word to use.
func retiredWords(t *testing.T) map[string]string {
	t.Helper()
	retired := make(map[string]string)
	for line := range strings.Lines(read(t, "glossary.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 {
			continue
		}
		for _, span := range codeSpan.FindAllString(cells[2], -1) {
			word := strings.Trim(span, "`")
			require.Equal(t, strings.ToLower(word), word)
			retired[word] = strings.TrimSpace(cells[1])
		}
	}
	require.NotEmpty(t, retired)
	return retired
}

// declared returns the identifiers that a file declares. What it uses of other packages is
// theirs to name.
func declared(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	add := func(idents ...*ast.Ident) {
		for _, ident := range idents {
			if ident != nil && ident.Name != "_" {
				names = append(names, ident.Name)
			}
		}
	}
	assigned := func(exprs ...ast.Expr) {
		for _, expr := range exprs {
			if ident, ok := expr.(*ast.Ident); ok {
				add(ident)
			}
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.Field:
			add(n.Names...)
		case *ast.LabeledStmt:
			add(n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				assigned(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				assigned(n.Key, n.Value)
			}
		}
		return true
	})
	return names
}

// camelWords splits an identifier: "newHTTPServer" is new, http, server.
func camelWords(name string) (words []string) {
	for part := range strings.SplitSeq(name, "_") {
		runes, begin := []rune(part), 0
		for i := range runes {
			if i == 0 || !unicode.IsUpper(runes[i]) {
				continue
			}
			// An upper-case letter begins a word, unless it is amid an acronym or its plural (IDs).
			next := i + 1
			amid := unicode.IsUpper(runes[i-1]) && (next == len(runes) || !unicode.IsLower(runes[next]) ||
				runes[next] == 's' && (next+1 == len(runes) || unicode.IsUpper(runes[next+1])))
			if !amid {
				words = append(words, strings.ToLower(string(runes[begin:i])))
				begin = i
			}
		}
		if begin < len(runes) {
			words = append(words, strings.ToLower(string(runes[begin:])))
		}
	}
	return words
}

func readAllowance(t *testing.T) map[string]int {
	t.Helper()
	allowed := make(map[string]int)
	for line := range strings.Lines(read(t, allowance)) {
		word, count, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		n, err := strconv.Atoi(count)
		require.NoError(t, err, line)
		allowed[word] = n
	}
	return allowed
}

// writeAllowance lowers the numbers to what is used. It raises none.
func writeAllowance(t *testing.T, used map[string][]string, allowed map[string]int) {
	t.Helper()
	var text strings.Builder
	text.WriteString(allowanceHead)
	for _, word := range slices.Sorted(maps.Keys(used)) {
		if n := min(len(used[word]), allowed[word]); n > 0 {
			fmt.Fprintln(&text, word, n)
		}
	}
	require.NoError(t, os.WriteFile(allowance, []byte(text.String()), 0o644))
}
