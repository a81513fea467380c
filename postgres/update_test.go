package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
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

// Rule: a context counts until the function of Update begins. What the function did is committed
// then, and Update returns nil.
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
