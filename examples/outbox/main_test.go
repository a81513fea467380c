package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule: what was added waits, visibly, while the sink fails, and is delivered when it
// works.
func TestFailingThenWorkingSink(t *testing.T) {
	t.Parallel()
	b, sink := newBox(t), newEndpoint(t)
	require.Equal(t, "no messages\n", b.run("list").stdout, "also before there is a file")
	require.Empty(t, b.list())
	ids := b.add("one", "two", "three")
	for i, e := range b.list() {
		require.Equal(t, ids[i], e.ID.String())
		require.Equal(t, []string{"one", "two", "three"}[i], e.Text)
		require.WithinDuration(t, time.Now(), e.Added, time.Minute)
		require.Equal(t, "due", e.status(time.Now()))
	}

	sink.set(always(http.StatusBadGateway))
	r := b.run("sync", "-to", sink.URL, "-backoff", "1s")
	require.Equal(t, 1, r.code)
	require.Equal(t, "outbox: 0 delivered, 3 waiting, 0 dead; see outbox list", lastLine(r.stderr))
	for _, e := range b.list() {
		require.Positive(t, e.Attempts)
		require.Contains(t, e.lastError(), "502 Bad Gateway")
		require.Contains(t, r.stderr, "not delivered "+e.ID.String()+", attempt 1 of 21: ")
	}
	require.Regexp(t, `(?m)^ID +STATE +ATTEMPTS +TEXT +LAST ERROR\n[0-9a-f-]{36}  (retry in \ds|due) +\d+ +one +\S+ answered 502 Bad Gateway$`,
		b.run("list").stdout)

	sink.set(always(http.StatusOK))
	b.syncAll(sink.URL)
	got := sink.texts()
	slices.Sort(got)
	require.Equal(t, []string{"one", "three", "two"}, got)
}

// Rule: being offline is no failure: nothing is counted, and the order stays.
func TestOffline(t *testing.T) {
	t.Parallel()
	b, sink := newBox(t), newEndpoint(t)
	down := newEndpoint(t)
	down.Close()
	b.add("one", "two", "three")
	for range 2 {
		r := b.run("sync", "-to", down.URL)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, "cannot reach the sink")
		require.Contains(t, r.stderr, "0 delivered, 3 waiting, 0 dead")
	}
	for _, e := range b.list() {
		require.Zero(t, e.Attempts)
		require.Empty(t, e.Errors)
	}
	r := b.run("sync", "-to", sink.URL)
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, "3 delivered, 0 waiting, 0 dead", lastLine(r.stdout))
	require.Equal(t, []string{"one", "two", "three"}, sink.texts())
}

// Rule: a sync that is killed while the sink has a message loses none; the next one
// sends that message again.
func TestKilledDuringDelivery(t *testing.T) {
	t.Parallel()
	b, sink := newBox(t), newEndpoint(t)
	texts := []string{"one", "two", "three", "four"}
	ids := b.add(texts...)
	reached := make(chan string, 1)
	sink.set(func(e envelope, r *http.Request) int {
		if e.Text == "three" {
			reached <- e.ID.String()
			<-r.Context().Done()
			return http.StatusGatewayTimeout
		}
		return http.StatusOK
	})
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	cmd := b.child(ctx, sink.URL)
	require.NoError(t, cmd.Start())
	require.Equal(t, ids[2], <-reached)
	kill()
	require.Error(t, cmd.Wait())

	sink.set(always(http.StatusOK))
	before := sink.texts()
	require.Equal(t, texts[:2], before)
	for _, e := range b.list() {
		require.Empty(t, e.Errors, "it is not the fault of the message")
	}
	r := b.run("sync", "-to", sink.URL)
	require.Equal(t, 0, r.code, r.stderr)
	got := sink.texts()[len(before):]
	if got[0] == "two" { // it had arrived, and the kill came before the file knew
		got = got[1:]
	}
	require.Equal(t, texts[2:], got)
}

