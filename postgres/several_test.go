package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: among several clients of one queue each job has one holder and runs once, and two jobs of
// one idempotency key never run beside one another.
func TestSeveralClients(t *testing.T) {
	const jobs, clients, keys = 240, 3, 7
	schema := newSchema(t)
	var held sync.Map // by key
	var done atomic.Int32
	var wg sync.WaitGroup
	for n := range clients {
		q := open(t, schema)
		wg.Go(func() {
			for i := range jobs / clients {
				e := &pawl.Envelope{Kind: "k", Queue: "shared"}
				if i%2 == 0 {
					e.IdempotencyKey = fmt.Sprint(i % keys)
				}
				if err := withid.Enqueue(t.Context(), q, e); err != nil {
					t.Errorf("client %d: enqueue: %v", n, err)
				}
			}
		})
		wg.Go(func() {
			for done.Load() < jobs {
				leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"shared"}, Max: 5, Wait: pawl.WaitNot})
				if errors.Is(err, pawl.ErrEmpty) {
					continue
				}
				if err != nil {
					t.Errorf("client %d: fetch: %v", n, err)
					return
				}
				for _, l := range leases {
					name := l.IdempotencyKey
					if name == "" {
						name = l.ID.String()
					}
					if other, twice := held.LoadOrStore(name, l.ID); twice {
						t.Errorf("job %s is leased while %v is", l.ID, other)
					}
					settlement := l.Ack()
					if l.IdempotencyKey != "" { // an ack would remove the others of its key
						settlement = l.Abandon(pawl.ReasonPermanent, nil)
					}
					held.Delete(name)
					if err := q.Settle(t.Context(), settlement); err != nil {
						t.Errorf("client %d: settle: %v", n, err)
					}
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, jobs, done.Load())
}

// Rule: of the clients that enqueue one unique key at the same time, one stores its job and the
// others get its ID.
func TestUniqueKeyOfSeveralClients(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	for range 5 {
		ids := make([]pawl.ID, 4)
		var fresh atomic.Int32
		var wg sync.WaitGroup
		key := fmt.Sprint(fresh.Load(), pawl.NewID(time.Now()))
		for i := range ids {
			q := open(t, schema)
			wg.Go(func() {
				done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", UniqueKey: key})
				if err != nil {
					t.Errorf("enqueue: %v", err)
					return
				}
				if ids[i] = done[0].ID; !done[0].Existing {
					fresh.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, fresh.Load())
		for _, id := range ids {
			require.Equal(t, ids[0], id)
		}
	}
}

// Rule: a fetch that waits gets what another client enqueues.
func TestFetchWaitsForAnotherClient(t *testing.T) {
	schema := newSchema(t)
	one, other := open(t, schema), open(t, schema)
	got := make(chan pawl.ID)
	go func() {
		leases, err := one.Fetch(t.Context(), pawl.Request{Max: 1})
		if err != nil {
			t.Errorf("fetch: %v", err)
			close(got)
			return
		}
		got <- leases[0].ID
	}()
	e := &pawl.Envelope{Kind: "k"}
	require.NoError(t, withid.Enqueue(t.Context(), other, e))
	require.Equal(t, e.ID, <-got)
}

// Rule: the leases of a client that has ended are taken back by another one once they expire, and count
// a crash. After that, a call with the old lease changes nothing.
func TestLeasesOfAnEndedClient(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		ended, other := open(t, schema, virtual), open(t, schema, virtual)
		e := &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), ended, e))
		l, err := ended.Fetch(t.Context(), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.NoError(t, ended.Close())
		again, err := other.Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.False(t, time.Now().Before(l[0].Expires))
		require.Equal(t, e.ID, again[0].ID)
		require.Equal(t, 1, again[0].Crashes)
		require.ErrorIs(t, other.Settle(t.Context(), l[0].Ack()), pawl.ErrLeaseLost)
		require.NoError(t, other.Settle(t.Context(), again[0].Ack()))
	})
}

