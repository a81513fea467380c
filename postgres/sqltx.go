package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQL returns a transaction of package database/sql as a [Tx]. Open the database with the driver of
// github.com/jackc/pgx/v5/stdlib: other drivers do not accept the arrays that the queue passes.
func SQL(tx *sql.Tx) Tx { return sqlTx{tx} }

type sqlTx struct{ tx *sql.Tx }

func (t sqlTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	result, err := t.tx.ExecContext(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	n, err := result.RowsAffected()
	return pgconn.NewCommandTag(fmt.Sprint("ROWS ", n)), err
}

func (t sqlTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	rows, err := t.tx.QueryContext(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return sqlRows{rows: rows}, nil
}

func (t sqlTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.tx.QueryRowContext(ctx, sql, args...)
}

// SendBatch returns the results of a batch whose statements run one by one when they are read.
func (t sqlTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return &sqlBatch{tx: t, ctx: ctx, queries: b.QueuedQueries}
}

// sqlRows are rows with the methods that the queue needs.
type sqlRows struct {
	pgx.Rows // nil: the other methods are not called
	rows     *sql.Rows
	err      error // error of the query, which then has no rows
}

func (r sqlRows) Close() {
	if r.rows != nil {
		_ = r.rows.Close() // Err has the error
	}
}

func (r sqlRows) Err() error {
	if r.rows == nil {
		return r.err
	}
	return r.rows.Err()
}

func (r sqlRows) Next() bool                    { return r.rows != nil && r.rows.Next() }
func (r sqlRows) Scan(dest ...any) error        { return r.rows.Scan(dest...) }
func (r sqlRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }

// sqlBatch is a batch whose statements run one by one.
type sqlBatch struct {
	tx      sqlTx
	ctx     context.Context
	queries []*pgx.QueuedQuery
}

func (b *sqlBatch) next() *pgx.QueuedQuery {
	query := b.queries[0]
	b.queries = b.queries[1:]
	return query
}

func (b *sqlBatch) Exec() (pgconn.CommandTag, error) {
	query := b.next()
	return b.tx.Exec(b.ctx, query.SQL, query.Arguments...)
}

func (b *sqlBatch) Query() (pgx.Rows, error) {
	query := b.next()
	rows, err := b.tx.Query(b.ctx, query.SQL, query.Arguments...)
	if err != nil {
		return sqlRows{err: err}, err
	}
	return rows, nil
}

func (b *sqlBatch) QueryRow() pgx.Row {
	query := b.next()
	return b.tx.QueryRow(b.ctx, query.SQL, query.Arguments...)
}

// Close runs the remaining statements, up to the first one that fails.
func (b *sqlBatch) Close() error {
	for len(b.queries) > 0 {
		var err error
		if fn := b.queries[0].Fn; fn != nil {
			err = fn(b)
		} else {
			_, err = b.Exec()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
