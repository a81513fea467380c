package postgres_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// seldom makes a client poll so seldom that within a test it learns of changes only by
// notifications.
func seldom(o *postgres.Options) { o.Poll = 24 * time.Hour }

// waiting starts a fetch, and returns when it waits.
func waiting(t *testing.T, q *postgres.Queue, schema, queue string) chan *pawl.Lease {
	t.Helper()
	commits := "SELECT sum(commits) FROM " + schema + ".process"
	before, got := count(t, commits), make(chan *pawl.Lease, 1)
	go func() {
		defer close(got)
		leases, err := q.Fetch(patient(t), pawl.Request{Queues: []string{queue}, Max: 1})
		if err != nil {
			t.Errorf("fetch: %v", err)
			return
		}
		got <- leases[0]
	}()
	require.Eventually(t, func() bool { return count(t, commits) > before }, time.Minute, time.Millisecond, "it waits")
	return got
}

// Rule: a fetch that waits gets what another client enqueues, and what another client promotes or
// resumes, without a poll.
func TestDoorbell(t *testing.T) {
	schema := newSchema(t)
	one, other := open(t, schema, seldom), open(t, schema, seldom)
	got := waiting(t, other, schema, "q")
	e := &pawl.Envelope{Kind: "k", Queue: "q"}
	require.NoError(t, withid.Enqueue(t.Context(), one, e))
	l := <-got
	require.NotNil(t, l)
	require.Equal(t, e.ID, l.ID)
	require.NoError(t, other.Settle(t.Context(), l.Ack()))

	got = waiting(t, other, schema, "q")
	e = &pawl.Envelope{Kind: "k", Queue: "q", Delay: 50 * time.Millisecond}
	require.NoError(t, withid.Enqueue(t.Context(), one, e))
	l = <-got
	require.NotNil(t, l)
	require.Equal(t, e.ID, l.ID)
	require.NoError(t, other.Settle(t.Context(), l.Ack()))

	require.NoError(t, one.Pause(t.Context(), "q"))
	e = &pawl.Envelope{Kind: "k", Queue: "q"}
	require.NoError(t, withid.Enqueue(t.Context(), one, e))
	got = waiting(t, other, schema, "q")
	require.NoError(t, one.Resume(t.Context(), "q"))
	l = <-got
	require.NotNil(t, l)
	require.Equal(t, e.ID, l.ID)
}

// listens returns a function that waits until the next client of a schema listens.
func listens(t *testing.T, schema string) (wait func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), "LISTEN pawl_"+schema)
	require.NoError(t, err)
	return func() {
		t.Helper()
		var m struct{ Hello bool }
		for !m.Hello {
			n, err := conn.WaitForNotification(patient(t))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal([]byte(n.Payload), &m))
		}
	}
}

// Rule: the signal of a lease fires when another client cancels its job, before it is extended.
func TestDoorbellReportsACancellation(t *testing.T) {
	schema := newSchema(t)
	wait := listens(t, schema)
	holder := open(t, schema, seldom)
	wait()
	require.NoError(t, withid.Enqueue(t.Context(), holder, &pawl.Envelope{Kind: "k"}))
	l := fetchOne(t, holder)
	fired := make(chan struct{})
	l.Cancelled.OnFire(func() { close(fired) })
	require.NoError(t, open(t, schema, seldom).Cancel(t.Context(), l.ID), "it knows of no other process yet")
	select {
	case <-fired:
	case <-patient(t).Done():
		t.Fatal("the signal did not fire")
	}
}

// Rule: a client whose connection for notifications broke listens again, and finds what it missed.
func TestDoorbellConnectsAgain(t *testing.T) {
	schema := newSchema(t)
	one, other := open(t, schema, seldom), open(t, schema, seldom)
	for range 3 {
		got := waiting(t, other, schema, "q")
		execute(t, breakConnections)
		e := &pawl.Envelope{Kind: "k", Queue: "q"}
		require.NoError(t, withid.Enqueue(t.Context(), one, e))
		l := <-got
		require.NotNil(t, l)
		require.Equal(t, e.ID, l.ID)
		require.NoError(t, other.Settle(t.Context(), l.Ack()))
	}
}
