package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/postgres"
)

// schema has the tables of the queue and those of the books.
const schema = "ledger"

// createBooks creates the app's tables.
const createBooks = `
CREATE TABLE ledger.plan (plan jsonb NOT NULL);
CREATE TABLE ledger.account (name text PRIMARY KEY, cents int8 NOT NULL);
CREATE TABLE ledger.journal (transfer int8, fee bool, giver text, taker text, cents int8)`

// onServer is a store in a PostgreSQL database.
type onServer struct{ *postgres.Queue }

func openServer(ctx context.Context, url string) (store, error) {
	q, err := postgres.Open(ctx, url, &postgres.Options{
		Schema:     schema,
		Owner:      schema,                // it takes back at once what a killed ledger held
		MaxCrashes: postgres.NoMaxCrashes, // killing the program is not the fault of a transfer
		Logger:     hclog.NewNullLogger(),
	})
	if err != nil {
		return nil, err
	}
	return onServer{q}, nil
}

func (s onServer) change(ctx context.Context, fn func(books) error) error {
	return s.Update(ctx, func(tx postgres.Tx) error { return fn(serverBooks{ctx, tx, s.Queue}) })
}

// view waits until transactions that write have ended: the server may still commit that of a killed
// ledger.
func (s onServer) view(ctx context.Context, fn func(books) error) error {
	return s.Update(ctx, func(tx postgres.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE ledger.journal IN SHARE MODE"); err != nil {
			return err
		}
		return fn(serverBooks{ctx, tx, s.Queue})
	})
}

// serverBooks are books in tables beside those of the queue.
type serverBooks struct {
	ctx context.Context
	tx  postgres.Tx
	q   *postgres.Queue
}

func (b serverBooks) queue() pawl.Enqueuer    { return b.q.In(b.tx) }
func (b serverBooks) ack(l *pawl.Lease) error { return b.q.AckTx(b.ctx, b.tx, l) }

func (b serverBooks) exec(sql string, args ...any) error {
	_, err := b.tx.Exec(b.ctx, sql, args...)
	return err
}

func (b serverBooks) plan() (stored []byte, err error) {
	if err := b.exec("SELECT pg_advisory_xact_lock(1)"); err != nil { // one ledger at a time opens the books
		return nil, err
	}
	var isOpen bool
	if err := b.tx.QueryRow(b.ctx, "SELECT to_regclass('ledger.plan') IS NOT NULL").Scan(&isOpen); err != nil || !isOpen {
		return nil, err
	}
	err = b.tx.QueryRow(b.ctx, "SELECT plan FROM ledger.plan").Scan(&stored)
	return stored, err
}

func (b serverBooks) open(plan []byte, balances map[string]int64) error {
	if err := b.exec(createBooks); err != nil {
		return err
	}
	for account, cents := range balances {
		if err := b.exec("INSERT INTO ledger.account VALUES ($1, $2)", account, cents); err != nil {
			return err
		}
	}
	return b.exec("INSERT INTO ledger.plan VALUES ($1)", plan)
}

func (b serverBooks) add(account string, cents int64) (balance int64, err error) {
	err = b.tx.QueryRow(b.ctx, "UPDATE ledger.account SET cents = cents + $2 WHERE name = $1 RETURNING cents", account, cents).Scan(&balance)
	if err != nil {
		return 0, fmt.Errorf("account %q: %w", account, err)
	}
	return balance, nil
}

func (b serverBooks) record(e Entry) error {
	return b.exec("INSERT INTO ledger.journal VALUES ($1, $2, $3, $4, $5)", e.Transfer, e.Fee, e.From, e.To, e.Amount)
}

func (b serverBooks) read() (balances map[string]int64, journal []Entry, err error) {
	balances = make(map[string]int64)
	var account string
	var cents int64
	rows, err := b.tx.Query(b.ctx, "SELECT name, cents FROM ledger.account")
	if err != nil {
		return nil, nil, err
	}
	_, err = pgx.ForEachRow(rows, []any{&account, &cents}, func() error {
		balances[account] = cents
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if rows, err = b.tx.Query(b.ctx, "SELECT transfer, fee, giver, taker, cents FROM ledger.journal"); err != nil {
		return nil, nil, err
	}
	journal, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	return balances, journal, err
}