// Rule: a single process that does not poll, and has no name, takes back the leases that an earlier one
// left behind.
func TestLeasesOfAnEarlierProcess(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		earlier := open(t, schema, noPoll, virtual)
		e := &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), earlier, e))
		_, err := earlier.Fetch(t.Context(), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.NoError(t, earlier.Close())
		leases, err := open(t, schema, noPoll, virtual).Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.Equal(t, e.ID, leases[0].ID)
		require.Equal(t, 1, leases[0].Crashes)
	})
}

// Rule: a job that its client fetched a second time comes back with the other leases of the client, in
// whichever order the server lists them. The row of its first fetch is there as long as another job
// of that fetch.
func TestSecondFetchOfAnEndedClient(t *testing.T) {
	for _, last := range []string{"min", "max"} {
		schema := newSchema(t)
		ended, other := open(t, schema), open(t, schema)
		again, still := &pawl.Envelope{Kind: "again"}, &pawl.Envelope{Kind: "still"}
		require.NoError(t, withid.Enqueue(t.Context(), ended, again, still))
		first, err := ended.Fetch(t.Context(), pawl.Request{Max: 2})
		require.NoError(t, err)
		require.Len(t, first, 2)
		require.NoError(t, ended.Settle(t.Context(), first[0].Release()))
		second, err := ended.Fetch(t.Context(), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.Equal(t, again.ID, second[0].ID)
		require.NoError(t, ended.Close())
		execute(t, strings.ReplaceAll(`WITH moved AS (DELETE FROM pawl.claim WHERE cardinality(ids) =
			(SELECT `+last+`(cardinality(ids)) FROM pawl.claim) RETURNING *) INSERT INTO pawl.claim SELECT * FROM moved`, "pawl.", schema+"."))
		execute(t, "UPDATE "+schema+".process SET live_until = 0 WHERE id = (SELECT min(process) FROM "+schema+".claim)")
		var kinds []string
		for len(kinds) < 2 {
			leases, err := other.Fetch(patient(t), pawl.Request{Max: 2})
			require.NoError(t, err, "after %v", kinds)
			for _, l := range leases {
				kinds = append(kinds, l.Kind)
				require.Equal(t, 1, l.Crashes)
			}
		}
		require.ElementsMatch(t, []string{"again", "still"}, kinds)
	}
}

// patient is the context of a call that ends by itself, unless the queue forgets it.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Rule: the token of a lease settles it through any client. Its holder gets ErrLeaseLost afterwards,
// and takes nothing back when the lease would have expired.
func TestSettleThroughAnotherClient(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		holder, other := open(t, schema, virtual, func(o *postgres.Options) { o.Lease = time.Second }), open(t, schema, virtual)
		ack, nack := &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), holder, ack, nack))
		leases, err := holder.Fetch(t.Context(), pawl.Request{Max: 2})
		require.NoError(t, err)
		require.NoError(t, other.Settle(t.Context(), leases[0].Ack(), leases[1].Nack(0, nil)))
		lost, err := holder.Extend(t.Context(), leases...)
		require.NoError(t, err)
		require.Equal(t, leases, lost)
		require.ErrorIs(t, holder.Settle(t.Context(), leases[1].Ack()), pawl.ErrLeaseLost)
		again, err := other.Fetch(t.Context(), pawl.Request{Max: 2})
		require.NoError(t, err)
		require.Equal(t, nack.ID, again[0].ID)
		time.Sleep(2 * time.Second) // until the lease of the holder is over, and that of the other one is not
		n, err := holder.Reap(t.Context())
		require.NoError(t, err)
		require.Zero(t, n)
		job, err := holder.Job(t.Context(), nack.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.Leased, job.State)
		require.Equal(t, 1, job.Attempts)
	})
}

