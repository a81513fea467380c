package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// FuzzArguments looks for a command line that panics, ends with an undocumented exit code, or
// prints what a terminal obeys. Its words are the lines of a text; there is no file that they
// could change.
func FuzzArguments(f *testing.F) {
	for _, c := range leaves(tree()) {
		words := wordsOf(c)
		f.Add(strings.ReplaceAll(words, " ", "\n"))
		f.Add("--db\nnone.db\n" + strings.ReplaceAll(words, " ", "\n"))
		f.Add("help\n" + words)
	}
	for _, text := range []string{
		"", "-", "--", "--db", "-o\njson\nstats", "--db=none.db\njob\nshow\n" + id(1).String(), "dead\nretry\n--all\n-y\n-q\na\n-k\nb",
		"job\nlist\n-n\n-1\n-s\nready", "--help", "job\n--help", "\x1b[31m", "stats\n--\n-x",
	} {
		f.Add(text)
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		if slices.ContainsFunc(args, func(arg string) bool { return strings.ContainsAny(arg, "/\\") }) {
			t.Skip("it may lead to a file of somebody's")
		}
		if slices.Contains(args, "--create") {
			t.Skip("it may begin to work, and work goes on until it is told to end")
		}
		t.Chdir(folder)
		defer empty(t, folder)
		got := jobctl(t, args...)
		require.GreaterOrEqual(t, got.code, exitOK)
		require.LessOrEqual(t, got.code, exitFormat)
		require.False(t, got.code != exitOK && got.stderr == "", "exit %d without a word", got.code)
		requireHarmless(t, text, got.stdout)
		requireHarmless(t, text, got.stderr)
	})
}

// empty removes the leftovers of a command line from its folder, which the next one uses.
func empty(t *testing.T, folder string) {
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range left {
		require.NoError(t, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
}

// FuzzEscape looks for a text that a terminal would obey after escaping, or a cell wider than
// its column.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[31m", "\u202e\u2066", "\xff\xfe", "a\nb\n\n", "é漢\U000e0041", "\ufffd"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 3 + width&0xff
		for _, text := range []string{plain.Text(s), cell(s, width), firstLine(s, width)} {
			requireHarmless(t, "escape", text)
			require.NotContains(t, text, "\n")
		}
		require.LessOrEqual(t, len([]rune(cell(s, width))), width)
		require.Equal(t, plain.Text(s), plain.Text(plain.Text(s)), "what is harmless stays as it is")
		requireHarmless(t, "escapeLines", escapeLines(s, "  "))
	})
}
