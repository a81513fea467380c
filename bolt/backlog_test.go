package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// waitingPerKey are options that bound how many jobs of a key wait, and of the default queue.
func waitingPerKey(n, all int) *Options {
	return &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {MaxWaiting: all, MaxWaitingPerKey: n}}}
}

// Rule: a transaction of the app counts what it has enqueued already. A refusal leaves it unchanged, so that it
// can continue and commit.
func TestFullQueueInATransactionOfTheApp(t *testing.T) {
	q := openTest(t, waitingPerKey(2, 3))
	job := func(key string) *pawl.Envelope { return &pawl.Envelope{Kind: "k", Key: key} }
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		_, err := q.EnqueueTx(tx, job("a"), job("a"))
		require.NoError(t, err)
		_, err = q.EnqueueTx(tx, job("a"))
		require.ErrorIs(t, err, pawl.ErrQueueFull)
		require.ErrorContains(t, err, "MaxWaitingPerKey is 2")
		_, err = q.EnqueueTx(tx, job(""))
		require.NoError(t, err)
		_, err = q.In(tx).Enqueue(t.Context(), job(""))
		require.ErrorIs(t, err, pawl.ErrQueueFull)
		require.ErrorContains(t, err, "MaxWaiting is 3")
		return nil
	}))
	require.Equal(t, 3, countsOf(t, q, pawl.DefaultQueue).Ready)
	checkNow(t, q)
	k, err := q.Key(t.Context(), pawl.DefaultQueue, "a")
	require.NoError(t, err)
	require.Equal(t, 2, k.Backlog)
}

// Rule: a damaged count of the waiting jobs of a key is corrected by the next move of one of its jobs.
func TestDamagedBacklogOfAKey(t *testing.T) {
	for name, move := range map[string]func(t *testing.T, q *Queue, l *pawl.Lease, jobs []*pawl.Envelope){
		"enqueue":        func(t *testing.T, q *Queue, _ *pawl.Lease, _ []*pawl.Envelope) { addKeyed(t, q, 1, "a") },
		"fetch":          func(t *testing.T, q *Queue, _ *pawl.Lease, _ []*pawl.Envelope) { require.Len(t, fetch(t, q, 1), 1) },
		"end of a wait":  func(t *testing.T, q *Queue, _ *pawl.Lease, jobs []*pawl.Envelope) { cancelJob(t, q, jobs[1]) },
		"end of a delay": func(t *testing.T, q *Queue, _ *pawl.Lease, jobs []*pawl.Envelope) { cancelJob(t, q, jobs[2]) },
		"release":        func(t *testing.T, q *Queue, l *pawl.Lease, _ []*pawl.Envelope) { release(t, q, l) },
		"nack": func(t *testing.T, q *Queue, l *pawl.Lease, _ []*pawl.Envelope) {
			require.NoError(t, q.Settle(t.Context(), l.Nack(time.Hour, nil)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, waitingPerKey(3, 100))
			jobs := addKeyed(t, q, 2, "a")
			jobs = append(jobs, add(t, q, func(e *pawl.Envelope) { e.Key, e.Delay = "a", time.Hour }))
			l := fetch(t, q, 1)[0]
			flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
			move(t, q, l, jobs)
			checkNow(t, q)
			for n := range 3 {
				_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Key: "a"})
				if c := countsOf(t, q, pawl.DefaultQueue); n == 2 || c.Ready+c.Delayed == 3 && err != nil {
					require.ErrorIs(t, err, pawl.ErrQueueFull)
					require.Equal(t, 3, c.Ready+c.Delayed)
				}
			}
			checkNow(t, q)
		})
	}
}

// Rule: damaged counts of one kind refuse no job of another kind of the queue.
func TestFullQueueWithDamagedCounts(t *testing.T) {
	q := openTest(t, waitingPerKey(0, 100))
	addKeyed(t, q, 3, "")
	var bad []byte
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		x, err := begin(tx, q.now(), settings{})
		bad = lineKey(nil, line{x.numberOf(pawl.DefaultQueue), x.kindOf("k")})
		return err
	}))
	undo := flip(t, q, bucketQueues, bad)
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "another"})
	require.NoError(t, err)
	undo()
}

// Rule: a salvage recounts the waiting jobs of each key, wherever they wait.
func TestSalvageCountsWaitingJobsAnew(t *testing.T) {
	from := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(from, waitingPerKey(3, 0))
	require.NoError(t, err)
	first := addKeyed(t, q, 1, "a")[0]
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Key: "a", Delay: time.Hour}, &pawl.Envelope{Kind: "k", Key: "a", After: []pawl.ID{first.ID}})
	require.NoError(t, err)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketRoot).Bucket(bucketKeys).Delete(limitKey(nil, 1, "a"))
	}))
	require.NoError(t, q.Close())
	to := from + ".new"
	_, err = Salvage(t.Context(), from, to)
	require.NoError(t, err)
	checkFile(t, to)
	q = openAt(t, to, nil)
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Key: "a"})
	require.ErrorIs(t, err, pawl.ErrQueueFull)
}

// Rule: a check finds a wrong count of the waiting jobs of a key.
func TestCheckFindsAWrongBacklog(t *testing.T) {
	q := openTest(t, waitingPerKey(3, 0))
	addKeyed(t, q, 2, "a")
	changeRows(t, q, bucketKeys, func([]byte) bool { return true }, func(v []byte) []byte {
		key := limitKey(nil, 1, "a")
		row, err := parseKeyRow(key, v)
		require.NoError(t, err)
		row.backlog = 1
		return seal(key, row.append(nil))
	})
	require.ErrorContains(t, q.Check(t.Context()), "counts 1 waiting jobs, a scan finds 2")
	changeRows(t, q, bucketKeys, func([]byte) bool { return true }, func(v []byte) []byte {
		key := limitKey(nil, 1, "a")
		row, err := parseKeyRow(key, v)
		require.NoError(t, err)
		row.backlog = 2
		return seal(key, row.append(nil))
	})
}
