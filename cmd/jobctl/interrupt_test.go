package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// many fills a file with dead jobs.
func many(jobs int) func(*file) {
	return func(f *file) {
		for made := 0; made < jobs; {
			batch := make([]*pawl.Envelope, min(1000, jobs-made))
			for i := range batch {
				f.made++
				batch[i] = &pawl.Envelope{ID: id(f.made), Kind: "k", State: pawl.Dead, Death: &pawl.Death{Reason: pawl.ReasonPermanent, At: start}}
			}
			require.NoError(f.t, f.q.Restore(context.Background(), batch, nil))
			made += len(batch)
		}
	}
}

// Rule: an interruption takes effect between two portions, and the message reports exactly how
// much was done.
func TestInterruptedChange(t *testing.T) {
	build(t, many(2500))
	ctx, interrupt := context.WithCancel(t.Context())
	sizes := []int{}
	got := applying(ctx, func(ctx context.Context, queue admin.Admin, _ how, ids []pawl.ID) ([]error, error) {
		sizes = append(sizes, len(ids))
		if len(sizes) == 2 {
			interrupt()
		}
		return queue.Do(ctx, admin.Action{Verb: admin.Retry}, ids...)
	})
	require.Equal(t, outcomeOf{exitInterrupted, "retried 2000, skipped 500\n",
		"error: interrupted: 2000 of 2500 jobs were retried\n  500 jobs not tried; run the command again for the rest.\n"}, got)
	require.Equal(t, []int{1000, 1000}, sizes)
	require.Equal(t, pawl.Ready, look(t, id(2000)).State)
	require.Equal(t, pawl.Dead, look(t, id(2001)).State)
}

// Rule: a user who interrupts the question has changed nothing.
func TestInterruptedQuestion(t *testing.T) {
	build(t, everyState)
	ctx, interrupt := context.WithCancel(t.Context())
	silent, never := io.Pipe()
	defer never.Close()
	got := asOfToday(ctx, interrupting{silent, interrupt}, true, nil, "--db", "app.db", "dead", "retry", "--all")
	require.Equal(t, exitInterrupted, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "error: interrupted\n")
	require.Equal(t, pawl.Dead, look(t, id(1)).State)
}

// interrupting is a terminal whose user interrupts instead of answering.
type interrupting struct {
	io.Reader
	interrupt func()
}

func (i interrupting) Read(b []byte) (int, error) {
	i.interrupt()
	return i.Reader.Read(b)
}

// applying runs "dead retry --all" with another apply.
func applying(ctx context.Context, apply apply) outcomeOf {
	return asOfToday(ctx, nil, false, func(a *app) error {
		jobs := new(jobSelection)
		c := &change{app: a, selection: jobs, all: true, verb: verb{words: "dead retry", do: "retry", did: "retried", states: []pawl.State{pawl.Dead}, apply: apply}}
		jobs.states = c.verb.states
		a.flags = shared{db: "app.db", output: "table", yes: true}
		a.note = func(string) {}
		return c.run(ctx, nil)
	})
}

// breaking serves app.db. The first change whose path ends with end is carried out, and then broken runs instead of an
// answer.
func breaking(t *testing.T, end string, broken func()) (addr string) {
	t.Helper()
	q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	h, err := admin.Handler(admin.Of(q), &admin.HandlerOptions{NoAuth: true})
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, end) {
			h.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		broken()
		panic(http.ErrAbortHandler) // the client gets no answer
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Rule: if it is not known whether a change was made, the message says so, after an interruption too, and tells what
// to look for before the command is repeated. The exit code is not that of an app which nothing has reached.
func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct{ end, line string }{
		{"/enqueue", "job enqueue k"},
		{"/enqueue", "job enqueue --file -"},
		{"/enqueue", "job enqueue --batch"},
		{"/pause", "queue pause email"},
		{"/do", "job delete " + id(6).String()},
	} {
		for _, interrupted := range []bool{false, true} {
			build(t, everyState)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			addr := breaking(t, c.end, func() {
				if interrupted {
					interrupt()
				}
			})
			got := asOfToday(ctx, strings.NewReader(`{"kind":"k"}`), false, nil, append([]string{"--addr", addr}, words(c.line)...)...)
			require.Contains(t, got.stderr, "outcome unknown", c.line)
			require.Contains(t, got.stderr, "before you run the command again", c.line)
			require.NotContains(t, got.stderr, "context canceled")
			if !interrupted {
				require.Equal(t, exitError, got.code, "%s: %s", c.line, got.stderr)
				continue
			}
			require.Equal(t, exitInterrupted, got.code, c.line)
			require.Contains(t, got.stderr, "error: interrupted: ", c.line)
		}
	}
}

// Rule: if it is not known whether a job was enqueued, the message has the ID that it has if it was.
func TestEnqueueOfUnknownOutcomeNamesTheJob(t *testing.T) {
	for _, line := range []string{"job enqueue k", "job enqueue k --unique u --on-conflict replace"} {
		build(t, nil)
		addr := breaking(t, "/enqueue", func() {})
		got := jobctl(t, append([]string{"--addr", addr}, words(line)...)...)
		require.Empty(t, got.stdout)
		stored := strings.TrimSpace(jobctl(t, "--addr", addr, "job", "list", "-o", "ids").stdout)
		if strings.HasSuffix(line, "replace") { // another job may have been replaced
			require.NotContains(t, got.stderr, "'jobctl job show ")
			continue
		}
		require.Contains(t, got.stderr, "'jobctl job show "+stored+"'")
	}
}
