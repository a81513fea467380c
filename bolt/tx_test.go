package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// inTx runs fn in an Update and requires that it returns the given error.
func inTx(t *testing.T, q *Queue, end error, fn func(tx *bbolt.Tx)) {
	t.Helper()
	require.Equal(t, end, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		fn(tx)
		return end
	}))
}

// txVerbs is every verb of transactions, on a queue that has a ready job and a lease.
var txVerbs = []struct {
	name  string
	do    func(q *Queue, tx *bbolt.Tx, ready pawl.ID, l *pawl.Lease) error
	want  pawl.Counts
	event []string // events that it emits
}{
	{"enqueue", func(q *Queue, tx *bbolt.Tx, _ pawl.ID, _ *pawl.Lease) error {
		return withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k", Delay: time.Hour})
	}, pawl.Counts{Ready: 2, Delayed: 1, Leased: 1}, []string{"enqueued", "enqueued"}},
	{"enqueue nothing", func(q *Queue, tx *bbolt.Tx, _ pawl.ID, _ *pawl.Lease) error { return withid.EnqueueTx(q, tx) },
		pawl.Counts{Ready: 1, Leased: 1}, nil},
	{"enqueue of a kind", func(q *Queue, tx *bbolt.Tx, _ pawl.ID, _ *pawl.Lease) error {
		job, err := pawl.Define[string]("k").Enqueue(context.Background(), q.In(tx), "argument")
		if err == nil && job.ID.IsZero() {
			err = errors.New("it has no ID")
		}
		return err
	}, pawl.Counts{Ready: 2, Leased: 1}, []string{"enqueued"}},
	{"enqueue of one whose deadline has passed", func(q *Queue, tx *bbolt.Tx, _ pawl.ID, _ *pawl.Lease) error {
		return withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k", Deadline: time.Now().Add(-1)})
	}, pawl.Counts{Ready: 1, Leased: 1, Dead: 1}, []string{"enqueued", "died"}},
	{"ack", func(q *Queue, tx *bbolt.Tx, _ pawl.ID, l *pawl.Lease) error { return q.AckTx(tx, l) },
		pawl.Counts{Ready: 1}, []string{"succeeded"}},
	{"cancel of a ready job", func(q *Queue, tx *bbolt.Tx, ready pawl.ID, _ *pawl.Lease) error { return q.CancelTx(tx, ready) },
		pawl.Counts{Leased: 1, Dead: 1}, []string{"died"}},
	{"cancel of a leased job", func(q *Queue, tx *bbolt.Tx, _ pawl.ID, l *pawl.Lease) error { return q.CancelTx(tx, l.ID) },
		pawl.Counts{Ready: 1, Leased: 1}, []string{"cancelled"}},
	{"all at once", func(q *Queue, tx *bbolt.Tx, ready pawl.ID, l *pawl.Lease) error {
		own := &pawl.Envelope{Kind: "k", UniqueKey: "u"}
		other := &pawl.Envelope{Kind: "k", UniqueKey: "u"}
		err := withid.EnqueueTx(q, tx, own)
		done, failed := q.EnqueueTx(tx, other)
		err = errors.Join(
			err, failed, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: "k"}),
			q.CancelTx(tx, ready), q.CancelTx(tx, l.ID), q.AckTx(tx, l), q.CancelTx(tx, own.ID),
		)
		if !slices.Equal(done, []pawl.Enqueued{{ID: own.ID, Existing: true}}) {
			err = errors.Join(err, errors.New("a verb does not see what one before did"))
		}
		return err
	}, pawl.Counts{Ready: 1, Dead: 2}, []string{"enqueued", "enqueued", "died", "cancelled", "succeeded", "died"}},
}

// eventLog collects the types of events.
type eventLog struct {
	mu    sync.Mutex
	types []string
}

func (o *eventLog) event(e pawl.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.types = append(o.types, string(e.Type))
}

// take returns the events since the last call.
func (o *eventLog) take() (types []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	types, o.types = o.types, nil
	return types
}

