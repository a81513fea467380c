package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
)

// All matching jobs are counted, shown in a question on a terminal, and retried after a yes.
func TestRetryAllAsks(t *testing.T) {
	for answer, yes := range map[string]bool{"y\n": true, "YES\n": true, "y": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			build(t, everyState)
			got := asked(t, strings.NewReader(answer), "--db", "app.db", "dead", "retry", "--all")
			question := "2 jobs match (state=dead).\nRetry them? Type y: "
			if !strings.HasSuffix(answer, "\n") {
				question += "\n" // which the user did not type
			}
			if yes {
				require.Equal(t, outcomeOf{0, "retried 2, skipped 0\n", question + orphanNote}, got)
				require.Equal(t, pawl.Ready, look(t, id(1)).State)
				return
			}
			require.Equal(t, outcomeOf{exitError, "", question + "error: not confirmed, nothing was changed\n"}, got)
			require.Equal(t, pawl.Dead, look(t, id(1)).State)
			require.Equal(t, pawl.Leased, look(t, id(4)).State)
		})
	}
}

// The question repeats the filter, and nothing else is retried.
func TestRetryAllThatMatch(t *testing.T) {
	build(t, everyState)
	got := asked(t, strings.NewReader("y\n"), "--db", "app.db", "dead", "retry", "--all", "-q", "email", "-k", "mail.send")
	require.Equal(t, outcomeOf{0, "retried 1, skipped 0\n", "1 job matches (queue=email kind=mail.send state=dead).\nRetry it? Type y: " + orphanNote}, got)
	require.Equal(t, pawl.Dead, look(t, id(2)).State)
	require.Equal(t, exitNoMatch, jobctl(t, "--db", "app.db", "dead", "retry", "--all", "-y", "-k", "mail.send").code)

	got = asked(t, strings.NewReader("y\n"), "--db", "app.db", "dead", "retry", "--all", "-q", "email")
	require.Equal(t, outcomeOf{exitNoMatch, "", "error: no job matches (queue=email state=dead)\n  'jobctl dead list' shows the dead jobs of all queues.\n"}, got)
}

// Without a terminal, or with output for a program, -y is required instead, before the file is
// read.
func TestRetryAllDoesNotAskPrograms(t *testing.T) {
	const see = "\n  See 'jobctl dead retry --help'.\n"
	require.Equal(t, outcomeOf{exitUsage, "", "error: there is no terminal for the question; add -y to retry all that match" + see},
		piped(t, "y\n", "--db", "missing.db", "dead", "retry", "--all"))
	require.Equal(t, outcomeOf{exitUsage, "", "error: -o json does not ask; add -y to retry all that match" + see},
		asked(t, strings.NewReader("y\n"), "--db", "missing.db", "dead", "retry", "--all", "-o", "json"))
	require.False(t, exists("missing.db"))
}

// An empty filter, for example from a script's -q "$Q", is refused: it would select all jobs.
func TestRetryRefusesAnEmptyFilter(t *testing.T) {
	build(t, everyState)
	for _, flag := range []string{"-q", "-k", "--kind"} {
		got := jobctl(t, "--db", "app.db", "dead", "retry", "--all", "-y", flag, "")
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.stderr, "is empty")
	}
	require.Equal(t, pawl.Dead, look(t, id(1)).State)
}

// Nothing is locked while the user thinks: the file may change in the meantime, and changed jobs
// are skipped.
func TestRetryAllSkipsWhatChanged(t *testing.T) {
	build(t, everyState)
	got := asked(t, thinking(func() string {
		q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		require.NoError(t, q.Retry(context.Background(), id(1), false))
		require.NoError(t, q.Close())
		return "y\n"
	}), "--db", "app.db", "dead", "retry", "--all")
	require.Equal(t, exitOK, got.code)
	require.Equal(t, "retried 1, skipped 1\n", got.stdout)
}

// A file that disappeared in the meantime is not created.
func TestRetryAllCreatesNoFile(t *testing.T) {
	build(t, everyState)
	got := asked(t, thinking(func() string {
		require.NoError(t, os.Remove("app.db"))
		return "y\n"
	}), "--db", "app.db", "dead", "retry", "--all")
	require.Equal(t, exitError, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "error: app.db: no such file\n")
	require.False(t, exists("app.db"))
}

// thinking is a terminal where something happens before the answer.
type thinking func() string

func (f thinking) Read(p []byte) (int, error) { return copy(p, f()), io.EOF }

// A damaged dead job does not stop the others, and is reported.
func TestRetryAllPassesOverDamage(t *testing.T) {
	build(t, everyState)
	spoil(t, "app.db", id(1))
	got := jobctl(t, "--db", "app.db", "dead", "retry", "--all", "-y")
	require.Equal(t, exitDamaged, got.code)
	require.Equal(t, "retried 1, skipped 0\n", got.stdout)
	require.Contains(t, got.stderr, "1 damaged job could not be read and was skipped:\n  job "+id(1).String())
	require.Equal(t, pawl.Ready, look(t, id(2)).State)

	got = jobctl(t, "--db", "app.db", "dead", "retry", "--all", "-y")
	require.Equal(t, exitDamaged, got.code, "damage is told although nothing matches any more")
	got = jobctl(t, "--db", "app.db", "dead", "retry", id(1).String())
	require.Equal(t, exitDamaged, got.code)
}

// Many dead jobs share commits, and none is forgotten.
func TestRetryMany(t *testing.T) {
	const jobs = 1000
	build(t, func(f *file) {
		batch := make([]*pawl.Envelope, jobs)
		for i := range batch {
			batch[i] = &pawl.Envelope{Kind: "k"}
		}
		ctx := context.Background()
		require.NoError(t, withid.Enqueue(ctx, f.q, batch...))
		leases, err := f.q.Fetch(ctx, pawl.Request{Max: jobs, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.Len(t, leases, jobs)
		done := make(chan error)
		for _, l := range leases {
			go func() { done <- f.q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, nil)) }()
		}
		for range leases {
			require.NoError(t, <-done)
		}
	})
	require.Equal(t, outcomeOf{0, "retried 1000, skipped 0\n", ""}, jobctl(t, "--db", "app.db", "dead", "retry", "--all", "-y"))
	require.Equal(t, outcomeOf{0, "", "no jobs match\n"}, jobctl(t, "--db", "app.db", "dead", "list"))
}
