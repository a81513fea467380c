package bolt

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// look is an operation that inspects a transaction and changes nothing.
type look func(*txn)

func (fn look) check(t *txn) error { fn(t); return nil }
func (look) apply(*txn)            {}

// Rule: a transaction compares times by the wall clock alone, as they are in the file. Otherwise the rate of a key would
// not notice that the clock was set back, and would block the jobs of the key for as long.
func TestTransactionsUseTheWallClock(t *testing.T) {
	at := time.Now() // with a reading of the monotonic clock
	q := openTest(t, &Options{Now: func() time.Time { return at }})
	require.NoError(t, q.do(t.Context(), look(func(tx *txn) { require.Equal(t, at.Round(0), tx.now) })))
}

// addOfKey stores jobs of one idempotency key.
func addOfKey(t *testing.T, q *Queue, n int) {
	t.Helper()
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k", IdempotencyKey: "key"}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
}

// mostBlocked puts a gate before the commits of a queue that records the largest number of jobs
// that one commit blocked. Read the result while nothing is requested of the queue.
func mostBlocked(q *Queue) (most *int) {
	most = new(int)
	before := 0
	gateCommits(q).look = func(tx *bbolt.Tx) {
		s, err := openStore(tx)
		if err != nil {
			panic(err)
		}
		now := s.blockedRows()
		*most, before = max(*most, now-before), now
	}
	return most
}

// In one commit a fetch walks over a limited number of jobs, including jobs that stay where
// they are because another job of the same fetch has their key.
func TestWalkIsBounded(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	addOfKey(t, q, 3*settlePortion)
	room := settlePortion
	s := selection{
		request: &pawl.Request{Max: 10, Queues: []string{pawl.DefaultQueue}}, asked: []asked{{queue: 1}}, all: true,
		turns: &turns{queues: make(map[queueNumber]*turn)}, spare: new(spare), allow: allowance{idle: 10}, room: &room,
	}
	var err error
	require.NoError(t, q.do(t.Context(), look(func(tx *txn) { s.t = tx; err = s.run() })))
	require.NoError(t, err)
	require.Len(t, s.jobs, 1)
	require.LessOrEqual(t, len(s.passed), settlePortion+1)
	require.Zero(t, room)
	require.Len(t, fetch(t, q, 10), 1)
	require.Empty(t, fetch(t, q, 10))
	require.Equal(t, 3*settlePortion-1, blockedJobs(t, q))
}

// Jobs behind many jobs of one key are fetched in time, whatever holds that key.
func TestJobsBehindManyOfOneKey(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	addOfKey(t, q, 3*settlePortion)
	last := add(t, q, nil).ID
	holder := fetch(t, q, 10)
	require.Len(t, holder, 1)
	require.Equal(t, last, leaseOne(t, q).ID)
}

// A drain over many jobs of one key ends, one portion per commit: one job is done and all
// others are skipped.
func TestDrainOfManyJobsOfOneKey(t *testing.T) {
	const jobs = 2000
	events := make(map[pawl.EventType]int)
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), &Options{
		Logger: hclog.NewNullLogger(), OnEvent: func(e pawl.Event) { events[e.Type]++ },
	})
	most := mostBlocked(q)
	addOfKey(t, q, jobs)
	for {
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 10, Wait: pawl.WaitDrained})
		if err != nil {
			require.ErrorIs(t, err, pawl.ErrEmpty)
			break
		}
		require.Len(t, leases, 1)
		require.Empty(t, fetch(t, q, 10), "the others are blocked")
		require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
	}
	require.NoError(t, q.Close())
	require.Equal(t, map[pawl.EventType]int{
		pawl.EventEnqueued: jobs, pawl.EventFetched: 1, pawl.EventSucceeded: 1, pawl.EventSkipped: jobs - 1,
	}, events)
	require.Equal(t, settlePortion, *most)
}

// However many fetches wait, the number of jobs that they block in one commit is limited.
func TestManyFetchesShareTheRoomOfACommit(t *testing.T) {
	const fetches = 20
	path := filepath.Join(memoryFolder(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, path, nil)
		most := mostBlocked(q)
		addOfKey(t, q, 1)
		holder := leaseOne(t, q)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, fetches)
		for range fetches {
			go func() { _, err := q.Fetch(ctx, pawl.Request{Max: 10}); errs <- err }()
		}
		synctest.Wait()
		addOfKey(t, q, 4*settlePortion)
		synctest.Wait()
		require.Equal(t, 4*settlePortion, blockedJobs(t, q))
		require.Equal(t, settlePortion, *most)
		require.NoError(t, q.Settle(t.Context(), holder.Ack()))
		synctest.Wait()
		cancel()
		for range fetches {
			require.ErrorIs(t, <-errs, pawl.ErrNotAccepted)
		}
		require.Zero(t, countsOf(t, q, pawl.DefaultQueue), "they are skipped once the key is done")
	})
}
