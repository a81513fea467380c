package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// settled waits until the queue has processed the app's transactions.
func settled(t *testing.T, q *Queue) {
	t.Helper()
	require.NoError(t, q.do(t.Context(), visit(func() {})))
}

// fetchWaits waits until a fetch waits for jobs and the queue has nothing to do.
func fetchWaits(t *testing.T, q *Queue) {
	t.Helper()
	for waits := false; !waits; runtime.Gosched() {
		require.NoError(t, q.do(t.Context(), visit(func() { waits = len(q.scheduler.fetches) > 0 })))
	}
}

// The verbs work in the app's own transactions as in those of Update.
func TestTxVerbsInTheAppsOwnTransaction(t *testing.T) {
	for _, c := range txVerbs {
		for _, end := range []error{nil, errRolledBack} {
			t.Run(fmt.Sprint(c.name, ", ", end), func(t *testing.T) {
				var events eventLog
				db := openApp(t)
				q := openOver(t, db, &Options{OnEvent: events.event})
				add(t, q, nil)
				l := leaseOne(t, q)
				ready := add(t, q, nil).ID
				events.take()
				before := digest(t, q)
				updateApp(t, db, end, func(tx *bbolt.Tx) {
					require.NoError(t, appPut(tx, "row"))
					require.NoError(t, c.do(q, tx, ready, l))
					require.Empty(t, events.take(), "nothing is committed yet")
				})
				settled(t, q)
				if end != nil {
					require.Equal(t, before, digest(t, q))
					require.Empty(t, events.take())
					require.False(t, l.Cancelled.Fired())
					require.False(t, driver.Settled(l))
					require.Empty(t, appRows(t, db))
					require.NoError(t, q.Settle(t.Context(), l.Ack()))
					return
				}
				require.Equal(t, c.want, countsOf(t, q, pawl.DefaultQueue))
				require.Equal(t, c.event, events.take())
				require.Equal(t, []string{"row"}, appRows(t, db))
				checkNow(t, q)
			})
		}
	}
}

// A commit of the app wakes the scheduler: for a ready job, for a job that is due later, and
// for a job blocked by an acked one. The event of a verb precedes the events that follow from
// it.
func TestCommitOfTheAppsWakesTheQueue(t *testing.T) {
	var events eventLog
	db := openApp(t)
	q := openOver(t, db, &Options{OnEvent: events.event})
	fetchOne := func() <-chan *pawl.Lease {
		got := make(chan *pawl.Lease, 1)
		go func() {
			defer close(got)
			if leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1}); err == nil {
				got <- leases[0]
			}
		}()
		return got
	}
	waiting := fetchOne()
	fetchWaits(t, q)
	keyed := func(delay time.Duration) *pawl.Envelope {
		return &pawl.Envelope{Kind: "k", IdempotencyKey: "key", Delay: delay}
	}
	updateApp(t, db, nil, func(tx *bbolt.Tx) {
		require.NoError(t, withid.EnqueueTx(q, tx, keyed(0), keyed(0), &pawl.Envelope{Kind: "later", Delay: 50 * time.Millisecond}))
	})
	l := <-waiting
	require.Equal(t, "k", l.Kind)
	require.Equal(t, []string{"enqueued", "enqueued", "enqueued", "fetched"}, events.take())
	later := <-fetchOne()
	require.Equal(t, "later", later.Kind, "the other one waits for its key")
	require.Equal(t, []string{"fetched"}, events.take())

	drained := started(func() error {
		_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitDrained})
		return err
	})
	fetchWaits(t, q)
	updateApp(t, db, nil, func(tx *bbolt.Tx) {
		require.NoError(t, errors.Join(q.AckTx(tx, l), q.AckTx(tx, later)))
	})
	require.ErrorIs(t, <-drained, pawl.ErrEmpty)
	got := events.take()
	require.ElementsMatch(t, []string{"succeeded", "succeeded", "skipped"}, got)
	require.Equal(t, "succeeded", got[0], "that of the first verb, which freed the key")
}

