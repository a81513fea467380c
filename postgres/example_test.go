package postgres_test

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	_ "github.com/gopawl/pawl/bolt" // for engine.Open, as in a program
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/postgres"
)

// The programs that docs/guide/many-machines.md quotes.

type Invoice struct{ Number string }

var SendInvoice = pawl.Define[Invoice]("invoice.send")

// openOnServer is what takes the place of bolt.Open.
func openOnServer(ctx context.Context) (*postgres.Queue, error) {
	return postgres.Open(ctx, "postgres://app@db.internal/app?sslmode=verify-full", nil)
}

// openByName opens the queue that the configuration names.
func openByName(ctx context.Context, where string) (engine.Queue, error) {
	q, err := engine.Open(ctx, where) // "jobs.db", or "postgres://app@db.internal/app"
	if err != nil {
		return nil, err
	}
	return q, pawl.Require(q, pawl.Shared) // an error on a file: this program runs on many machines
}

// sendInvoice books an invoice once, however often the job runs.
func sendInvoice(ctx context.Context, pool *pgxpool.Pool, q *postgres.Queue, job *pawl.Job[Invoice]) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO booked (number) VALUES ($1)", job.Args.Number); err != nil {
			return err // nothing of this transaction happens
		}
		return q.AckTx(ctx, tx, job.Lease) // if this commits, the job is done, whatever comes after
	})
	if err != nil {
		return err
	}
	_ = q.Wake(ctx) // so that the queue learns of it immediately; without Wake, it learns of it later
	return nil
}

// placeOrder stores an order together with the job that it causes.
func placeOrder(ctx context.Context, db *sql.DB, q *postgres.Queue, number string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (number) VALUES ($1)", number); err != nil {
		return err
	}
	if _, err := SendInvoice.Enqueue(ctx, q.In(postgres.SQL(tx)), Invoice{Number: number}); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	_ = q.Wake(ctx) // else workers find the job with their next poll
	return nil
}

// Rule: the programs of the guide work.
func TestGuide(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	q := open(t, schema)
	execute(t, "CREATE TABLE "+schema+".booked (number text); CREATE TABLE "+schema+".orders (number text)")
	dsn := "postgres:///postgres?" + url.Values{"host": {hostOf()}, "user": {"pawl"}, "search_path": {schema}}.Encode()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer db.Close()
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, placeOrder(t.Context(), db, q, "A-1"))
	l := fetchOne(t, q)
	require.NoError(t, sendInvoice(t.Context(), pool, q, &pawl.Job[Invoice]{Lease: l, Args: Invoice{"A-1"}}))
	require.Zero(t, countOf(t, q))
	require.Equal(t, 1, count(t, "SELECT count(*) FROM "+schema+".booked"))

	_, err = openByName(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	shared, err := openByName(t.Context(), urlOf("postgres", schema))
	require.NoError(t, err)
	require.NoError(t, shared.Close())
	_, err = openOnServer(t.Context())
	require.ErrorIs(t, err, postgres.ErrUnavailable)
}
