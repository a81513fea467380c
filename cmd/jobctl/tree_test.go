package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

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
		for _, m := range regexp.MustCompile(`\b(\d+) [a-z]`).FindAllStringSubmatch(c.Annotations[exitCodes], -1) {
			code, _ := strconv.Atoi(m[1])
			if code != exitError && code != exitUsage && code != exitInterrupted {
				require.True(t, met[words][code], "no script ends '%s' with exit code %d", words, code)
			}
		}
	}
}
