package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: two fetches wait for room in the pool of one queue, and there is a job for only one of them. The other one does
// not take back the note of the process, so the job starts when there is room.
func TestFetchesOfOtherKindsBesidePool(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, seldom, inPool)
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Queue: "b"}, &pawl.Envelope{Kind: "k", Queue: "a"}))
	ctx, stop := context.WithCancel(patient(t))
	running, err := q.Fetch(ctx, pawl.Request{Queues: []string{"b"}, Max: 1})
	require.NoError(t, err)
	got, ended := make(chan *pawl.Lease, 1), make(chan struct{}, 2)
	for _, kind := range []string{"k", "other"} {
		go func() {
			leases, err := q.Fetch(ctx, pawl.Request{Queues: []string{"a"}, Kinds: []string{kind}, Max: 1})
			if err == nil {
				got <- leases[0]
			}
			ended <- struct{}{}
		}()
	}
	defer func() { stop(); <-ended; <-ended }()
	wait := "SELECT count(*) FROM " + schema + ".limits WHERE pool_until > 0"
	require.Eventually(t, func() bool { return count(t, wait) == 1 }, time.Minute, time.Millisecond, "a waits")
	for range 20 { // each has both fetches look again
		enqueue, stop := context.WithTimeout(ctx, time.Minute)
		require.NoError(t, withid.Enqueue(enqueue, q, &pawl.Envelope{Kind: "k", Queue: "c"}))
		stop()
		require.EqualValues(t, 1, count(t, wait))
	}
	require.NoError(t, q.Settle(ctx, running[0].Ack()))
	require.Equal(t, "k", (<-got).Kind)
}

// Rule: a queue whose fetch no longer finds a job no longer waits for room in its pool, so the other queues leave
// nothing to it.
func TestNoteOfPoolIsTakenBack(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, seldom, inPool)
	blocked := &pawl.Envelope{Kind: "k", Queue: "a"}
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Queue: "b"}, blocked))
	ctx, stop := context.WithCancel(patient(t))
	_, err := q.Fetch(ctx, pawl.Request{Queues: []string{"b"}, Max: 1})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = q.Fetch(ctx, pawl.Request{Queues: []string{"a"}, Max: 1})
	}()
	defer func() { stop(); <-done }()
	wait := "SELECT count(*) FROM " + schema + ".limits WHERE pool_until > 0"
	require.Eventually(t, func() bool { return count(t, wait) == 1 }, time.Minute, time.Millisecond, "a waits")
	require.NoError(t, q.Cancel(t.Context(), blocked.ID))
	require.EqualValues(t, 0, count(t, wait))
}
