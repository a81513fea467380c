package bolt

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: a lease on a queue with a damaged row refuses only its own settlement, and no other of
// the same call.
func TestSettleBesideADamagedLine(t *testing.T) {
	q, err := Open(filepath.Join(memoryFolder(t), "jobs.db"), quiet())
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	for _, name := range []string{"good", "bad"} {
		add(t, q, func(e *pawl.Envelope) { e.Queue, e.Kind = name, name })
	}
	good, bad := leaseOne(t, q, "good"), leaseOne(t, q, "bad")
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		s, err := openStore(tx)
		require.NoError(t, err)
		queue, _, err := s.number("bad")
		require.NoError(t, err)
		kind, _, err := s.kind("bad")
		require.NoError(t, err)
		b, key := tx.Bucket(bucketRoot).Bucket(bucketQueues), lineKey(nil, line{queue, kind})
		row := bytes.Clone(b.Get(key))
		row[0] ^= 1
		return b.Put(key, row)
	}))
	var part *pawl.SettleError
	require.ErrorAs(t, q.Settle(t.Context(), good.Ack(), bad.Nack(0, nil)), &part)
	require.Len(t, part.Failed, 1)
	require.ErrorIs(t, part.Failed[bad], pawl.ErrCorrupt)
	require.Nil(t, find(t, q, good.ID))
}

// Rule: the event of a cancelled job that is released says why the job is dead.
func TestCauseOfACancelledRelease(t *testing.T) {
	var events []pawl.Event
	opts := quiet()
	opts.OnEvent = func(e pawl.Event) { events = append(events, e) }
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), opts)
	add(t, q, nil)
	l := leaseOne(t, q)
	require.NoError(t, q.Cancel(t.Context(), l.ID))
	require.NoError(t, q.Settle(t.Context(), l.Release()))
	last := events[len(events)-1]
	require.Equal(t, pawl.EventDied, last.Type)
	require.Equal(t, "it was cancelled", last.Cause)
}

// Rule: the texts of failures count as bytes that a settlement writes.
func TestSizeOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		const half = maxGroupBytes/pawl.MaxErrorText/2 + 1 // two calls of so many failures are too much for a commit
		jobs := make([]*pawl.Envelope, 2*half)
		for i := range jobs {
			jobs[i] = &pawl.Envelope{Kind: "k", MaxRetries: 3}
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
		var leases []*pawl.Lease
		for len(leases) < len(jobs) {
			leases = append(leases, fetch(t, q, len(jobs))...)
		}
		cause := errors.New(strings.Repeat("x", pawl.MaxErrorText))
		nacks := make([]pawl.Settlement, len(leases))
		for i, l := range leases {
			nacks[i] = l.Nack(0, cause)
		}
		release := g.occupy(q)
		first := started(func() error { return q.Settle(t.Context(), nacks[:half]...) })
		synctest.Wait()
		second := started(func() error { return q.Settle(t.Context(), nacks[half:]...) })
		synctest.Wait()
		before := g.commits.Load()
		release()
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Equal(t, before+2, g.commits.Load())
	})
}