// Rule: a client that lost its leases to another one, because it was away for longer than a lease, gets
// ErrLeaseLost for each of them and continues to work.
func TestClientThatWasAway(t *testing.T) {
	schema := newSchema(t)
	away, other := open(t, schema, noPoll), open(t, schema)
	require.NoError(t, withid.Enqueue(t.Context(), away, &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"}))
	leases, err := away.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	execute(t, "UPDATE "+schema+".process SET live_until = 0 WHERE id = (SELECT process FROM "+schema+".claim)")
	again, err := other.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.Len(t, again, 2)
	lost, err := away.Extend(t.Context(), leases[0])
	require.NoError(t, err)
	require.Equal(t, leases[:1], lost)
	require.ErrorIs(t, away.Settle(t.Context(), leases[1].Nack(0, nil)), pawl.ErrLeaseLost)
	require.NoError(t, other.Settle(t.Context(), again[0].Ack(), again[1].Release()))
	mine, err := away.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.NoError(t, away.Settle(t.Context(), mine[0].Ack()))
}

func noPoll(o *postgres.Options) { o.Poll = postgres.NoPoll }

// Rule: a holder learns from a heartbeat that another client cancelled its job, and the job is dead
// however the lease ends.
func TestCancelByAnotherClient(t *testing.T) {
	schema := newSchema(t)
	holder, other := open(t, schema, func(o *postgres.Options) { o.NoListen = true }), open(t, schema)
	e := &pawl.Envelope{Kind: "k"}
	require.NoError(t, withid.Enqueue(t.Context(), holder, e))
	l, err := holder.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.NoError(t, other.Cancel(t.Context(), e.ID))
	require.False(t, l[0].Cancelled.Fired())
	lost, err := holder.Extend(t.Context(), l[0])
	require.NoError(t, err)
	require.Empty(t, lost)
	require.True(t, l[0].Cancelled.Fired())
	require.NoError(t, holder.Settle(t.Context(), l[0].Release()))
	dead, err := other.Job(t.Context(), e.ID)
	require.NoError(t, err)
	require.Equal(t, pawl.ReasonCancelled, dead.Death.Reason)
}

// Rule: only one repeat suspect is leased at a time, over all clients.
func TestRepeatSuspectsOfSeveralClients(t *testing.T) {
	schema := newSchema(t)
	for range 2 {
		crashing := open(t, schema, func(o *postgres.Options) { o.Owner = "crashing" })
		if stats, err := crashing.Stats(t.Context()); err == nil && len(stats.Queues) == 0 {
			require.NoError(t, withid.Enqueue(t.Context(), crashing, &pawl.Envelope{Kind: "a"}, &pawl.Envelope{Kind: "b"}))
		}
		leases, err := crashing.Fetch(t.Context(), pawl.Request{Max: 2})
		require.NoError(t, err)
		require.Len(t, leases, 2)
		require.NoError(t, crashing.Close())
	}
	one, other := open(t, schema, func(o *postgres.Options) { o.Owner = "crashing" }), open(t, schema)
	first, err := one.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.Len(t, first, 1)
	_, err = other.Fetch(t.Context(), pawl.Request{Max: 2, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
	require.NoError(t, one.Settle(t.Context(), first[0].Ack()))
	second, err := other.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.Equal(t, "b", second[0].Kind)
}

// Rule: a pause holds for every client.
func TestPauseForAllClients(t *testing.T) {
	schema := newSchema(t)
	one, other := open(t, schema), open(t, schema)
	require.NoError(t, withid.Enqueue(t.Context(), one, &pawl.Envelope{Kind: "k"}))
	require.NoError(t, one.Pause(t.Context(), pawl.DefaultQueue))
	_, err := other.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, other.Resume(ctx, pawl.DefaultQueue), pawl.ErrNotAccepted)
	require.NoError(t, other.Resume(t.Context(), pawl.DefaultQueue))
	_, err = one.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
}
