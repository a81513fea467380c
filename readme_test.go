package pawl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: every Go snippet of the README stands, line for line, in a file that the
// compiler sees; indentation aside.
func TestReadmeSnippetsCompile(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, snippets)

	var compiled []string
	for _, pattern := range []string{"*_test.go", "workflow/*_test.go", "examples/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
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

func unindent(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
