package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/examples/internal/itself"
)

func TestMain(m *testing.M) { itself.Main(main, m.Run) }

// webhook runs the program in this process.
func webhook(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// refused maps the events out of 40 that the endpoint never takes to the reason and the attempts in
// its comment; 0 attempts means any number.
var refused = map[int]struct {
	reason   pawl.Reason
	attempts int
	err      string
}{
	3: {pawl.ReasonPermanent, 0, "422"}, 13: {pawl.ReasonPermanent, 0, "422"},
	23: {pawl.ReasonPermanent, 0, "422"}, 33: {pawl.ReasonPermanent, 0, "422"},
	20: {pawl.ReasonExhausted, 7, "500"}, 40: {pawl.ReasonExhausted, 7, "500"},
}

// requireOutcome requires that the file holds only the refused events, dead for their reasons. It
// returns their keys.
func requireOutcome(t *testing.T, state string) (keys []string) {
	t.Helper()
	q, err := bolt.OpenReader(state)
	require.NoError(t, err)
	defer q.Close()
	for job, err := range dlq.List(t.Context(), q, pawl.Filter{}) {
		require.NoError(t, err)
		event, err := deliver.Job(job)
		require.NoError(t, err)
		want, ok := refused[event.Args.Number]
		require.True(t, ok, "event %d is dead: %+v", event.Args.Number, job.History)
		require.Equal(t, want.reason, job.Death.Reason)
		if want.attempts > 0 {
			require.Equal(t, want.attempts, job.Attempts)
		}
		require.Contains(t, job.History[len(job.History)-1].Error, want.err)
		keys = append(keys, job.IdempotencyKey)
	}
	require.Len(t, keys, len(refused))
	for job, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		require.Equal(t, pawl.Dead, job.State)
	}
	return keys
}

// number returns the number that a pattern finds in the report.
func number(t *testing.T, report, pattern string) int {
	t.Helper()
	found := regexp.MustCompile("(?m)^" + pattern).FindStringSubmatch(report)
	require.Len(t, found, 2, "%s in\n%s", pattern, report)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

// Rule: the program ends by itself, the endpoint took every valid event once, the others are dead
// with a reason, and the report says so.
func TestDeliversAll(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "queue.db")
	code, out, errs := webhook(t.Context(), "-state", state)
	require.Equal(t, 0, code, errs)
	require.Equal(t, 34, number(t, out, `delivered +(\d+)`))
	require.Equal(t, 4, number(t, out, `skipped +(\d+)`))
	require.Equal(t, 6, number(t, out, `dead +(\d+)`))
	require.Equal(t, 34, number(t, out, `endpoint +(\d+) +events taken`))
	// A slow machine has more timeouts.
	timedOut, retried := number(t, out, `timed out +(\d+)`), number(t, out, `retried +(\d+)`)
	require.GreaterOrEqual(t, timedOut, 8, "events 5, 9, 15, …")
	require.GreaterOrEqual(t, retried, 4+4+2*4+4+2*6+1, "events 5, 9, 7, 8 and 20, and the outage")
	require.GreaterOrEqual(t, number(t, out, ` +(\d+) +requests for events taken before`), 4, "events 9, 19, …")
	if timedOut == 8 {
		require.Equal(t, 34+retried+6, number(t, out, ` +(\d+) +requests in total`), "each attempt is one request")
	}
	requireOutcome(t, state)
	for n, want := range refused {
		require.Regexp(t, fmt.Sprintf(`(?m)^[0-9a-f-]{36}  webhook.deliver  %d +%s +\d +http://\S+ answered %s `, n, want.reason, want.err), out)
	}
}

// Rule: after a kill and an interrupt, a start with the same state continues and loses no event.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "queue.db")
	e, err := startEndpoint()
	require.NoError(t, err)
	defer e.Close()
	args := []string{"-state", state, "-url", e.URL()}
	reached := func(n int) {
		require.Eventually(t, func() bool { requests, _, _ := e.seen(); return requests >= n },
			time.Minute, time.Millisecond)
	}

	child := itself.Command(t.Context(), args...)
	require.NoError(t, child.Start())
	reached(15)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		code, _, _ := webhook(ctx, args...)
		ended <- code
	}()
	reached(40)
	interrupt()
	require.Equal(t, 130, <-ended)

	code, out, errs := webhook(t.Context(), args...)
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `^continuing with \d+ events\n`, out)
	require.NotContains(t, out, "endpoint  ", "its counts are unknown")
	_, taken, _ := e.seen()
	require.Equal(t, 34, taken)
	for _, key := range requireOutcome(t, state) {
		require.NotContains(t, e.taken, key)
	}
}

// Rule: invalid input gets a clear error and exit code 2.
func TestBadInput(t *testing.T) {
	for text, args := range map[string][]string{
		"is not a flag":               {"now"},
		"is not an http or https URL": {"-url", "ftp://localhost"},
		"-n is not between 1":         {"-n", "0"},
		"-j and -timeout must":        {"-timeout", "0s"},
		"flag provided but not":       {"-x"},
	} {
		code, _, errs := webhook(t.Context(), args...)
		require.Equal(t, 2, code)
		require.Contains(t, errs, text)
	}
	code, _, _ := webhook(t.Context(), "-h")
	require.Equal(t, 0, code)
	code, _, errs := webhook(t.Context(), "-state", filepath.Join(t.TempDir(), "no", "folder"))
	require.Equal(t, 1, code)
	require.Contains(t, errs, "error: ")
}

// Rule: with -v the queue and the worker log to the program's logger.
func TestVerbose(t *testing.T) {
	code, _, errs := webhook(t.Context(), "-v", "-n", "3")
	require.Equal(t, 0, code)
	require.Regexp(t, `(?m)^time=\S+ level=ERROR msg=.*answered 422`, errs)
}
