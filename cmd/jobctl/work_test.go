package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/handlers"
)

// Rule: a size is a whole number of bytes, or of the units that jobctl prints.
func TestSize(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "65536": 65536, "64KiB": 64 << 10, "2 MiB": 2 << 20} {
		got, err := parseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "0", "-1", "KiB", "1.5KiB", "64kB", "0KiB", "99999999999999GiB", "1KiBKiB"} {
		_, err := parseSize(text)
		require.ErrorIs(t, err, errSize, text)
	}
}

// Rule: a line shows a command with distinguishable arguments, and no part of a request that
// could be a secret.
func TestWhatLines(t *testing.T) {
	for want, args := range map[string][]string{
		"make site":           {"make", "site"},
		"sh -c 'echo a | wc'": {"sh", "-c", "echo a | wc"},
		"echo '' 'it'\\''s'":  {"echo", "", "it's"},
		"rm -- '-x y'":        {"rm", "--", "-x y"},
	} {
		require.Equal(t, want, commandLine(args))
	}
	for want, r := range map[string]handlers.Request{
		"GET https://example.com/a":        {URL: "https://example.com/a?token=secret#part"},
		"POST https://example.com/a%2Fb":   {Method: "POST", URL: "https://example.com/a%2Fb"},
		"GET https://example.com/":         {URL: "https://ada:secret@example.com/"},
		"GET":                              {URL: "https://exa mple.com/?secret"},
		"DELETE http://[2001:db8::1]:8080": {Method: "DELETE", URL: "http://[2001:db8::1]:8080"},
	} {
		require.Equal(t, want, requestLine(&r))
	}
}

// blocked is an output that accepts nothing until it is opened.
type blocked struct {
	bytes.Buffer
	began chan struct{} // closed at the first write
	open  chan struct{}
}

func (b *blocked) Write(text []byte) (int, error) {
	select {
	case <-b.began:
	default:
		close(b.began)
	}
	<-b.open
	return b.Buffer.Write(text)
}

// Rule: jobs never wait for the reader of the lines. Lines that are not read are lost, and the
// next line reports how many.
func TestSlowReader(t *testing.T) {
	out := &blocked{began: make(chan struct{}), open: make(chan struct{})}
	r := newReport(&app{stderr: out, stdout: discard(), flags: shared{output: "table", utc: true}}, func() {})
	succeed := func(n int) {
		r.begin(&pawl.Envelope{ID: id(n)}, 1, fmt.Sprint("job ", n))
		r.hear(pawl.Event{Type: pawl.EventSucceeded, At: start, Job: &pawl.Envelope{ID: id(n), Queue: "q"}})
	}
	succeed(0)
	<-out.began // the writer has taken the first and waits
	for n := range maxLines + 7 {
		succeed(n + 1)
	}
	require.Empty(t, r.runs, "what is settled is forgotten")
	close(out.open)
	for len(r.lines) > 0 { // until there is a place for the next
		runtime.Gosched()
	}
	succeed(9999)
	succeed(9998)
	require.NoError(t, r.close())
	require.Equal(t, 1, strings.Count(out.String(), "missed"))
	require.Contains(t, out.String(), "note: 7 lines missed: they arrived faster than they were read\n")
	require.Contains(t, out.String(), "job 9999")
	require.Contains(t, out.String(), fmt.Sprintf("%d done, 0 to retry", maxLines+3))
}

// Rule: a line shows what an event says, even if nothing ran.
func TestWorkLine(t *testing.T) {
	a := &app{flags: shared{utc: true}}
	code := 75
	job := &pawl.Envelope{ID: id(1), Kind: "pawl.exec", Queue: "q", Attempts: 3, Death: &pawl.Death{Reason: pawl.ReasonPoison}}
	for _, c := range []struct {
		rule  string
		event pawl.Event
		ran   ranJob
		want  string
	}{
		{"a retry says when", pawl.Event{Type: pawl.EventRetried, Took: 1500 * time.Millisecond, Delay: 250 * time.Millisecond, Cause: "x\ny"},
			ranJob{what: "make", code: &code, err: &handlers.ExitError{Code: 75, Tail: "one\nno space"}},
			"retry     ID  make  exit 75  took 1.5s  again in 250ms  no space"},
		{"what could not start says why", pawl.Event{Type: pawl.EventDied, Cause: "it is\nnot allowed"}, ranJob{what: "make"},
			"dead      ID  make  poison  it is"},
		{"a line is one line, whatever a command is called", pawl.Event{Type: pawl.EventSucceeded}, ranJob{what: "a\nb\x1b[31m"},
			`done      ID  a\nb\x1b[31m`},
	} {
		c.event.Job, c.event.At = job, start
		v := viewOfRun(runResults[c.event.Type], &c.event, &c.ran)
		require.Equal(t, "09:00:00.000  "+c.want, replaceID(a.workLine(&v)), c.rule)
	}
}

// Rule: a failed output ends the worker, and the report returns the error.
func TestReportEndsWork(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := newReport(&app{stderr: new(bytes.Buffer), stdout: brokenOutput(), flags: shared{output: "jsonl"}}, stop)
	r.hear(pawl.Event{Type: pawl.EventSucceeded, At: start, Job: &pawl.Envelope{ID: id(1)}})
	<-ctx.Done()
	require.True(t, r.failed())
	require.ErrorContains(t, r.close(), "write the output: no space")
}