// Rule: killed at any moment and run again, sync delivers every message at least once.
func TestKilledOften(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var want []string
	for i := range 60 {
		want = append(want, "message "+strconv.Itoa(i))
	}
	b.add(want...)
	sent := filepath.Join(filepath.Dir(b.db), "sent.jsonl")
	for kills, limit := 0, 200*time.Millisecond; kills < 5; {
		ctx, cancel := context.WithTimeout(context.Background(), rand.N(limit))
		out, err := b.child(ctx, sent).CombinedOutput()
		cancel()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.ExitCode() == -1, errors.Is(err, context.DeadlineExceeded):
			kills++
		default: // it was faster than the kills
			require.NoError(t, err, "%s", out)
			require.Empty(t, b.list())
			b.add(want...)
			limit /= 2
		}
	}
	r := b.run("sync") // the same file is the default
	require.Equal(t, 0, r.code, r.stderr)
	require.Empty(t, b.list())

	content, err := os.ReadFile(sent)
	require.NoError(t, err)
	got := make(map[string]string) // by ID
	for line := range bytes.Lines(content) {
		var e envelope
		if json.Unmarshal(line, &e) == nil { // a torn line was sent again
			got[e.ID.String()] = e.Text
		}
	}
	arrived := make(map[string]int)
	for _, text := range got {
		arrived[text]++
	}
	for _, text := range want {
		require.Equal(t, len(got)/len(want), arrived[text], text)
	}
}

// Rule: ctrl-C ends a sync soon and loses nothing; what was under way counts as not
// tried.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	b, sink := newBox(t), newEndpoint(t)
	b.add("one", "two")
	reached := make(chan bool, 1)
	sink.set(func(_ envelope, r *http.Request) int {
		reached <- true
		<-r.Context().Done()
		return http.StatusGatewayTimeout
	})
	var errs bytes.Buffer
	cmd := b.child(context.Background(), sink.URL)
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	<-reached
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 130, exit.ExitCode(), errs.String())
	require.Contains(t, errs.String(), "interrupted")
	for _, e := range b.list() {
		require.Zero(t, e.Attempts)
	}
	sink.set(always(http.StatusOK))
	require.Equal(t, 0, b.run("sync", "-to", sink.URL).code)
	require.Equal(t, []string{"one", "two"}, sink.texts())
}

// Rule: a message that the other side will never take is dead at once, does not hold
// up the others, and can be retried or dropped.
func TestDead(t *testing.T) {
	t.Parallel()
	b, sink := newBox(t), newEndpoint(t)
	ids := b.add("bad", "good", "worse")
	sink.set(func(e envelope, _ *http.Request) int {
		if e.Text == "good" {
			return http.StatusOK
		}
		return http.StatusUnprocessableEntity
	})
	r := b.run("sync", "-to", sink.URL)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "1 delivered, 0 waiting, 2 dead")
	require.Regexp(t, `(?m)^`+ids[0]+`  dead, permanent +1 +bad +\S+ refused it: 422 `, b.run("list").stdout)
	entries := b.list()
	require.EqualValues(t, "permanent", entries[0].Reason)
	require.EqualValues(t, "dead", entries[0].State)

	require.Equal(t, result{code: 0, stdout: "1 dropped\n"}, b.run("drop", ids[2]))
	sink.set(always(http.StatusOK))
	require.Equal(t, result{code: 0, stdout: "1 retried by the next sync\n"}, b.run("retry"))
	require.Equal(t, 1, b.run("retry", ids[0]).code, "it is not dead any more")
	b.syncAll(sink.URL)
	require.Equal(t, []string{"good", "bad"}, sink.texts())
	require.Equal(t, 1, b.run("drop", ids[0]).code, "it is not there any more")
}

// Rule: without -db the messages are in the folder for configurations, which is made.
func TestDefaultFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "xdg"))
	t.Setenv("AppData", filepath.Join(home, "appdata"))
	folder, err := os.UserConfigDir()
	require.NoError(t, err)
	var out, errs bytes.Buffer
	for _, command := range [][]string{{"add", "one"}, {"sync"}} {
		require.Equal(t, 0, run(t.Context(), command, nil, &out, &errs), errs.String())
	}
	require.FileExists(t, filepath.Join(folder, "outbox", "outbox.db"))
	require.FileExists(t, filepath.Join(folder, "outbox", "sent.jsonl"))
}

