package bolt

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// An invalid lease panics in the caller that passed it, not in the queue.
func TestLeaseThatIsNone(t *testing.T) {
	calls := map[string]func(context.Context, *Queue, *pawl.Lease) error{
		"extend": func(ctx context.Context, q *Queue, l *pawl.Lease) error { _, err := q.Extend(ctx, l); return err },
		"ack":    func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) },
		"nack":   func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Nack(0, errBoom)) },
		"abandon": func(ctx context.Context, q *Queue, l *pawl.Lease) error {
			return q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errBoom))
		},
		"release": func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Release()) },
		"snooze":  func(ctx context.Context, q *Queue, l *pawl.Lease) error { return q.Settle(ctx, l.Snooze(0)) },
	}
	for what, l := range map[string]*pawl.Lease{"nil": nil, "without an envelope": {Token: 1}} {
		for name, call := range calls {
			t.Run(name+" of a lease "+what, func(t *testing.T) {
				q := openTest(t, &Options{Logger: hclog.NewNullLogger(), OnEvent: func(pawl.Event) {}})
				add(t, q, nil)
				held := leaseOne(t, q)
				if name == "extend" {
					require.Panics(t, func() { _ = call(t.Context(), q, l) })
				} else {
					require.ErrorIs(t, call(t.Context(), q, l), pawl.ErrInvalid)
				}
				err := q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, l) })
				require.ErrorIs(t, err, pawl.ErrInvalid, "in a transaction it is refused")
				lost, err := q.Extend(t.Context(), held)
				require.NoError(t, err, "the queue goes on")
				require.Empty(t, lost)
				require.NoError(t, q.Settle(t.Context(), held.Ack()))
			})
		}
	}
}

// A function of Update that ends the transaction itself gets an error that says so with the
// outcome, and the queue continues.
func TestUpdateThatEndsItsTransaction(t *testing.T) {
	for _, c := range []struct {
		rule, says string
		stored     bool
		end        func(*bbolt.Tx) error
	}{
		{"rolled back", "nothing was stored", false, (*bbolt.Tx).Rollback},
		{"committed", "it is stored", true, (*bbolt.Tx).Commit},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var events eventLog
			q := openTest(t, &Options{Logger: hclog.NewNullLogger(), OnEvent: events.event})
			add(t, q, nil)
			l := leaseOne(t, q)
			cancelled := add(t, q, nil).ID
			before := digest(t, q)
			events.take()
			err := q.Update(t.Context(), func(tx *bbolt.Tx) error {
				require.NoError(t, writeAll(q, tx, l, cancelled))
				return c.end(tx)
			})
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, c.says)
			require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
			settled(t, q)
			require.Equal(t, c.stored, driver.Settled(l))
			if c.stored {
				require.Equal(t, []string{"row"}, appRows(t, q.db))
				require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, "new"))
				require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
				require.ElementsMatch(t, []string{"enqueued", "succeeded", "died"}, events.take())
			} else {
				require.Equal(t, before, digest(t, q))
				require.Empty(t, events.take())
				require.NoError(t, q.Settle(t.Context(), l.Ack()))
			}
			add(t, q, func(e *pawl.Envelope) { e.Queue = "later" })
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q, "later").Ack()))
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return appPut(tx, "row") }))
		})
	}
}

// Update also returns the function's own error.
func TestErrorOfAnUpdateThatEndsItsTransaction(t *testing.T) {
	q := openTest(t, nil)
	require.Equal(t, errRolledBack, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		require.NoError(t, tx.Rollback())
		return errRolledBack
	}))
	require.Panics(t, func() {
		_ = q.Update(t.Context(), func(tx *bbolt.Tx) error {
			defer func() { _ = tx.Rollback() }()
			panic("boom")
		})
	})
	add(t, q, nil)
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
}
