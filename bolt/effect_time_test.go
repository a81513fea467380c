package bolt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// ackings are the ways to ack a job. Time passes around the ack if something else can happen
// there: now is the time of the ack.
var ackings = map[string]func(t *testing.T, q *Queue, app *bbolt.DB, l *pawl.Lease) (now time.Time){
	"Ack": func(t *testing.T, q *Queue, _ *bbolt.DB, l *pawl.Lease) time.Time {
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		return time.Now()
	},
	"AckTx in Update": func(t *testing.T, q *Queue, _ *bbolt.DB, l *pawl.Lease) (now time.Time) {
		inTx(t, q, nil, func(tx *bbolt.Tx) {
			pass(5 * time.Minute)
			now = time.Now()
			require.NoError(t, q.AckTx(tx, l))
			pass(3 * time.Minute)
		})
		return now
	},
	"AckTx in a transaction of the app": func(t *testing.T, q *Queue, app *bbolt.DB, l *pawl.Lease) (now time.Time) {
		updateApp(t, app, nil, func(tx *bbolt.Tx) {
			pass(5 * time.Minute)
			now = time.Now()
			require.NoError(t, q.AckTx(tx, l))
			pass(3 * time.Minute)
		})
		return now
	},
	"Ops.Ack": func(t *testing.T, q *Queue, _ *bbolt.DB, l *pawl.Lease) time.Time {
		require.NoError(t, q.Mutate(t.Context(), riding("row", func(p *ops) error { return p.Ack(l) }), 0))
		return time.Now()
	},
}

// Rule: an effect counts as done from the ack on, for the time to live of its key. It does not
// count from the enqueue, the fetch, the beginning of the transaction, or its commit. Until
// then no job with its key runs. At that time one does.
func TestAnEffectIsDoneFromTheAckOn(t *testing.T) {
	for name, ack := range ackings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ttl = time.Hour
				app := openApp(t)
				q := openOver(t, app, &Options{Lease: 24 * time.Hour})
				keyed := func(e *pawl.Envelope) { e.IdempotencyKey, e.IdempotencyTTL = "key", ttl }
				add(t, q, keyed)
				pass(7 * time.Minute)
				l := leaseOne(t, q)
				pass(11 * time.Minute)
				until := ack(t, q, app, l).Add(ttl)

				effects, _, err := q.Effects(t.Context(), "", 9)
				require.NoError(t, err)
				require.Len(t, effects, 1)
				require.True(t, until.Equal(effects[0].Until), "%v, want %v", effects[0].Until, until)

				pass(time.Until(until) - 1)
				skipped := add(t, q, keyed).ID
				_, err = q.Fetch(t.Context(), pawl.Request{Max: 9, Wait: pawl.WaitNot})
				require.ErrorIs(t, err, pawl.ErrEmpty)
				pass(1)
				id := add(t, q, keyed).ID
				require.NotEqual(t, skipped, id)
				require.Equal(t, id, leaseOne(t, q).ID)
			})
		})
	}
}

// Rule: a transaction's ack is refused as long as the effect counts as done under another job,
// and no longer.
func TestAckTxAtTheEndOfAnEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = time.Hour
		q := openTest(t, &Options{Lease: 24 * time.Hour})
		e := add(t, q, func(e *pawl.Envelope) { e.IdempotencyKey, e.IdempotencyTTL = "key", ttl })
		l := leaseOne(t, q)
		require.NoError(t, q.do(t.Context(), finish{e}))
		until := time.Now().Add(ttl)
		ackTxAt := func(at time.Time) error {
			return q.Update(t.Context(), func(tx *bbolt.Tx) error { // in which nothing else removes expired rows
				pass(time.Until(at))
				return q.AckTx(tx, l)
			})
		}
		require.ErrorIs(t, ackTxAt(until.Add(-1)), pawl.ErrConflict)
		require.NoError(t, ackTxAt(until))
		effects, _, err := q.Effects(t.Context(), "", 9)
		require.NoError(t, err)
		require.Len(t, effects, 1)
		require.True(t, until.Add(ttl).Equal(effects[0].Until))
	})
}
