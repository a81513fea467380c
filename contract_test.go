package pawl_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/queuetest"
)

var updateGuards = flag.Bool("update-guards", false, "rewrite docs/internals/guards.md")

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	goTestName = regexp.MustCompile(`^([a-z/]+)\.((?:Test|Example|Fuzz)\w+)$`)
	goTestFunc = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w+)\(`)
)

// goTestsIn returns the tests, examples, and fuzz targets of one folder.
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

// Rule: each Go test that the contract names exists.
func TestContractNamesItsTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "contract.md"))
	require.NoError(t, err)
	packages, named := make(map[string]map[string]bool), 0
	for _, span := range codeSpan.FindAllSubmatch(page, -1) {
		match := goTestName.FindSubmatch(span[1])
		if match == nil {
			continue
		}
		folder, name := string(match[1]), string(match[2])
		if folder == "pawl" {
			folder = "."
		}
		if packages[folder] == nil {
			packages[folder] = goTestsIn(t, folder)
		}
		require.Contains(t, packages[folder], name, "package %s has no such test", folder)
		named++
	}
	require.Greater(t, named, 100)
}

// Rule: the page of guards has every case of the suite under the rule that it guards.
func TestGuardsPageIsGenerated(t *testing.T) {
	path := filepath.Join("docs", "internals", "guards.md")
	want := guardsPage(t)
	if *updateGuards {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(page), "run: go test . -run GuardsPage -update-guards")
}

// guardsPage lists the cases of the suite by group, and within a group by rule, in their order.
func guardsPage(t *testing.T) string {
	t.Helper()
	type rule struct{ group, text string }
	var groups []string
	rules := make(map[string][]string) // of a group
	cases := make(map[rule][]string)
	seen := make(map[string]bool)
	for _, c := range queuetest.Cases() {
		require.NotEmpty(t, c.Rule, "%s/%s", c.Group, c.Name)
		require.False(t, seen[c.Group+"/"+c.Name], "two cases are called %s/%s", c.Group, c.Name)
		seen[c.Group+"/"+c.Name] = true
		if rules[c.Group] == nil {
			groups = append(groups, c.Group)
		}
		r := rule{c.Group, c.Rule}
		if cases[r] == nil {
			rules[c.Group] = append(rules[c.Group], c.Rule)
		}
		cases[r] = append(cases[r], c.Name)
	}
	var page strings.Builder
	page.WriteString(`# Which case guards which rule

Generated from package queuetest by ` + "`go test . -run GuardsPage -update-guards`" + `. Do not edit.

Run one case of a file with ` + "`go test ./bolt -run 'TestConformance/GROUP/NAME'`" + `, with each blank of the name written as
an underscore. [The contract](../contract.md) states the rules for readers.
`)
	cell := strings.NewReplacer("|", `\|`)
	for _, group := range groups {
		fmt.Fprintf(&page, "\n## %s\n\n| rule | cases |\n|---|---|\n", group)
		for _, text := range rules[group] {
			fmt.Fprintf(&page, "| %s | %s |\n", cell.Replace(text), cell.Replace(strings.Join(cases[rule{group, text}], "; ")))
		}
	}
	return page.String()
}
