package main

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: the session of the guide about workflows, line by line in a shell, has the output in the
// guide.
func TestWorkflowSessionOfGuide(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("it builds a program and takes seconds: not with -short")
	case runtime.GOOS == "windows":
		t.Skip("it is typed into a shell")
	}
	t.Parallel() // it waits more than it computes
	bin, folder := withExample(t, "order"), t.TempDir()
	for _, step := range steps(t, 1) {
		typed := exec.Command("sh", "-c", step.typed)
		typed.Dir, typed.Env = folder, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := typed.CombinedOutput()
		require.NoError(t, err, "%s: %s", step.typed, out)
		require.Equal(t, shapeOfRuns(strings.Join(step.shown, "\n")), shapeOfRuns(strings.TrimRight(string(out), "\n")), step.typed)
	}
}

// shapeOfRuns removes from a text what differs between runs: IDs, times, durations, builds, and
// widths.
func shapeOfRuns(text string) string {
	for _, change := range []struct{ from, to string }{
		{`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, "ID"},
		{`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`, "TIME"},
		{`until \w{3} \d\d:\d\d`, "until DAY"},
		{`\b[0-9.]+(µs|ms|s) `, "TOOK "},
		{`\([0-9]+s ago\)`, "(AGE)"},
		{`(?m)^build +[0-9a-f]{12}$`, "build BUILD"},
		{` +`, " "},
	} {
		text = regexp.MustCompile(change.from).ReplaceAllString(text, change.to)
	}
	return text
}
