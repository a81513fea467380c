package workflowtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: every Go snippet of docs/workflows.md appears, except for indentation, in a compiled file.
func TestPageSnippetsCompile(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "workflows.md"))
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, snippets)

	var compiled []string
	for _, pattern := range []string{"workflow/example_test.go", "workflow/workflowtest/example_test.go", "examples/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			compiled = append(compiled, unindent(string(source)))
		}
	}
	for _, snippet := range snippets {
		found := false
		for _, source := range compiled {
			found = found || strings.Contains(source, unindent(snippet[1]))
		}
		require.True(t, found, "no compiled file has this snippet:\n%s", snippet[1])
	}
}

// Rule: the files that the page links to exist.
func TestPageLinks(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	page, err := os.ReadFile(filepath.Join(docs, "workflows.md"))
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		require.FileExists(t, filepath.Join(docs, filepath.FromSlash(link[1])))
	}
}

func unindent(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
