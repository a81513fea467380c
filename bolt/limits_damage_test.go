package bolt

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// flip damages the value of a row of a bucket, and returns what undoes that.
func flip(t *testing.T, q *Queue, bucket, key []byte) (undo func()) {
	t.Helper()
	var sound []byte
	change := func(fn func(b *bbolt.Bucket) error) {
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return fn(tx.Bucket(bucketRoot).Bucket(bucket)) }))
	}
	change(func(b *bbolt.Bucket) error {
		sound = bytes.Clone(b.Get(key))
		damaged := bytes.Clone(sound)
		damaged[0] ^= 0xff
		return b.Put(key, damaged)
	})
	return func() { change(func(b *bbolt.Bucket) error { return b.Put(key, sound) }) }
}

// Rule: a damaged count of a key is made again from the jobs, whatever finds the damage. No job of
// the key stays blocked, and not one more runs at a time.
func TestDamagedCountOfAKey(t *testing.T) {
	for name, find := range map[string]func(t *testing.T, q *Queue, leased []*pawl.Lease, jobs []*pawl.Envelope){
		"end of a lease":   func(*testing.T, *Queue, []*pawl.Lease, []*pawl.Envelope) {},
		"end of a ready":   func(t *testing.T, q *Queue, _ []*pawl.Lease, jobs []*pawl.Envelope) { cancelJob(t, q, jobs[2]) },
		"end of a blocked": func(t *testing.T, q *Queue, _ []*pawl.Lease, jobs []*pawl.Envelope) { cancelJob(t, q, jobs[7]) },
		"enqueue":          func(t *testing.T, q *Queue, _ []*pawl.Lease, _ []*pawl.Envelope) { addKeyed(t, q, 1, "a") },
		"fetch":            func(t *testing.T, q *Queue, _ []*pawl.Lease, _ []*pawl.Envelope) { require.Empty(t, fetch(t, q, 9)) },
		"release":          func(t *testing.T, q *Queue, l []*pawl.Lease, _ []*pawl.Envelope) { release(t, q, l[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, perKey(2))
			jobs := addKeyed(t, q, 8, "a")
			leased := fetch(t, q, 9)
			require.Len(t, leased, 2)
			flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
			find(t, q, leased, jobs)
			if name != "release" {
				require.NoError(t, q.Settle(t.Context(), leased[1].Ack()))
			}
			left := countsOf(t, q, pawl.DefaultQueue).Ready
			for done := 0; done < left; {
				more := fetch(t, q, 9)
				require.Len(t, more, 1, "one place was free, after %d jobs", done)
				require.NoError(t, q.Settle(t.Context(), more[0].Ack()))
				done++
			}
			require.Empty(t, fetch(t, q, 9))
			require.Equal(t, 1, countsOf(t, q, pawl.DefaultQueue).Leased)
		})
	}
}

func cancelJob(t *testing.T, q *Queue, e *pawl.Envelope) {
	t.Helper()
	require.NoError(t, q.Cancel(t.Context(), e.ID))
}

func release(t *testing.T, q *Queue, l *pawl.Lease) {
	t.Helper()
	require.NoError(t, q.Settle(t.Context(), l.Release()))
}

// Rule: the damaged count of one kind keeps the limit of its queue, and stops neither the other
// kinds nor the other queues.
func TestDamagedCountOfALimitedQueue(t *testing.T) {
	q := openTest(t, &Options{Limits: map[string]pawl.Limits{"x": {Running: 2}}})
	at := func(queue, kind string) {
		add(t, q, func(e *pawl.Envelope) { e.Queue, e.Kind = queue, kind })
	}
	at("x", "bad")
	request := pawl.Request{Queues: []string{"x", "y"}, Max: 9, Wait: pawl.WaitNot}
	first, err := q.Fetch(t.Context(), request)
	require.NoError(t, err)
	require.Len(t, first, 1)
	at("x", "bad")
	at("x", "good")
	at("x", "good")
	at("y", "good")
	var bad []byte
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		x, err := begin(tx, q.now(), settings{})
		bad = lineKey(nil, line{x.numberOf("x"), x.kindOf("bad")})
		return err
	}))
	undo := flip(t, q, bucketQueues, bad)
	leases, err := q.Fetch(t.Context(), request)
	require.NoError(t, err)
	got := make(map[string]int)
	for _, l := range leases {
		got[l.Queue+" "+l.Kind]++
	}
	require.Equal(t, map[string]int{"x good": 1, "y good": 1}, got)
	undo()
}

