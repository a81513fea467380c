package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pipe is a transaction that holds statements back until the answer to a statement is needed. It
// sends them in one round trip with that statement, or with the commit. If a statement fails, the
// server skips all statements after it in the same round trip.
type pipe struct {
	Tx
	held    pgx.Batch
	decides bool // the answer to a held statement may forbid the commit
}

// then calls fn once the server has carried out all held statements, or immediately if there are
// none.
func (p *pipe) then(fn func()) {
	n := p.held.Len()
	if n == 0 {
		fn()
		return
	}
	last := p.held.QueuedQueries[n-1]
	read := *last
	last.Fn = func(results pgx.BatchResults) error {
		err := receive(&read, results)
		if err == nil {
			fn()
		}
		return err
	}
}

// receive reads the answer to a statement of a batch.
func receive(query *pgx.QueuedQuery, results pgx.BatchResults) error {
	if query.Fn != nil {
		return query.Fn(results)
	}
	_, err := results.Exec()
	return err
}

// take returns the held statements and removes them from p.
func (p *pipe) take() *pgx.Batch {
	batch := p.held
	p.held, p.decides = pgx.Batch{}, false
	return &batch
}

// send sends the held statements.
func (p *pipe) send(ctx context.Context) error {
	if p.held.Len() == 0 {
		return nil
	}
	return p.Tx.SendBatch(ctx, p.take()).Close()
}

// SendBatch sends the held statements and then a batch, in one round trip.
func (p *pipe) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	batch := p.take()
	batch.QueuedQueries = append(batch.QueuedQueries, b.QueuedQueries...)
	return p.Tx.SendBatch(ctx, batch)
}

// Exec sends the held statements and then a statement, in one round trip.
func (p *pipe) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	p.held.Queue(sql, args...).Exec(func(done pgconn.CommandTag) error {
		tag = done
		return nil
	})
	return tag, p.send(ctx)
}

// QueryRow returns a row. Its Scan sends the held statements and then the query, in one round trip.
func (p *pipe) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return rowFunc(func(dest ...any) error {
		p.held.Queue(sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(dest...) })
		return p.send(ctx)
	})
}

type rowFunc func(dest ...any) error

func (f rowFunc) Scan(dest ...any) error { return f(dest...) }

// Query sends the held statements and then a query, in one round trip.
func (p *pipe) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	batch := p.take()
	before := batch.QueuedQueries
	batch.Queue(sql, args...)
	results := p.Tx.SendBatch(ctx, batch)
	for _, query := range before {
		if err := receive(query, results); err != nil {
			_ = results.Close() // it has the same error, or a later one
			return nil, err
		}
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, err
	}
	return &lastRows{Rows: rows, results: results}, nil
}

// lastRows are the rows of the last statement of a batch.
type lastRows struct {
	pgx.Rows
	results pgx.BatchResults
	err     error
}

func (r *lastRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *lastRows) Close() {
	r.Rows.Close()
	if r.err = r.Rows.Err(); r.err == nil {
		r.err = r.results.Close()
	} else {
		_ = r.results.Close()
	}
}

func (r *lastRows) Err() error { return r.err }
