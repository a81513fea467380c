package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// fairly declares turns for the default queue.
var fairly = declaring(pawl.Limits{Fair: true})

// addKeyed enqueues n jobs of a key.
func addKeyed(t testing.TB, q pawl.Enqueuer, n int, key string) {
	t.Helper()
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = keyed("k", key)
	}
	_, err := q.Enqueue(patient(t), batch...)
	require.NoError(t, err)
}

// starts runs n jobs one after the other, and returns their keys.
func starts(t testing.TB, q *postgres.Queue, n int) (all string) {
	t.Helper()
	for range n {
		l, err := q.Fetch(patient(t), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		require.NoError(t, err, "after %s", all)
		all += l[0].Key
		require.NoError(t, q.Settle(patient(t), l[0].Ack()))
	}
	return all
}

// Rule: a clock that is wrong by ages when the first job arrives damages no job, and keys take turns once it is right.
func TestFairTurnsAfterAWrongClock(t *testing.T) {
	t.Parallel()
	for _, year := range []int{1960, 2050, 2126} { // in others, the server cannot compute its times
		var right atomic.Bool
		q := open(t, newSchema(t), fairly, func(o *postgres.Options) {
			o.Now = func() time.Time {
				if right.Load() {
					return time.Now()
				}
				return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			}
		})
		add := func(key string) { // with its own ID, since those of this process never go back
			e := keyed("k", key)
			e.ID = pawl.NewID(time.Now())
			_, err := q.Enqueue(patient(t), e)
			require.NoError(t, err)
		}
		add("a")
		right.Store(true)
		for _, key := range []string{"a", "a", "a", "b", "b"} {
			add(key)
		}
		require.Equal(t, "ababaa", starts(t, q, 6), "year %d", year)
	}
}

// Rule: clients that enqueue into the same fair queues at the same time give each job of a key its own turn, whatever
// the order in which a call names the queues.
func TestTagsOfSeveralClients(t *testing.T) {
	t.Parallel()
	const clients, callers, calls = 3, 4, 15
	schema := newSchema(t)
	declared := func(o *postgres.Options) {
		o.Limits = map[string]pawl.Limits{"x": {Fair: true}, "y": {Fair: true}}
	}
	var wg sync.WaitGroup
	for range clients {
		q := open(t, schema, declared)
		for c := range callers {
			wg.Go(func() {
				for i := range calls {
					batch := []*pawl.Envelope{{Kind: "k", Queue: "x", Key: fmt.Sprint(i % 3)}, {Kind: "k", Queue: "y"}}
					if c%2 == 0 {
						batch[0], batch[1] = batch[1], batch[0]
					}
					if _, err := q.Enqueue(patient(t), batch...); err != nil {
						t.Errorf("enqueue: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	const all = clients * callers * calls
	var of [][]int64
	for _, query := range []string{"SELECT since FROM pawl.job WHERE place = 0 AND fair = '\\x7900' ORDER BY since",
		"SELECT since FROM pawl.job WHERE place = 0 AND fair = '\\x780030' ORDER BY since"} {
		of = append(of, numbers(t, strings.ReplaceAll(query, "pawl.", schema+".")))
	}
	require.Len(t, of[0], all)
	require.Len(t, of[1], all/3)
	for _, tags := range of {
		for i, tag := range tags {
			require.Equal(t, tags[0]+int64(i)*driver.FairStep, tag, "tag %d", i)
		}
	}
}

// numbers returns the numbers that a query reads.
func numbers(t *testing.T, query string) []int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(patient(t))) }()
	rows, err := conn.Query(t.Context(), query)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return all
}

// Rule: several clients of a fair queue run each job once, despite delays, retries, and releases, and none is
// forgotten. They need no poll for that.
func TestSeveralClientsOfAFairQueue(t *testing.T) {
	t.Parallel()
	const clients, jobs = 3, 60
	schema := newSchema(t)
	var mu sync.Mutex
	ended := make(map[pawl.ID]int)
	var done atomic.Int32
	var wg sync.WaitGroup
	for n := range clients {
		q := open(t, schema, fairly)
		wg.Go(func() {
			for i := range jobs {
				e := keyed("k", fmt.Sprint((i+n)%4))
				e.Weight, e.Delay = 1+i%3, time.Duration(i%3)*time.Millisecond
				if err := withid.Enqueue(patient(t), q, e); err != nil {
					t.Errorf("client %d: enqueue: %v", n, err)
				}
			}
		})
		wg.Go(func() {
			for done.Load() < clients*jobs && !t.Failed() {
				leases, err := q.Fetch(patient(t), pawl.Request{Max: 3, Wait: pawl.WaitNot})
				if err != nil && !errors.Is(err, pawl.ErrEmpty) {
					t.Errorf("client %d: fetch: %v", n, err)
				}
				for i, l := range leases {
					end := l.Ack()
					switch {
					case l.Attempts == 0 && i%3 == 1:
						end = l.Nack(0, errors.New("again"))
					case l.Attempts == 0 && i%3 == 2:
						end = l.Nack(time.Millisecond, errors.New("again"))
					default:
						mu.Lock()
						ended[l.ID]++
						mu.Unlock()
						done.Add(1)
					}
					if err := q.Settle(patient(t), end); err != nil {
						t.Errorf("client %d: settle: %v", n, err)
					}
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, ended, clients*jobs)
	require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".job"))
}

// Rule: a transaction of the app that stores jobs in a fair queue delays no enqueue, fetch or retry of the same key, by
// its client or another one. Its jobs take their turns after its commit, without a poll, and have none after a
// rollback.
func TestFairQueueBesideATransactionOfTheApp(t *testing.T) {
	t.Parallel()
	for kind, of := range appTxs {
		t.Run(kind, func(t *testing.T) {
			begin := of(t)
			for _, commits := range []bool{true, false} {
				schema := newSchema(t)
				q, other := open(t, schema, noPoll, fairly), open(t, schema, noPoll)
				addKeyed(t, q, 20, "a")
				tx := begin()
				defer func() { _ = tx.rollback() }() // if the case fails, or else the pool would wait for it
				addKeyed(t, q.In(tx), 2, "b")
				for _, client := range []*postgres.Queue{q, other} {
					addKeyed(t, client, 1, "b")
					l, err := client.Fetch(patient(t), pawl.Request{Max: 1})
					require.NoError(t, err)
					require.NoError(t, client.Settle(patient(t), l[0].Nack(0, errors.New("again"))))
					require.Equal(t, pawl.Ready, stateIn(t, client, l[0].ID))
				}
				require.Equal(t, 22, count(t, "SELECT count(*) FROM "+schema+".job"))
				if commits {
					require.NoError(t, tx.commit())
				} else {
					require.NoError(t, tx.rollback())
				}
				all := starts(t, other, 10)
				if commits {
					require.Equal(t, 4, strings.Count(all, "b"), "starts: %s", all)
				} else {
					require.Equal(t, 2, strings.Count(all, "b"), "starts: %s", all)
				}
			}
		})
	}
}

// stateIn returns the state of a job.
func stateIn(t testing.TB, q *postgres.Queue, id pawl.ID) pawl.State {
	t.Helper()
	e, err := q.Job(patient(t), id)
	require.NoError(t, err)
	return e.State
}

// Rule: while another session gives tags to a fair queue, a settlement does not wait for it. The job becomes ready soon
// after, without a poll or another call.
func TestRetryBesideASessionThatGivesTags(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll, fairly)
	addKeyed(t, q, 1, "a")
	l, err := q.Fetch(patient(t), pawl.Request{Max: 1})
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(patient(t))) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "SELECT FROM "+schema+".bound FOR UPDATE")
	require.NoError(t, err)
	require.NoError(t, q.Settle(patient(t), l[0].Nack(0, errors.New("again"))))
	require.Equal(t, pawl.Delayed, stateIn(t, q, l[0].ID))
	_, err = q.Fetch(patient(t), pawl.Request{Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
	require.NoError(t, tx.Commit(t.Context()))
	again, err := q.Fetch(patient(t), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.Equal(t, l[0].ID, again[0].ID)
}

// Rule: turns that a process declares apply to the processes that run already, from their next transaction on: to their
// enqueues, and to the jobs that they promote.
func TestTurnsDeclaredByAnotherProcess(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	q := open(t, schema)
	ready := pawl.NewID(time.Now())
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{ID: ready, Kind: "k", Key: "a"}))
	delayed := make([]*pawl.Envelope, 20)
	for i := range delayed {
		delayed[i] = &pawl.Envelope{Kind: "k", Key: "d", Delay: time.Hour}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, delayed...))
	open(t, schema, fairly)
	addKeyed(t, q, 20, "b")
	for _, e := range delayed {
		require.NoError(t, q.RunNow(t.Context(), e.ID))
	}
	addKeyed(t, q, 2, "c")
	all := starts(t, q, 7)
	require.Equal(t, "a", all[:1], "the job that was ready before")
	for _, key := range []string{"b", "c", "d"} {
		require.Equal(t, 2, strings.Count(all, key), "starts: %s", all)
	}
	tags := count(t, "SELECT count(*) FROM "+schema+".job WHERE fair IS NULL")
	require.Zero(t, tags, "jobs without a tag")
}

// Rule: when turns are declared again, jobs that became ready before that run before those that become ready later.
func TestTurnsDeclaredAgain(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	fair := open(t, schema, fairly)
	addKeyed(t, fair, 2, "a")
	require.Equal(t, "a", starts(t, fair, 1))
	addKeyed(t, open(t, schema, declaring(pawl.Limits{})), 1, "x")
	q := open(t, schema, fairly)
	addKeyed(t, q, 1, "y")
	require.Equal(t, "axy", starts(t, q, 3))
}

// Rule: the oldest ready job of a queue whose keys take turns is the one that is ready for the longest time, whatever its tag.
func TestOldestOfAFairQueue(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC).UnixNano())
	clock := func() time.Time { return time.Unix(0, now.Load()) }
	q := open(t, newSchema(t), fairly, noPoll, func(o *postgres.Options) { o.Now = clock })
	addKeyed(t, q, 1, "a")
	now.Add(int64(time.Hour))
	require.Equal(t, "a", starts(t, q, 1))
	since := clock()
	addKeyed(t, q, 2, "b")
	now.Add(int64(time.Hour))
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.True(t, stats.Queues[0].Oldest.Equal(since), "oldest is %v", stats.Queues[0].Oldest)
	require.Equal(t, 2, stats.Queues[0].Ready)
}

// Rule: a drain of a fair queue waits for a retry that becomes ready while another session gives tags.
func TestDrainWaitsForALateJob(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		q := open(t, schema, fairly, virtual, noPoll)
		l := lease(t, q, keyed("k", "a"))
		free := giveTags(t, schema)
		require.NoError(t, q.Settle(t.Context(), l.Nack(0, errors.New("again"))))
		found := make(chan []*pawl.Lease, 1)
		go func() {
			leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitDrained})
			if err != nil {
				t.Errorf("drain: %v", err)
			}
			found <- leases
		}()
		time.Sleep(100 * time.Millisecond)
		free()
		leases := <-found
		require.Len(t, leases, 1)
		require.Equal(t, l.ID, leases[0].ID)
	})
}

