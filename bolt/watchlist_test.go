package bolt

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// lookupsOf returns how many rows the queue looks up while fn runs.
func lookupsOf(t *testing.T, q *Queue, fn func()) (n int) {
	t.Helper()
	count := func() (n int) {
		require.NoError(t, q.do(t.Context(), visit(func() { n = q.scheduler.lookups })))
		return n
	}
	before := count()
	fn()
	return count() - before
}

// manyQueues makes n queues that had a job once, and returns their names.
func manyQueues(t *testing.T, q *Queue, n int) (names []string) {
	t.Helper()
	var batch []*pawl.Envelope
	for i := range n {
		names = append(names, fmt.Sprintf("tenant-%04d", i))
		batch = append(batch, &pawl.Envelope{Kind: "k", Queue: names[i]})
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	for left := n; left > 0; {
		leases := fetch(t, q, n, names...)
		require.NotEmpty(t, leases)
		require.NoError(t, q.Settle(t.Context(), acksOf(leases)...))
		left -= len(leases)
	}
	return names
}

// Rule: a commit costs what it touches, however many queues a fetch waits for, even if it
// touches another kind on one of those queues.
func TestIdleFetchOverManyQueuesCostsNothing(t *testing.T) {
	for _, queue := range []string{"other", "busy"} {
		for _, wait := range []pawl.Wait{pawl.WaitForJob, pawl.WaitDrained} {
			synctest.Test(t, func(t *testing.T) {
				q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
				names := append(manyQueues(t, q, 1000), "busy")
				add(t, q, func(e *pawl.Envelope) { e.Queue = "busy" })
				leaseOne(t, q, "busy") // which keeps a drain waiting
				enqueue := func() { add(t, q, func(e *pawl.Envelope) { e.Queue, e.Kind = queue, "other" }) }
				enqueue()
				beside := func(names ...string) int {
					ctx, cancel := context.WithCancel(t.Context())
					done := started(func() error {
						_, err := q.Fetch(ctx, pawl.Request{Queues: names, Kinds: []string{"k"}, Max: 1, Wait: wait})
						return err
					})
					synctest.Wait()
					n := lookupsOf(t, q, enqueue)
					cancel()
					require.ErrorIs(t, <-done, pawl.ErrNotAccepted)
					return n
				}
				require.Equal(t, beside("busy"), beside(names...))
			})
		}
	}
}

// Rule: a fetch over many queues looks up rows only for queues with jobs.
func TestFetchOverManyQueuesLooksAtThoseWithJobs(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	names := manyQueues(t, q, 1000)
	for i := range 10 { // queues without any call so far
		names = append(names, fmt.Sprintf("new-%d", i))
	}
	fetch(t, q, 1, names...) // which caches the numbers of the names
	for _, i := range []int{3, 500, 999} {
		add(t, q, func(e *pawl.Envelope) { e.Queue = names[i] })
	}
	require.Less(t, lookupsOf(t, q, func() { require.Len(t, fetch(t, q, 3, names...), 3) }), 50)
	require.Less(t, lookupsOf(t, q, func() { require.Empty(t, fetch(t, q, 3, names...)) }), 10)
}

// Rule: anything that makes a job available wakes a fetch that waits for it among many queues:
// a new queue, the end of a pause, a promotion, the end of a lease, a free effect, a free place
// for a repeat suspect.
func TestEveryChangeWakesAFetchOverManyQueues(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*testing.T, *Queue) // it leaves no job for the fetch on the queue "late"
		change func(*testing.T, *Queue)
	}{
		{"a job on a new queue", func(*testing.T, *Queue) {}, func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Queue = "late" })
		}},
		{"the end of a pause", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Queue = "late" })
			require.NoError(t, q.Pause(t.Context(), "late"))
		}, func(t *testing.T, q *Queue) { require.NoError(t, q.Resume(t.Context(), "late")) }},
		{"a promotion", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.Delay = "late", 1000 })
		}, func(t *testing.T, _ *Queue) { pass(2000) }},
		{"an expired lease", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Queue = "late" })
			leaseOne(t, q, "late")
		}, func(t *testing.T, q *Queue) { pass(2 * q.opts.Lease) }},
		{"a free idempotency key", func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey = "first", "key" })
			leaseOne(t, q, "first")
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey = "late", "key" })
		}, func(t *testing.T, q *Queue) { pass(2 * q.opts.Lease) }},
		{"the end of another job that crashed twice", func(t *testing.T, q *Queue) {
			for _, queue := range []string{"first", "late"} {
				add(t, q, func(e *pawl.Envelope) { e.Queue = queue })
				for range 2 {
					leaseOne(t, q, queue)
					pass(2 * q.opts.Lease)
				}
			}
			leaseOne(t, q, "first")
		}, func(t *testing.T, q *Queue) {
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.Delay = "late", time.Hour }) // which cannot be leased
			synctest.Wait()
			pass(2 * q.opts.Lease)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
				names := append(manyQueues(t, q, 100), "late", "held")
				add(t, q, func(e *pawl.Envelope) { e.Queue, e.Delay = "held", 1000*time.Hour }) // something to wait for
				c.before(t, q)
				done := started(func() error {
					leases, err := q.Fetch(t.Context(), pawl.Request{Queues: names, Max: 1, Wait: pawl.WaitFinished})
					if err == nil && leases[0].Queue != "late" {
						err = fmt.Errorf("got a job of queue %s", leases[0].Queue)
					}
					return err
				})
				synctest.Wait()
				require.Empty(t, done)
				c.change(t, q)
				synctest.Wait()
				require.Len(t, done, 1)
				require.NoError(t, <-done)
			})
		})
	}
}

// Rule: jobs of kinds that a fetch does not request cost it no row reads, however many come
// first in the order.
func TestFetchSkipsOtherKinds(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	one := func() int {
		add(t, q, nil)
		return lookupsOf(t, q, func() {
			leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1})
			require.NoError(t, err)
			require.Equal(t, "k", leases[0].Kind)
		})
	}
	one() // which caches the number of the kind
	for _, kind := range []string{"a", "z"} {
		add(t, q, func(e *pawl.Envelope) { e.Kind, e.Priority = kind, 1 })
	}
	few := one()
	batch := make([]*pawl.Envelope, pawl.MaxBatchJobs)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: []string{"a", "z"}[i%2], Priority: 1}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	require.Equal(t, few, one())
}
