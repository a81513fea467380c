package postgres

import (
	"context"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl/driver"
)

// The statements of the rows of other packages. Their keys are bytea, which has no collation.
const (
	sqlTables = `SELECT name, id FROM pawl.kv_table WHERE space = $1`

	sqlAddTables = `INSERT INTO pawl.kv_table (space, name) SELECT $1, n FROM unnest($2::bytea[]) n ORDER BY n ON CONFLICT DO NOTHING`

	// sqlLockTogether and sqlLockAlone exclude one another. Mutations that declare what they touch use the first, and a
	// mutation that does not uses the second. No transaction changes rows of the locked table.
	sqlLockTogether = `LOCK TABLE pawl.meta IN ROW SHARE MODE`
	sqlLockAlone    = `LOCK TABLE pawl.meta IN EXCLUSIVE MODE`

	// sqlLockRows locks rows in the order of their keys.
	sqlLockRows = `SELECT kv.tab, kv.key, kv.value FROM pawl.kv JOIN unnest($1::int4[], $2::bytea[]) AS n(tab, key) USING (tab, key)
ORDER BY kv.tab, kv.key FOR UPDATE OF kv`

	// sqlReadSpans reads several spans, and numbers them from 1.
	sqlReadSpans = `SELECT n.nth, r.key, r.value
FROM unnest($1::int4[], $2::bytea[], $3::bytea[], $4::int8[]) WITH ORDINALITY AS n(tab, first, last, most, nth), LATERAL (
	SELECT key, value FROM pawl.kv WHERE tab = n.tab AND key >= n.first AND (n.last IS NULL OR key < n.last)
	ORDER BY key LIMIT n.most) r`

	sqlReadRow  = `SELECT value FROM pawl.kv WHERE tab = $1 AND key = $2`
	sqlReadUp   = `SELECT key, value FROM pawl.kv WHERE tab = $1 AND key >= $2 AND ($3::bytea IS NULL OR key < $3) ORDER BY key LIMIT $4`
	sqlReadDown = `SELECT key, value FROM pawl.kv WHERE tab = $1 AND key >= $2 AND ($3::bytea IS NULL OR key < $3) ORDER BY key DESC LIMIT $4`

	// sqlAddRows stores rows that were missing. It fails if another process was first, and then
	// the group runs again.
	sqlAddRows = `INSERT INTO pawl.kv (tab, key, value) SELECT * FROM unnest($1::int4[], $2::bytea[], $3::bytea[]) ORDER BY 1, 2`

	sqlPutRows = sqlAddRows + ` ON CONFLICT (tab, key) DO UPDATE SET value = excluded.value`

	sqlDeleteRows = `DELETE FROM pawl.kv USING unnest($1::int4[], $2::bytea[]) AS n(tab, key) WHERE kv.tab = n.tab AND kv.key = n.key`
)

// table returns the number of a table, 0 if its space has no tables yet.
func (rs *rows) table(t *driver.Table) (int32, error) {
	if id, ok := rs.q.tables.Load(t); ok {
		return id.(int32), nil
	}
	if id, ok := rs.fresh[t]; ok {
		return id, nil
	}
	if _, looked := rs.spaces[t.Space()]; !looked {
		if err := rs.readTables(t.Space()); err != nil {
			return 0, err
		}
	}
	id, ok := rs.fresh[t]
	if !ok && rs.spaces[t.Space()] > 0 {
		return 0, fmt.Errorf("table %s: %w", t, driver.ErrNoTable)
	}
	return id, nil
}

// readTables reads the numbers of the tables of a space.
func (rs *rows) readTables(s *driver.Space) error {
	found, err := rs.tx.Query(rs.ctx, rs.q.sql(sqlTables), s.Bytes())
	if err != nil {
		return err
	}
	var name []byte
	var id int32
	known := make(map[string]int32)
	if _, err := pgx.ForEachRow(found, []any{&name, &id}, func() error {
		known[string(name)] = id
		return nil
	}); err != nil {
		return err
	}
	rs.spaces[s] = len(known)
	for _, t := range s.Tables() {
		if id, ok := known[t.String()]; ok {
			rs.fresh[t] = id
		}
	}
	return nil
}

// createTables creates the tables of a space.
func (rs *rows) createTables(s *driver.Space) error {
	var names [][]byte
	for _, t := range s.Tables() {
		names = append(names, t.Bytes())
	}
	if _, err := rs.tx.Exec(rs.ctx, rs.q.sql(sqlAddTables), s.Bytes(), names); err != nil {
		return err
	}
	return rs.readTables(s)
}

// remember keeps the numbers of the tables for later transactions. Call it after the commit of the transaction that
// read or made them.
func (rs *rows) remember() {
	for t, id := range rs.fresh {
		rs.q.tables.Store(t, id)
	}
}

// ViewRows runs fn in a read transaction over the rows that a [driver.Mutation] writes. The transaction reads one
// snapshot. Each read of a row, and each portion of a scan, is a round trip. The first round trip also begins the
// transaction. If the connection breaks while fn reads, ViewRows returns [ErrUnavailable]. If the connection was broken
// before, fn runs again on another one.
func (q *Queue) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	var seen *rows
	err := q.look(ctx, func(tx *viewTx) error {
		seen = newRows(q, ctx, tx)
		seen.view = true
		err := fn(seen)
		switch {
		case err != nil && tx.conn.IsClosed() && !tx.began:
			return fmt.Errorf("%w: %w", net.ErrClosed, err)
		case err != nil && tx.conn.IsClosed(): // the connection broke while fn ran
			return viewError{fmt.Errorf("%w: %w", ErrUnavailable, err)}
		case err != nil:
			return viewError{err}
		}
		return nil
	})
	if own, ok := err.(viewError); ok {
		return own.error
	}
	if err == nil {
		seen.remember()
	}
	return err
}

// viewError is an error of the function of a view. It belongs to the caller, so look does not try again.
type viewError struct{ error }