// Rule: COPY, which stores many jobs, stores the same tags as the statement that stores few.
func TestLargeGroupsHaveTheSameTags(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	fixed := func(o *postgres.Options) {
		o.Now, o.Poll = func() time.Time { return now }, postgres.NoPoll
		o.Limits = map[string]pawl.Limits{"queue 0": {Fair: true}, "queue 1": {Fair: true, InOrder: pawl.OrderHold}}
	}
	jobs := variousJobs(now)
	for i, e := range jobs {
		e.Cost, e.Weight = 0, i%3
	}
	copied, inserted := newSchema(t), newSchema(t)
	_, err := open(t, copied, fixed).Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
	const few = 200
	_, err = open(t, inserted, fixed).Enqueue(t.Context(), jobs[:few]...)
	require.NoError(t, err)
	stored := storedRows(t, copied)
	require.Len(t, stored, many)
	require.Equal(t, storedRows(t, inserted), stored[:few])
	require.Positive(t, count(t, "SELECT count(*) FROM "+copied+".job WHERE fair IS NOT NULL"))
}

// Rule: an enqueue into a fair queue takes one round trip more than into another queue. A fetch from it takes as many
// as from another queue with limits.
func TestRoundTripsOfFairQueues(t *testing.T) {
	proxy := newCutter(t)
	q := openAt(t, proxy.url, newSchema(t), noPoll, func(o *postgres.Options) {
		o.Limits = map[string]pawl.Limits{"fair": {Fair: true}, "limited": {Running: 1000}}
	})
	took := make(map[string][3]int64)
	for range 3 { // at first, statements are prepared
		for _, queue := range []string{"fair", "limited"} {
			var trips [3]int64
			before := proxy.trips.Load()
			_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Queue: queue})
			require.NoError(t, err)
			trips[0] = proxy.trips.Load() - before
			leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{queue}, Max: 1, Wait: pawl.WaitNot})
			require.NoError(t, err)
			trips[1] = proxy.trips.Load() - before - trips[0]
			require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
			trips[2] = proxy.trips.Load() - before - trips[0] - trips[1]
			took[queue] = trips
		}
	}
	require.Equal(t, [3]int64{3, took["limited"][1], 2}, took["fair"], "enqueue, fetch, ack; of the other queue: %v", took["limited"])
	require.Equal(t, int64(2), took["limited"][0])
}
