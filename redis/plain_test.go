package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/redis"
)

// jobKeys returns the keys that hold jobs, without the prefix of the queue.
func jobKeys(t *testing.T, name string) (keys []string) {
	t.Helper()
	prefix := "{pawl:" + name + "}:"
	all, err := connect(t, url(t)).Keys(t.Context(), prefix+"*").Result()
	require.NoError(t, err)
	for _, key := range all {
		switch key = strings.TrimPrefix(key, prefix); {
		case key == "v", key == "q", key == "qi", strings.HasPrefix(key, "z:"):
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// Rule: jobs that the script handles as text and jobs that it handles as tables are the same to the caller: they take
// turns in the order of their sequences, and leave no key behind.
func TestPlainJobsAmongOthers(t *testing.T) {
	name := newName()
	q := open(t, url(t), redis.Options{Name: name})
	const n = 450 // more than a fetch reads at a time
	var want []pawl.ID
	for i := range 3 {
		jobs := make([]*pawl.Envelope, n)
		for j := range jobs {
			jobs[j] = &pawl.Envelope{Kind: []string{"k", "k2"}[j%2], Payload: make([]byte, j%3)}
			if i == 1 {
				jobs[j].ID = pawl.NewID(q.Now()) // not plain
			}
		}
		done, err := q.Enqueue(t.Context(), jobs...)
		require.NoError(t, err)
		for _, d := range done {
			want = append(want, d.ID)
		}
	}
	require.Equal(t, pawl.Counts{Ready: 3 * n}, countsOf(t, q))

	var got []pawl.ID
	var acks []pawl.Settlement
	for len(got) < 3*n {
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 3*n - len(got), Wait: pawl.WaitNot})
		require.NoError(t, err)
		for _, l := range leases {
			got, acks = append(got, l.ID), append(acks, l.Ack())
			require.Equal(t, uint64(len(got)), l.Seq)
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, pawl.Counts{Leased: 3 * n}, countsOf(t, q))
	require.NoError(t, q.Settle(t.Context(), acks[:n+7]...))
	require.Equal(t, pawl.Counts{Leased: 2*n - 7}, countsOf(t, q))
	require.NoError(t, q.Settle(t.Context(), acks[n+7:]...))
	require.Equal(t, pawl.Counts{}, countsOf(t, q))
	require.Empty(t, jobKeys(t, name))
}

// Rule: a lone lane gives its jobs in their order, as many as the fetch asks for.
func TestPlainJobsOfOneKind(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	jobs := make([]*pawl.Envelope, 450)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: "k"}
	}
	done, err := q.Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 440, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Len(t, leases, 440)
	for i, l := range leases {
		require.Equal(t, done[i].ID, l.ID)
	}
	require.Equal(t, pawl.Counts{Ready: 10, Leased: 440}, countsOf(t, q))
}

// Rule: a stale holder of a plain job changes nothing, and its error names the job. The present holder keeps it.
func TestStaleAckOfPlainJob(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.NoError(t, err)
	stale := fetch(t, q)
	require.NoError(t, q.Settle(t.Context(), stale.Release()))
	l := fetch(t, q)
	require.Equal(t, stale.ID, l.ID)
	require.ErrorIs(t, q.Settle(t.Context(), stale.Ack()), pawl.ErrLeaseLost)
	require.Equal(t, pawl.Counts{Leased: 1}, countsOf(t, q))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)
	require.Equal(t, pawl.Counts{}, countsOf(t, q))
}

// Rule: a plain job whose answer is lost is stored once, and its caller gets the ID that the server has. The same holds
// for its lease.
func TestAnswerAboutPlainJobIsLost(t *testing.T) {
	url(t)
	var c cutter
	q := open(t, shared.url, redis.Options{Configure: c.configure(shared.url)})
	signed(t, q) // loads the script
	c.armed.Store(true)
	done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: []byte("once"), Priority: 1})
	require.NoError(t, err)
	require.False(t, c.armed.Load())
	require.Equal(t, pawl.Counts{Ready: 2}, countsOf(t, q))
	c.armed.Store(true)
	l := fetch(t, q)
	require.False(t, c.armed.Load())
	require.Equal(t, done[0].ID, l.ID)
	require.Equal(t, "once", string(l.Payload))
	c.armed.Store(true)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.False(t, c.armed.Load())
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q))
}

