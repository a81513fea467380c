// Package docs holds no code. Its tests check the pages: every Go snippet compiles, every
// link leads somewhere, and every identifier of the repository keeps to the glossary.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// root is the repository, as seen from this folder.
const root = ".."

var (
	goBlock   = regexp.MustCompile("(?s)```go\n(.*?)```")
	anyBlock  = regexp.MustCompile("(?s)```.*?```")
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	pageInDoc = regexp.MustCompile(`\bdocs/[a-z/-]+\.(?:md|svg)`)
)

// Rule: every Go snippet of every page stands, line for line, in a Go file that the compiler
// sees. Indentation does not count.
func TestSnippetsCompile(t *testing.T) {
	var sources []string
	for _, pattern := range []string{
		"*_test.go", "*/example*_test.go", "docs/guide/*_test.go", "examples/*/*.go",
		"workflow/workflowtest/example_test.go",
	} {
		for _, file := range glob(t, pattern) {
			sources = append(sources, unindent(read(t, file)))
		}
	}
	for _, page := range pages(t) {
		for _, snippet := range goBlock.FindAllStringSubmatch(read(t, page), -1) {
			wanted, found := unindent(snippet[1]), false
			for _, source := range sources {
				found = found || strings.Contains(source, wanted)
			}
			require.True(t, found, "%s: no compiled file has this snippet:\n%s", page, snippet[1])
		}
	}
}

// Rule: every relative link of every page leads to a file, and to a heading if it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text := codeSpan.ReplaceAllString(anyBlock.ReplaceAllString(read(t, page), ""), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(path))
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", page, match[1])
			if anchor != "" {
				require.Contains(t, anchors(read(t, target)), anchor, "%s links to %s", page, match[1])
			}
		}
	}
}

// Rule: a comment names only pages that exist.
func TestCommentsNameExistingPages(t *testing.T) {
	walkGo(t, func(file string) {
		for _, page := range pageInDoc.FindAllString(read(t, file), -1) {
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(page)))
			require.NoError(t, err, "%s names %s", file, page)
		}
	})
}

// Rule: the README has at most 180 lines. More belongs into the guide.
func TestReadmeIsShort(t *testing.T) {
	require.LessOrEqual(t, strings.Count(read(t, filepath.Join(root, "README.md")), "\n"), 180)
}

var figure = regexp.MustCompile(`\d[\d\p{Zs}]*\d`)

// Rule: the figures that the README compares are those of the pages that it names.
func TestReadmeHasTheFiguresOfThePages(t *testing.T) {
	figures := func(text string) (all []string) {
		for _, found := range figure.FindAllString(text, -1) {
			all = append(all, strings.Join(strings.FieldsFunc(found, unicode.IsSpace), ""))
		}
		return all
	}
	compared := 0
	for line := range strings.Lines(read(t, filepath.Join(root, "README.md"))) {
		title, cells, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		page := "performance.md"
		switch {
		case strings.HasPrefix(title, "workflows of 5 steps a second"):
			page = "workflows-performance.md"
		case !strings.HasSuffix(title, ", jobs a second"):
			continue
		}
		for _, found := range figures(cells) {
			require.True(t, slices.Contains(figures(read(t, page)), found), "%s does not have the %s of: %s", page, found, line)
			compared++
		}
	}
	require.GreaterOrEqual(t, compared, 4*4, "no figures were found")
}

// pages are the Markdown files that people read.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		all = append(all, glob(t, pattern)...)
	}
	require.NotEmpty(t, all)
	return all
}

// glob returns the files of the repository that match a pattern.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
	require.NoError(t, err)
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// unindent removes the indentation of every line.
func unindent(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// anchors are the names under which a page's headings can be linked to, as GitHub makes them.
func anchors(page string) (names []string) {
	for _, match := range heading.FindAllStringSubmatch(anyBlock.ReplaceAllString(page, ""), -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, match[1]))
	}
	return names
}

// walkGo calls fn for every Go file of the repository.
func walkGo(t *testing.T, fn func(file string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != root):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			fn(path)
		}
		return nil
	}))
}
