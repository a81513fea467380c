package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Rule: the help of every command describes it, with an example and its exit codes, within 80
// columns.
func TestEveryCommandHasHelp(t *testing.T) {
	for _, c := range leaves(tree()) {
		words := wordsOf(c)
		if words == "help" {
			continue // it is the overview
		}
		require.NotEmpty(t, c.Short, words)
		require.NotEmpty(t, c.Long, words)
		require.Regexp(t, `(?m)^  .*\bjobctl .*\b`+words+`\b`, c.Example, words)
		text := jobctl(t, append(strings.Fields(words), "--help")...).stdout
		require.Contains(t, text, "\nExit codes: 0 done, 1 an error, 2 usage")
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len([]rune(line)), 81, "%s: %s", words, line)
		}
	}
	for _, topic := range []string{"", "exit-codes", "filters", "job", "dead", "queue", "wf", "db"} {
		for line := range strings.Lines(jobctl(t, "help", topic).stdout) {
			require.LessOrEqual(t, len([]rune(line)), 81, "%s: %s", topic, line)
		}
	}
}

// scriptLine is a line of a script that runs jobctl: the exit code, and the command line.
// The command "watched" of scripts runs jobctl watch.
var scriptLine = regexp.MustCompile(`(?m)^(?:(?:within \S+|code) (\d+) jobctl|exec jobctl|(?:watched \S+)) (.*)$`)

// Rule: every command has its own script, and some script ends it with each exit code that its
// help names. An error (1), a wrong command line (2) and an interruption (130) are common to all
// commands.
func TestEveryCommandHasScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	met, commands := make(map[string]map[int]bool), leaves(tree())
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, m := range scriptLine.FindAllStringSubmatch(string(text), -1) {
			code, _ := strconv.Atoi(m[1]) // none is 0
			if strings.HasPrefix(m[0], "watched ") {
				m[2] = "watch " + m[2]
			}
			for _, c := range commands {
				if words := wordsOf(c); strings.HasPrefix(m[2]+" ", words+" ") {
					if met[words] == nil {
						met[words] = make(map[int]bool)
					}
					met[words][code] = true
				}
			}
		}
	}
	for _, c := range commands {
		words := wordsOf(c)
		require.FileExists(t, filepath.Join("testdata", "script", strings.ReplaceAll(words, " ", "_")+".txtar"))
		for _, m := range regexp.MustCompile(`\b(\d+) [a-z]`).FindAllStringSubmatch(exitNames(c), -1) {
			code, _ := strconv.Atoi(m[1])
			if code != exitError && code != exitUsage && code != exitInterrupted {
				require.True(t, met[words][code], "no script ends '%s' with exit code %d", words, code)
			}
		}
	}
}

// Rule: each value of a flag is completed: with its words, with names from the queue, with files
// where it names one, and otherwise with nothing.
func TestFlagsAreCompleted(t *testing.T) {
	build(t, everyState)
	a := &app{stdout: bufio.NewWriter(io.Discard), stderr: io.Discard, env: func(string) string { return "app.db" }, now: time.Now, note: func(string) {}, completes: true}
	root := a.commands()
	files := []string{"to", "to-db", "file", "data", "dir", "allow", "allow-dir", "output-dir"}
	words := map[string]string{"on-conflict": "reject", "sort": "died", "reason": "poison", "drain": "all", "queue": "email", "to-queue": "email", "kind": "mail.send"}
	for _, c := range leaves(root) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.NoOptDefVal == "true" {
				return
			}
			complete, ok := c.GetFlagCompletionFunc(f.Name)
			require.True(t, ok, "%s --%s", wordsOf(c), f.Name)
			got, directive := complete(c, nil, "")
			named := slices.Contains(files, f.Name) && wordsOf(c) != "sched backfill" // its --to is a time
			require.Equal(t, named, directive&cobra.ShellCompDirectiveNoFileComp == 0, "%s --%s", wordsOf(c), f.Name)
			if word := words[f.Name]; word != "" && wordsOf(c) != "wf cancel" && wordsOf(c) != "wf terminate" { // their reason is a text
				require.Contains(t, got, word, "%s --%s", wordsOf(c), f.Name)
			}
		})
	}
}
