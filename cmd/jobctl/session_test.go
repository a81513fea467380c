package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/cmd/jobctl/internal/shoot/tmux"
	"github.com/gopawl/pawl/internal/need"
)

// Rule: the session of the guide, typed into a terminal line by line, has the results in the
// guide: an operator changes jobs of a running app, kills the app, changes its file, and starts
// it again.
func TestSessionOfGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program and takes seconds: not with -short")
	}
	t.Parallel() // it waits more than it computes
	bin := withExample(t, "steer")
	terminal, err := tmux.Start(140, 45)
	if errors.Is(err, tmux.ErrMissing) {
		need.Server(t, err.Error())
	}
	require.NoError(t, err)
	folder := t.TempDir()
	t.Cleanup(func() {
		require.NoError(t, terminal.Close())
		killServing(filepath.Join(folder, "app.db")) // which continues in the background when a step fails
	})
	s := session{t, terminal, filepath.Join(folder, "app.db")}
	s.enter("PATH="+bin+":$PATH", "")
	s.enter("cd "+folder, "")
	for _, step := range steps(t, 0) {
		s.take(step)
	}
	s.enter("kill %1", "")
}

// withExample builds a program of the examples, and returns its folder and that of jobctl, for
// PATH. TestMain has put jobctl there: it is this binary.
func withExample(t *testing.T, name string) (path string) {
	t.Helper()
	jobctl, err := exec.LookPath("jobctl")
	require.NoError(t, err)
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, name), ".")
	build.Dir = filepath.Join("..", "..", "examples", name)
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return bin + string(filepath.ListSeparator) + filepath.Dir(jobctl)
}

// killServing kills the app that serves a file, if there is one.
func killServing(path string) {
	note, err := os.ReadFile(filepath.Join(path+".admin", "server.json"))
	if err != nil {
		return
	}
	var app struct{ PID int }
	if json.Unmarshal(note, &app) != nil {
		return
	}
	if process, err := os.FindProcess(app.PID); err == nil {
		_ = process.Kill()
	}
}

// step is a typed line, and the output in the guide.
type step struct {
	typed string
	shown []string
}

// steps reads a session from the guide.
func steps(t *testing.T, session int) (all []step) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guide/operating.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 2)
	for line := range strings.Lines(blocks[session][1]) {
		line = strings.TrimSuffix(line, "\n")
		if typed, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{typed: typed})
		} else {
			all[len(all)-1].shown = append(all[len(all)-1].shown, line)
		}
	}
	require.Greater(t, len(all), 3)
	return all
}

// session is a terminal in which the steps are typed.
type session struct {
	t        *testing.T
	terminal *tmux.Terminal
	db       string
}

// take types a step and requires the output in the guide.
func (s session) take(step step) {
	s.t.Helper()
	switch {
	case strings.HasSuffix(step.typed, "&"):
		s.enter(step.typed, "works on app.db")
		s.deadJob() // by then both queues have had jobs
	case strings.HasSuffix(step.typed, " top"):
		s.enter(step.typed, "q quit")
		require.NoError(s.t, s.terminal.Press("q"))
		s.wait("the end of top", prompted)
	case strings.HasPrefix(step.typed, "kill"):
		s.deadJob() // so that the file has a job to retry
		s.write(step.typed)
		s.freshReport()
		s.end(step.typed, "")
	default:
		asks := len(step.shown) > 1 && strings.HasSuffix(step.shown[1], "Type y: y")
		if !asks {
			s.enter(step.typed, "")
			break
		}
		s.enter(step.typed, "Type y:")
		s.enter("y", "")
	}
	screen, err := s.terminal.Screen()
	require.NoError(s.t, err)
	for _, line := range step.shown {
		require.Contains(s.t, shape(screen), shape(line), "after %q", step.typed)
	}
	s.enter("clear", "")
}

// enter types a line, ends it, and waits for a text, or for the next prompt.
func (s session) enter(line, text string) {
	s.t.Helper()
	s.write(line)
	s.end(line, text)
}

// write types a line without its end. It waits until the line is on the screen, so that the
// prompt in front of the line is not taken for the next one.
func (s session) write(line string) {
	s.t.Helper()
	require.NoError(s.t, s.terminal.Type(line))
	s.wait("the echo of "+line, func(screen string) bool { return strings.HasSuffix(strings.TrimRight(screen, "\n "), line) })
}

// end ends a line that write typed, and waits for a text, or for the next prompt.
func (s session) end(line, text string) {
	s.t.Helper()
	require.NoError(s.t, s.terminal.Press("Enter"))
	if text == "" {
		s.wait("the end of "+line, prompted)
		return
	}
	s.wait(text, func(screen string) bool { return strings.Contains(screen, text) })
}

func (s session) wait(what string, seen func(string) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	_, err := s.terminal.Wait(ctx, what, seen)
	require.NoError(s.t, err)
}

// prompted reports whether the shell waits for a line.
func prompted(screen string) bool {
	lines := strings.Split(strings.TrimRight(screen, "\n "), "\n")
	return lines[len(lines)-1] == "$"
}

// deadJob waits until the app has a dead job.
func (s session) deadJob() {
	s.t.Helper()
	s.poll("no job died within a minute", func() bool { return len(s.list("dead", "list")) > 0 })
}

// freshReport waits until a report has just begun, which takes the app two seconds, so that a
// kill right after it finds a leased job. All but the end of the line with the kill is typed by
// then.
func (s session) freshReport() {
	s.t.Helper()
	leased := func() string { return strings.Join(s.list("job", "list", "-q", "reports", "-s", "leased"), " ") }
	before := leased()
	s.poll("no report began within a minute", func() bool {
		now := leased()
		return now != "" && now != before
	})
}

// list returns the IDs of the jobs that a command lists.
func (s session) list(command ...string) (jobs []string) {
	s.t.Helper()
	out, err := exec.Command("jobctl", append([]string{"--db", s.db, "-o", "ids"}, command...)...).Output()
	require.NoError(s.t, err)
	return strings.Fields(string(out))
}

// poll repeats the question for a minute until the answer is yes.
func (s session) poll(failure string, ask func() bool) {
	s.t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for end := time.After(time.Minute); !ask(); {
		select {
		case <-again.C:
		case <-end:
			require.Fail(s.t, failure)
		}
	}
}

// shape removes from a text what differs between runs: numbers, ages, IDs and widths.
func shape(text string) string {
	for _, change := range []struct{ from, to string }{
		{`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, "ID"},
		{`\([0-9.]+ .?i?B free\)`, ""},
		{`\b[0-9.]+(ms|s|m|h|d)?\b`, "N"},
		{` - `, " N "},
		{`\b[1N] jobs? match(es)?`, "N jobs match"},
		{`\bleased\b|\bdelayed\b|\bready\b`, "STATE"},
		{`Retry (it|them)`, "Retry them"},
		{`jobs? whose`, "jobs whose"},
		{`N ago|in N`, "N"},
		{` +`, " "},
		{` +(\n|$)`, "$1"},
	} {
		text = regexp.MustCompile(change.from).ReplaceAllString(text, change.to)
	}
	return text
}