// Rule: a message is what was typed, or what comes on the standard input.
func TestAdd(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	require.Equal(t, 0, b.run("add", "two", "words").code)
	require.Equal(t, 0, b.run("add", "-").code)
	require.Equal(t, 0, b.run("add", "--", "-5 °C\x1b[31m").code)
	var texts []string
	for _, e := range b.list() {
		texts = append(texts, e.Text)
	}
	require.Equal(t, []string{"two words", "from\nstdin", "-5 °C\x1b[31m"}, texts)
	require.NotContains(t, b.run("list").stdout, "\x1b")
}

// Rule: while a sync runs in another process, messages are added, listed, retried, and dropped through it. A
// second sync waits for it, and delivers the rest when it is killed. Nothing is lost, and nothing is there twice.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	b, sink := newBox(t), newEndpoint(t)
	b.add("one")
	started, hold := make(chan struct{}, 2), make(chan struct{})
	sink.set(func(e envelope, r *http.Request) int {
		started <- struct{}{}
		select {
		case <-hold:
			return http.StatusOK
		case <-r.Context().Done():
			return http.StatusBadGateway
		}
	})
	first := b.child(t.Context(), sink.URL)
	require.NoError(t, first.Start())
	<-started
	ids := b.add("two", "three", "four")
	require.Len(t, b.list(), 4)
	require.Equal(t, result{code: 0, stdout: "0 retried by the next sync\n"}, b.run("retry"))
	require.Equal(t, 1, b.run("drop", ids[0]).code, "it is not dead")
	second := b.child(t.Context(), sink.URL)
	require.NoError(t, second.Start())
	sink.set(always(http.StatusOK))
	require.NoError(t, first.Process.Kill())
	require.Error(t, first.Wait())
	require.NoError(t, second.Wait())
	require.ElementsMatch(t, []string{"one", "two", "three", "four"}, sink.texts())
	require.Equal(t, "no messages\n", b.run("list").stdout)
}

// Rule: mistakes get a clear error and the right exit code, and change nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for text, args := range map[string][]string{
		"no command":                  {},
		`no command "sned"`:           {"sned"},
		"the message is empty":        {"add"},
		"flag provided but not":       {"add", "-x"},
		"list takes no":               {"list", "all"},
		"name the sink with -to":      {"sync", "http://localhost"},
		"neither an http":             {"sync", "-to", "ftp://localhost/x"},
		"-timeout must be":            {"sync", "-timeout", "0s"},
		"-backoff cannot be negative": {"sync", "-backoff", "-1s"},
		"is not of the form":          {"retry", "7"},
		"drop needs the IDs":          {"drop"},
	} {
		r := b.run(args...)
		require.Equal(t, 2, r.code, "%v: %+v", args, r)
		require.Contains(t, r.stderr, text)
		require.Contains(t, r.stderr, "outbox help")
	}
	require.Equal(t, 1, b.run("sync", "-to", filepath.Join(t.TempDir(), "no", "such", "folder")).code)
	require.NoError(t, os.WriteFile(b.db+".txt", []byte("no queue"), 0o600))
	require.Equal(t, 1, (&box{t, b.db + ".txt"}).run("add", "x").code)
}

// Rule: help is no mistake, and names every command.
func TestHelp(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}} {
		require.Equal(t, result{code: 0, stdout: help}, b.run(args...))
	}
	for command, text := range map[string]string{
		"add": "TEXT", "list": "-json", "sync": "-to sink", "retry": "[ID...]", "drop": "ID...",
	} {
		require.Contains(t, help, "\n  "+command)
		r := b.run(command, "-h")
		require.Equal(t, 0, r.code)
		require.Contains(t, r.stdout, text)
		require.Contains(t, r.stdout, "-db file")
	}
}

// Rule: a line that was never finished is kept apart from those behind it.
func TestTornLine(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.add("one")
	sent := filepath.Join(t.TempDir(), "sent")
	require.NoError(t, os.WriteFile(sent, []byte(`{"id":`), 0o600))
	require.Equal(t, 0, b.run("sync", "-to", sent).code)
	content, err := os.ReadFile(sent)
	require.NoError(t, err)
	require.Regexp(t, `^{"id":\n{"id":"[0-9a-f-]{36}","added":"[^"]+","text":"one"}\n$`, string(content))
}
