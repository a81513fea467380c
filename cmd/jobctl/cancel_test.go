package main

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
)

// serveApp serves app.db of the current folder from this process, until the test ends.
func serveApp(t *testing.T) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	server, err := admin.Serve(q, &admin.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, q.Close())
	})
	return q
}

// Rule: a running job that was asked to end is not cancelled yet: the output reports that, for
// people and for programs, and it is not a failure.
func TestCancelOfRunningJobIsRequest(t *testing.T) {
	t.Chdir(t.TempDir())
	q := serveApp(t)
	for n := 1; n <= 2; n++ {
		require.NoError(t, withid.Enqueue(context.Background(), q, &pawl.Envelope{ID: id(n), Kind: "mail.send"}))
	}
	leases, err := q.Fetch(context.Background(), pawl.Request{Max: 1, Wait: pawl.WaitNot}) // by a handler that is stuck
	require.NoError(t, err)
	require.Equal(t, id(1), leases[0].ID)

	got := jobctl(t, "--db", "app.db", "job", "cancel", id(1).String(), id(2).String())
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Equal(t, "cancelled 1, asked to cancel 1, skipped 0\n", got.stdout)
	require.Contains(t, got.stderr, "stays leased until then")

	got = jobctl(t, "--db", "app.db", "-o", "json", "job", "cancel", id(1).String())
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, `"cancelled": 0`)
	require.Contains(t, got.stdout, `"asked_to_cancel": 1`)
	require.Contains(t, got.stdout, `"result": "asked_to_cancel"`)
	require.Empty(t, jobctl(t, "--db", "app.db", "-o", "ids", "job", "cancel", id(1).String()).stdout)

	for _, l := range leases {
		require.NoError(t, q.Settle(context.Background(), l.Ack()))
	}
}

// Rule: job cancel --cascade also cancels the jobs that wait for the success of a named one, directly or through
// others, in a live app and in a stopped file. Jobs that wait for any end run. What an interruption left is
// cancelled by the same command, although the named job is dead then.
func TestCancelCascades(t *testing.T) {
	for _, live := range []bool{true, false} {
		t.Chdir(t.TempDir())
		q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		jobs := []*pawl.Envelope{
			{ID: id(1), Kind: "fetch"}, {ID: id(2), Kind: "build", After: []pawl.ID{id(1)}},
			{ID: id(3), Kind: "report", AfterAny: []pawl.ID{id(1)}}, {ID: id(4), Kind: "publish", After: []pawl.ID{id(2), id(3)}},
			{ID: id(5), Kind: "bystander"},
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
		require.NoError(t, q.Close())
		if live {
			serveApp(t)
		}
		got := jobctl(t, "--db", "app.db", "-o", "ids", "job", "cancel", "--cascade", "--dry-run", id(1).String())
		require.Equal(t, exitOK, got.code, got.stderr)
		require.Equal(t, id(1).String()+"\n"+id(2).String()+"\n"+id(4).String()+"\n", got.stdout)

		got = jobctl(t, "--db", "app.db", "job", "cancel", id(1).String()) // as far as it came before an interruption
		require.Equal(t, "cancelled 1, skipped 0\n", got.stdout, got.stderr)
		got = jobctl(t, "--db", "app.db", "job", "cancel", "--cascade", id(1).String())
		require.Equal(t, exitConflict, got.code)
		require.Equal(t, "cancelled 2, skipped 1\n", got.stdout, got.stderr)
		got = jobctl(t, "--db", "app.db", "-o", "ids", "job", "list", "-s", "ready")
		require.Equal(t, id(3).String()+"\n"+id(5).String()+"\n", got.stdout, got.stderr)
	}
	got := jobctl(t, "--db", "app.db", "job", "cancel", "--cascade", "-k", "fetch", "-y")
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.stderr, "--cascade was given without an ID")
}