// The table of leases follows the app's transactions: there is no signal too many, and no
// acked job is taken back.
func TestLeasesFollowTheAppsTransactions(t *testing.T) {
	db := openApp(t)
	q := openOver(t, db, nil)
	add(t, q, nil)
	add(t, q, nil)
	leases := fetch(t, q, 2)
	fired := make(chan struct{})
	leases[1].Cancelled.OnFire(func() { close(fired) })
	updateApp(t, db, nil, func(tx *bbolt.Tx) {
		require.NoError(t, errors.Join(q.AckTx(tx, leases[0]), q.CancelTx(tx, leases[1].ID)))
	})
	<-fired
	require.False(t, leases[0].Cancelled.Fired())
	require.NoError(t, q.do(t.Context(), visit(func() {
		require.Nil(t, q.scheduler.leases.byToken.get(leases[0].Token))
		require.NotNil(t, q.scheduler.leases.byToken.get(leases[1].Token))
	})))
	require.NoError(t, q.Settle(t.Context(), leases[1].Nack(0, errBoom)))
	require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
}

// The queue and the app write alternately, each in its own transactions, and read at the same
// time. Nothing is lost or counted twice, and the sequences rise.
func TestAppAndQueueAtOnce(t *testing.T) {
	db := openApp(t)
	q := openOver(t, db, nil)
	const callers, rounds = 8, 15
	var running sync.WaitGroup
	errs := make(chan error, 10*callers*rounds)
	for n := range callers {
		running.Go(func() { // in the app's transactions, one in three is rolled back
			for i := range rounds {
				do, end := db.Update, error(nil)
				if i%2 == 0 {
					do = db.Batch
				}
				if i%3 == 0 {
					end = errRolledBack
				}
				err := do(func(tx *bbolt.Tx) error {
					if err := appPut(tx, fmt.Sprintf("%d/%d", n, i)); err != nil {
						return err
					}
					return errors.Join(withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k"}), end)
				})
				if end != nil && errors.Is(err, end) {
					err = nil
				}
				errs <- err
			}
		})
		running.Go(func() { // in the queue's transactions
			for range rounds {
				errs <- withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})
				errs <- q.Update(t.Context(), func(tx *bbolt.Tx) error { return withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k"}) })
				_, err := q.Stats(t.Context())
				errs <- err
			}
		})
		running.Go(func() { // alternately
			for i := range 2*rounds + rounds*2/3 {
				leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
				if err != nil {
					errs <- err
					return
				}
				if i%2 == 0 {
					errs <- q.Settle(t.Context(), leases[0].Ack())
				} else {
					errs <- db.Update(func(tx *bbolt.Tx) error { return q.AckTx(tx, leases[0]) })
				}
			}
		})
	}
	running.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, appRows(t, db), callers*rounds*2/3)
	settled(t, q)
	require.Zero(t, countsOf(t, q, pawl.DefaultQueue))
	require.NoError(t, q.do(t.Context(), visit(func() { require.Empty(t, q.scheduler.leases.byToken.pages) })))
	checkNow(t, q)
}

// While the queue waits for an app's transaction, no worker can extend a lease. A lease that
// expires in that time is not taken back before its holder's calls are served.
func TestLeaseOutlastsATransactionOfTheAppsThatBlocksTheQueue(t *testing.T) {
	t.Parallel()
	db := openApp(t)
	reached, goOn := make(chan struct{}), make(chan struct{})
	q := openOver(t, db, &Options{Lease: 10 * time.Second, OnEvent: func(e pawl.Event) {
		if e.Job.Kind == "last" && e.Type == pawl.EventEnqueued {
			close(reached)
			<-goOn
		}
	}})
	add(t, q, nil)
	add(t, q, nil)
	leases := fetch(t, q, 2)
	blocking := &call{op: &reap{leases: q.scheduler.leases, portion: reapPortion}, done: make(chan struct{})}
	var extended, acked <-chan error
	enqueued := started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "last"}) })
	<-reached
	updateApp(t, db, nil, func(*bbolt.Tx) {
		require.NoError(t, q.scheduler.intake.offer(t.Context(), blocking))
		close(goOn) // only now, so that every pass that waits for this transaction has the call
		for blocking.stage.Load() == offered {
			runtime.Gosched()
		}
		extended = started(func() error {
			lost, err := q.Extend(t.Context(), leases[0])
			if len(lost) > 0 {
				err = pawl.ErrLeaseLost
			}
			return err
		})
		acked = started(func() error { return q.Settle(t.Context(), leases[1].Ack()) })
		pass(time.Until(leases[1].Expires) + 1)
	})
	require.NoError(t, <-enqueued)
	require.NoError(t, <-extended)
	require.NoError(t, <-acked)
	<-blocking.done
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
}