// Rule: the end of a lease that frees an idempotency key respects the limit of its own key, even if it finds the
// count of another key damaged.
func TestDamagedCountOfTheKeyBehindAnEffect(t *testing.T) {
	q := openTest(t, perKey(2))
	keyed := func(key, effect string) *pawl.Envelope {
		return add(t, q, func(e *pawl.Envelope) { e.Key, e.IdempotencyKey = key, effect })
	}
	first := keyed("a", "effect")
	keyed("a", "")
	third := keyed("a", "")
	keyed("a", "")
	keyed("b", "")
	behind := keyed("b", "effect")
	leases := fetch(t, q, 9)
	require.Len(t, leases, 3)
	require.Equal(t, first.ID, leases[0].ID)
	require.Empty(t, fetch(t, q, 9)) // which blocks the job behind the effect
	flip(t, q, bucketKeys, limitKey(nil, 1, "b"))
	require.NoError(t, q.Settle(t.Context(), leases[0].Release()))
	next := fetch(t, q, 9)
	require.Len(t, next, 1, "the released job again; %s waits for the key, and %s for the effect", third.ID, behind.ID)
	require.Equal(t, first.ID, next[0].ID)
}

// Rule: a recount of the jobs of a key includes a leased job whose record is damaged, so no other job of the key runs
// beside it, and the next one runs when it has ended.
func TestCountOfALeaseWhoseRecordIsDamaged(t *testing.T) {
	for name, o := range map[string]*Options{"a limit": perKey(1), "in order": ordered(pawl.OrderContinue)} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, o)
			jobs := addKeyed(t, q, 4, "a")
			holder := leaseOne(t, q)
			damageRecord(t, q, jobs[0].ID, missing.change)
			flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
			addKeyed(t, q, 1, "a") // finds the damage, and counts
			require.Empty(t, fetch(t, q, 9), "beside the leased job")
			require.NoError(t, q.Settle(t.Context(), holder.Ack()))
			next := fetch(t, q, 9)
			require.Len(t, next, 1)
			require.Equal(t, jobs[1].ID, next[0].ID)
			require.Empty(t, fetch(t, q, 9), "beside the next job")
		})
	}
}

// Rule: damage of the turns of a queue is mended before jobs are leased, so that the counts of their keys stay right.
func TestDamagedTurnsAtAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := pawl.Limits{Fair: true, RunningPerKey: 9, MaxWaitingPerKey: 9}
		q := openTest(t, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: limits}})
		addKeyed(t, q, 4, "a")
		addKeyed(t, q, 4, "b")
		require.Len(t, fetch(t, q, 1), 1)
		flip(t, q, bucketKeys, limitKey(nil, 1, ""))
		require.Len(t, fetch(t, q, 4), 4)
		checkNow(t, q)
	})
}

// Rule: a fetch that finds the row of a key damaged, and so recounts its jobs, blocks none of them twice.
func TestDamagedRateAtAFetchInOrder(t *testing.T) {
	for name, order := range map[string]pawl.KeyOrder{"continue": pawl.OrderContinue, "hold": pawl.OrderHold} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limits := pawl.Limits{InOrder: order, RatePerKey: pawl.Rate{Starts: 10, Per: time.Minute, Burst: 4}}
				q := openTest(t, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: limits}})
				addKeyed(t, q, 3, "a")
				addKeyed(t, q, 3, "b")
				flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
				fetch(t, q, 2)
				fetch(t, q, 2)
				checkNow(t, q)
			})
		})
	}
}