// A verb takes effect and emits its events, each once, when the transaction is committed, and
// does neither when it is rolled back.
func TestTxVerbs(t *testing.T) {
	for _, c := range txVerbs {
		for _, end := range []error{nil, errRolledBack} {
			t.Run(fmt.Sprint(c.name, ", ", end), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var events eventLog
					q := openTest(t, &Options{OnEvent: events.event})
					add(t, q, nil)
					l := leaseOne(t, q)
					ready := add(t, q, nil).ID
					synctest.Wait()
					events.take()
					before := digest(t, q)
					inTx(t, q, end, func(tx *bbolt.Tx) {
						require.NoError(t, c.do(q, tx, ready, l))
						synctest.Wait()
						require.Empty(t, events.take(), "nothing is committed yet")
						require.Equal(t, before, digest(t, q), "nor to be seen")
						require.False(t, driver.Settled(l))
					})
					synctest.Wait()
					if end != nil {
						require.Equal(t, before, digest(t, q))
						require.Empty(t, events.take())
						require.False(t, l.Cancelled.Fired())
						require.False(t, driver.Settled(l))
						return
					}
					require.Equal(t, c.want, countsOf(t, q, pawl.DefaultQueue))
					require.Equal(t, c.event, events.take())
					require.Equal(t, strings.Contains(fmt.Sprint(c.event), "cancelled"), l.Cancelled.Fired())
					require.Equal(t, strings.Contains(fmt.Sprint(c.event), "succeeded"), driver.Settled(l))
					checkNow(t, q)
				})
			})
		}
	}
}

// A transaction in which no verb can work is refused in plain words, and nothing is written.
func TestTxOfTheWrongSort(t *testing.T) {
	q, other := openTest(t, nil), openTest(t, nil)
	add(t, q, nil)
	l := leaseOne(t, q)
	ready := add(t, q, nil).ID
	before := digest(t, q)
	reading, err := q.db.Begin(false)
	require.NoError(t, err)
	t.Cleanup(func() { _ = reading.Rollback() }) // otherwise Close would wait for it
	var over *bbolt.Tx
	inTx(t, q, nil, func(tx *bbolt.Tx) { over = tx })
	inTx(t, other, nil, func(foreign *bbolt.Tx) {
		for _, c := range txVerbs {
			if c.name == "enqueue nothing" {
				continue
			}
			for tx, reason := range map[*bbolt.Tx]string{
				foreign: "another database", over: "it is over", reading: "for reading only",
			} {
				err := c.do(q, tx, ready, l)
				require.ErrorIs(t, err, pawl.ErrInvalid, c.name)
				require.ErrorContains(t, err, reason, c.name)
			}
		}
	})
	require.Equal(t, before, digest(t, q))
	require.Zero(t, countsOf(t, other, pawl.DefaultQueue))
}

// After Close a verb has no transaction to work in.
func TestTxAfterClose(t *testing.T) {
	q := openTest(t, nil)
	var over *bbolt.Tx
	inTx(t, q, nil, func(tx *bbolt.Tx) { over = tx })
	require.NoError(t, q.Close())
	require.ErrorIs(t, withid.EnqueueTx(q, over, &pawl.Envelope{Kind: "k"}), pawl.ErrInvalid)
}

// A sequence that a rolled-back transaction took stays unused. The order is still that of the
// calls, also in the reopened file.
func TestSequenceAfterARollback(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q := openAt(t, path, nil)
	enqueue := func(end error, kind string) {
		inTx(t, q, end, func(tx *bbolt.Tx) { require.NoError(t, withid.EnqueueTx(q, tx, &pawl.Envelope{Kind: kind})) })
	}
	enqueue(nil, "a")
	enqueue(errRolledBack, "x")
	add(t, q, func(e *pawl.Envelope) { e.Kind = "b" })
	enqueue(errRolledBack, "x")
	enqueue(nil, "c")
	enqueue(errRolledBack, "x")
	require.NoError(t, q.Close())
	q = openAt(t, path, nil)
	enqueue(nil, "d")
	require.Equal(t, "abcd", kindsOf(fetch(t, q, 9)))
}
