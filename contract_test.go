package pawl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/queuetest"
)

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	goTestName = regexp.MustCompile(`^([a-z/]+)\.((?:Test|Example|Fuzz)\w+)$`)
	goTestFunc = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w+)\(`)
)

// tableCells returns the code spans of one column, counted from 0, of all tables in a
// file; of the last one when the column is -1.
func tableCells(t *testing.T, path string, column int) (spans []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !ok {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		at := column
		if at < 0 {
			at += len(cells)
		}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[at], -1) {
			spans = append(spans, span[1])
		}
	}
	return spans
}

// casesOf are the cases of the conformance suite by their full names.
func casesOf(t *testing.T) map[string]bool {
	t.Helper()
	cases := make(map[string]bool)
	for _, c := range queuetest.Cases() {
		name := c.Group + "/" + c.Name
		require.False(t, cases[name], "two cases are called %q", name)
		require.NotEmpty(t, c.Rule, name)
		cases[name] = true
	}
	return cases
}

// goTestsIn are the tests, examples and fuzz targets of one folder.
func goTestsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	found := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range goTestFunc.FindAllSubmatch(text, -1) {
			found[string(match[1])] = true
		}
	}
	return found
}

// Rule: each guard that the page on the contract names exists, and it names every case
// of the conformance suite.
func TestContractNamesItsGuards(t *testing.T) {
	cases := casesOf(t)
	unnamed := casesOf(t)
	packages := make(map[string]map[string]bool)
	for _, guard := range tableCells(t, filepath.Join("docs", "contract.md"), -1) {
		match := goTestName.FindStringSubmatch(guard)
		if match == nil {
			require.Contains(t, cases, guard, "no case has this name, and no Go test either")
			delete(unnamed, guard)
			continue
		}
		folder, name := match[1], match[2]
		if folder == "pawl" {
			folder = "."
		}
		if packages[folder] == nil {
			packages[folder] = goTestsIn(t, folder)
		}
		require.Contains(t, packages[folder], name, "package %s has no such test", match[1])
	}
	require.Empty(t, unnamed, "cases that docs/contract.md does not name")
}
