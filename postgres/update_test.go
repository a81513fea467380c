package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// openOver opens a queue over a pool of n connections.
func openOver(t *testing.T, n int32) *postgres.Queue {
	schema := newSchema(t)
	config, err := pgxpool.ParseConfig(server.url)
	require.NoError(t, err)
	config.MaxConns = n
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	q, err := postgres.Over(t.Context(), pool, &postgres.Options{Schema: schema, Poll: postgres.NoPoll, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// Rule: the context of Update has an effect only until the function begins. After that, what the
// function did is committed, and Update returns nil.
func TestUpdateWhoseContextEnds(t *testing.T) {
	q := open(t, newSchema(t), noPoll)
	ctx, cancel := context.WithCancel(t.Context())
	e := &pawl.Envelope{Kind: "k"}
	require.NoError(t, q.Update(ctx, func(tx postgres.Tx) error {
		defer cancel()
		return withid.Enqueue(ctx, q.In(tx), e)
	}))
	require.Equal(t, e.ID, fetchOne(t, q).ID)
	require.ErrorIs(t, q.Update(ctx, nil), pawl.ErrNotAccepted)
}

// Rule: an Update whose context ends while it waits for a connection of the pool was not accepted.
func TestUpdateThatWaitsForAConnection(t *testing.T) {
	q := openOver(t, 1)
	require.NoError(t, q.Update(t.Context(), func(postgres.Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, q.Update(ctx, nil), pawl.ErrNotAccepted)
		return nil
	}))
}

// Rule: an Update whose connection broke before its commit certainly had no effect, so its outcome is
// known.
func TestUpdateThatBreaksBeforeItsCommit(t *testing.T) {
	q := open(t, newSchema(t), noPoll)
	err := q.Update(t.Context(), func(tx postgres.Tx) error {
		if err := withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "k"}); err != nil {
			return err
		}
		_, broken := tx.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
		require.Error(t, broken)
		return nil
	})
	require.Error(t, err)
	require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.Zero(t, countOf(t, q))
}

// Rule: a transaction of the app that has the last connection of the pool enqueues jobs of a new kind,
// also while the queue has lost its own connection.
func TestLastConnectionOfThePool(t *testing.T) {
	q := openOver(t, 1)
	for _, lost := range []bool{false, true} {
		require.NoError(t, q.Update(t.Context(), func(tx postgres.Tx) error {
			if lost {
				if _, err := tx.Exec(t.Context(), breakConnections); err != nil {
					return err
				}
			}
			return withid.Enqueue(patient(t), q.In(tx), &pawl.Envelope{Kind: fmt.Sprint("lost ", lost)})
		}))
	}
	require.Equal(t, 2, countOf(t, q))
}

// Rule: Wake and Update do not wait for transactions of the app that are still open, though they acked
// jobs.
func TestWakeBesideAnOpenAck(t *testing.T) {
	q := open(t, newSchema(t), noPoll)
	tx := appTxs["pgx"](t)()
	require.NoError(t, q.AckTx(t.Context(), tx, lease(t, q, &pawl.Envelope{Kind: "open"})))
	require.NoError(t, q.Wake(patient(t)))
	l := lease(t, q, &pawl.Envelope{Kind: "k"})
	require.NoError(t, q.Update(patient(t), func(tx postgres.Tx) error { return q.AckTx(t.Context(), tx, l) }))
	require.True(t, driver.Settled(l))
	require.NoError(t, tx.commit())
}

// Rule: an ack that was rolled back is no success, also when the job has succeeded since, in this
// process or in another one.
func TestAckThatWasRolledBack(t *testing.T) {
	schema := newSchema(t)
	q, other := open(t, schema, noPoll), open(t, schema, noPoll)
	for name, ack := range map[string]func(l *pawl.Lease) error{
		"the same lease": func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) },
		"another client": func(l *pawl.Lease) error { return other.Settle(t.Context(), l.Ack()) },
		"another lease": func(l *pawl.Lease) error {
			if err := q.Settle(t.Context(), l.Release()); err != nil {
				return err
			}
			return q.Settle(t.Context(), fetchOne(t, q).Ack())
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lease(t, q, &pawl.Envelope{Kind: "k"})
			tx := appTxs["pgx"](t)()
			require.NoError(t, q.AckTx(t.Context(), tx, l))
			require.NoError(t, tx.rollback())
			require.NoError(t, ack(l))
			defer q.Listen(func(e pawl.Event) { t.Errorf("an event after the success: %s", e.Type) })()
			require.NoError(t, q.Wake(t.Context()))
			require.False(t, driver.Settled(l))
		})
	}
}

// Rule: an Update whose commit gets no answer has an unknown outcome, whether the server got the commit
// or not.
func TestUpdateWhoseCommitGetsNoAnswer(t *testing.T) {
	proxy := newCutter(t)
	q := openAt(t, proxy.url, newSchema(t), noPoll)
	for stored, cut := range []*atomic.Bool{&proxy.before, &proxy.after} {
		require.ErrorIs(t, q.Update(t.Context(), func(tx postgres.Tx) error {
			defer cut.Store(true)
			return withid.Enqueue(t.Context(), q.In(tx), &pawl.Envelope{Kind: "k"})
		}), pawl.ErrUnknownOutcome)
		require.False(t, cut.Load(), "the connection broke at the commit")
		require.Equal(t, stored, countOf(t, q))
	}
}
