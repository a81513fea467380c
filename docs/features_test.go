package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// featuresPage compares workflows with those of other systems.
const featuresPage = "guide/workflow-features.md"

var (
	testFunc = regexp.MustCompile(`(?m)^func (?:\(suite\) )?([A-Z]\w+)\(t \*testing\.T`)
	inCode   = regexp.MustCompile("`([^`]+)`")
)

// Rule: each feature that the page says we have names a test, and each named test is in the
// repository. A feature that we lack names none.
func TestFeaturesHaveTests(t *testing.T) {
	tests := make(map[string]bool)
	walkGo(t, func(file string) {
		for _, found := range testFunc.FindAllStringSubmatch(read(t, file), -1) {
			tests[found[1]] = true
		}
	})
	rows := tableRows(t, "## Features")
	require.Greater(t, len(rows), 20)
	ours := 0
	for _, row := range rows {
		feature, have, named := row[0], row[1], inCode.FindAllStringSubmatch(row[2], -1)
		require.Contains(t, []string{"yes", "no"}, have, feature)
		require.Equal(t, have == "yes", len(named) > 0, feature)
		for _, name := range named {
			require.True(t, tests[name[1]], "%s: no test is called %s", feature, name[1])
			ours++
		}
	}
	require.Greater(t, ours, 15)
}

// Rule: the lines of code of each pattern are those that the page says.
func TestLinesOfPatterns(t *testing.T) {
	lines := make(map[string]int)
	for _, file := range glob(t, "examples/patterns/*.go") {
		if !strings.HasSuffix(file, "_test.go") {
			maps.Copy(lines, declaredLines(t, file))
		}
	}
	rows := tableRows(t, "## Lines of code")
	require.Greater(t, len(rows), 8)
	for _, row := range rows {
		sum := 0
		for _, name := range inCode.FindAllStringSubmatch(row[1], -1) {
			require.Positive(t, lines[name[1]], name[1])
			sum += lines[name[1]]
		}
		require.Equal(t, fmt.Sprint(sum), row[2], row[0])
	}
}

// tableRows returns the cells of the first table after a heading of the page.
func tableRows(t *testing.T, heading string) (rows [][]string) {
	_, text, found := strings.Cut(read(t, featuresPage), heading+"\n")
	require.True(t, found, heading)
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 2)
	return rows[2:] // behind the head
}

// declaredLines counts the lines of code of each declaration of a file. Blank lines and lines that
// are only comments do not count.
func declaredLines(t *testing.T, file string) map[string]int {
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, filepath.Base(file), source, 0)
	require.NoError(t, err)
	code := codeLines(source)
	counts := make(map[string]int)
	count := func(name string, node ast.Node) {
		from, to := set.Position(node.Pos()).Line, set.Position(node.End()).Line
		for line := range code {
			if from <= line && line <= to {
				counts[name]++
			}
		}
	}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			count(decl.Name.Name, decl)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name.Name, spec)
				case *ast.ValueSpec:
					count(spec.Names[0].Name, spec)
				}
			}
		}
	}
	return counts
}

// codeLines returns the lines that have code.
func codeLines(source []byte) map[int]bool {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	lines := make(map[int]bool)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		lines[file.Line(pos)] = true
	}
}

// Rule: the count of lines leaves out blank lines and comments, and counts both ends.
func TestCodeLines(t *testing.T) {
	lines := codeLines([]byte("package p\n\n// comment\nfunc f() {\n\t// comment\n\tg() // comment\n\n}\n"))
	require.Equal(t, []int{1, 4, 6, 8}, slices.Sorted(maps.Keys(lines)))
}