// Rule: a delayed plain job is delayed until its time, or until it is to run now. It leaves no key behind.
func TestDelayedPlainJob(t *testing.T) {
	name := newName()
	q := open(t, url(t), redis.Options{Name: name})
	done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Delay: time.Hour})
	require.NoError(t, err)
	require.Equal(t, pawl.Counts{Delayed: 1}, countsOf(t, q))
	require.NoError(t, q.RunNow(t.Context(), done[0].ID))
	l := fetch(t, q)
	require.Equal(t, done[0].ID, l.ID)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Empty(t, jobKeys(t, name))
}

// Rule: if the script fails after it has begun, the outcome is unknown, because Redis keeps what the script has
// written. The IDs of the jobs are known.
func TestScriptFails(t *testing.T) {
	name := newName()
	q := open(t, url(t), redis.Options{Name: name})
	require.NoError(t, connect(t, url(t)).Set(t.Context(), "{pawl:"+name+"}:i", "no sorted set", 0).Err())
	done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Len(t, done, 1)
	_, err = q.Job(t.Context(), done[0].ID) // it was stored
	require.NoError(t, err)
}

// Rule: keys that an older build wrote are refused, because their rows have another form.
func TestOlderFormat(t *testing.T) {
	name := newName()
	require.NoError(t, connect(t, url(t)).HSet(t.Context(), "{pawl:"+name+"}:v", "format", 1).Err())
	_, err := redis.Open(t.Context(), url(t), &redis.Options{Name: name})
	require.ErrorIs(t, err, redis.ErrOlderFormat)
	require.ErrorContains(t, err, "format 1")
}

// Rule: the totals of a queue without listeners count each job of a call, also where the script counts them together.
func TestTotalsOfManyAtOnce(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"})
	require.NoError(t, err)
	leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 3})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack(), leases[1].Ack()))
	require.Equal(t, driver.Totals{Changes: 3 + 3 + 2, Enqueued: 3, Succeeded: 2}, q.Totals())
}

// Rule: plain jobs of one call that differ in their priority, time, or size each keep their own.
func TestPlainJobsThatDiffer(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	done, err := q.Enqueue(t.Context(),
		&pawl.Envelope{Kind: "k", Priority: 1},
		&pawl.Envelope{Kind: "k", Priority: 2},
		&pawl.Envelope{Kind: "k", Priority: 2, Delay: time.Hour},
		&pawl.Envelope{Kind: "k", Priority: 2, Payload: []byte("three")},
	)
	require.NoError(t, err)
	require.Equal(t, pawl.Counts{Ready: 3, Delayed: 1}, countsOf(t, q))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 4, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Len(t, leases, 3)
	for i, want := range []int{1, 3, 0} {
		require.Equal(t, done[want].ID, leases[i].ID)
	}
	require.Equal(t, "three", string(leases[1].Payload))
}

// Rule: each of the plain jobs that one fetch leases from several kinds has its own kind.
func TestPlainJobsOfSeveralKinds(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	for _, kind := range []string{"a", "a", "b", "b", "a"} {
		_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: kind})
		require.NoError(t, err)
	}
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 5, Wait: pawl.WaitNot})
	require.NoError(t, err)
	var kinds []string
	for _, l := range leases {
		kinds = append(kinds, l.Kind)
	}
	require.Equal(t, []string{"a", "a", "b", "b", "a"}, kinds)
	require.Equal(t, pawl.Counts{Leased: 5}, countsOf(t, q))
}

// Rule: each job that a queue returns alone is a turn, so the queue that has waited longer is next.
func TestTurnsOfLoneLane(t *testing.T) {
	q := open(t, url(t), redis.Options{})
	for range 110 {
		_, err := q.Enqueue(t.Context(), &pawl.Envelope{Queue: "light", Kind: "k"}, &pawl.Envelope{Queue: "heavy", Kind: "k"})
		require.NoError(t, err)
	}
	weights := map[string]int{"light": 1, "heavy": 10}
	take := func(n int, queues ...string) []*pawl.Lease {
		of := make(map[string]int)
		for _, name := range queues {
			of[name] = weights[name]
		}
		leases, err := q.Fetch(t.Context(), pawl.Request{Queues: queues, Weights: of, Max: n, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.Len(t, leases, n)
		return leases
	}
	take(1, "light")
	take(100, "heavy")
	require.Equal(t, "light", take(1, "heavy", "light")[0].Queue)
}
