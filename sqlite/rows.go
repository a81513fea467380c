package sqlite

import (
	"bytes"
	"context"
	sqldriver "database/sql/driver"
	"fmt"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// rows implements [driver.Writer] in one transaction. Its first error of SQLite ends the transaction.
type rows struct {
	c      conn
	err    error
	tables map[*driver.Table]int64 // numbers of tables
	spaces map[*driver.Space]int   // how many tables each space has; only spaces that it has looked at

	onCommit []func()
}

func newRows(c conn) *rows {
	rs := &rows{c: c}
	rs.forget()
	return rs
}

// forget drops what the transaction knows about the tables, and the functions for its commit.
func (rs *rows) forget() {
	rs.tables, rs.spaces, rs.onCommit = make(map[*driver.Table]int64), make(map[*driver.Space]int), nil
}

// failed records an error of SQLite.
func (rs *rows) failed(err error) error {
	if rs.err == nil {
		rs.err = err
	}
	return err
}

// table returns the number of a table, 0 if its space has no tables yet.
func (rs *rows) table(t *driver.Table) (int64, error) {
	if rs.err != nil {
		return 0, rs.err
	}
	if _, looked := rs.spaces[t.Space()]; !looked {
		if err := rs.readTables(t.Space()); err != nil {
			return 0, rs.failed(err)
		}
	}
	id, ok := rs.tables[t]
	if !ok && rs.spaces[t.Space()] > 0 {
		return 0, fmt.Errorf("table %s: %w", t, driver.ErrNoTable)
	}
	return id, nil
}

// readTables reads the numbers of the tables of a space.
func (rs *rows) readTables(s *driver.Space) error {
	known := make(map[string]int64)
	err := rs.c.query(`SELECT name, id FROM pawl_kv_table WHERE space = ?`, func(v []sqldriver.Value) error {
		known[string(bytesOf(v[0]))] = number(v[1])
		return nil
	}, s.Bytes())
	if err != nil {
		return err
	}
	rs.spaces[s] = len(known)
	for _, t := range s.Tables() {
		if id, ok := known[t.String()]; ok {
			rs.tables[t] = id
		}
	}
	return nil
}

// createTables creates the tables of a space.
func (rs *rows) createTables(s *driver.Space) error {
	for _, t := range s.Tables() {
		if _, err := rs.c.exec(`INSERT INTO pawl_kv_table (space, name) VALUES (?, ?)`, s.Bytes(), t.Bytes()); err != nil {
			return err
		}
	}
	return rs.readTables(s)
}

// Get implements [driver.Reader].
func (rs *rows) Get(t *driver.Table, key []byte) (value []byte, err error) {
	id, err := rs.table(t)
	if err != nil || id == 0 {
		return nil, err
	}
	err = rs.c.query(`SELECT value FROM pawl_kv WHERE tab = ? AND key = ?`, func(v []sqldriver.Value) error {
		value = notNil(bytesOf(v[0]))
		return nil
	}, id, notNil(key))
	if err != nil {
		return nil, rs.failed(err)
	}
	return value, nil
}

// notNil returns a blob that is not NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

const (
	sqlReadUp   = `SELECT key, value FROM pawl_kv WHERE tab = ? AND key >= ? AND (?3 IS NULL OR key < ?3) ORDER BY key LIMIT ?4`
	sqlReadDown = `SELECT key, value FROM pawl_kv WHERE tab = ? AND key >= ? AND (?3 IS NULL OR key < ?3) ORDER BY key DESC LIMIT ?4`
)

// How many rows a scan reads at a time. It begins with few, because many scans end early.
const (
	leastPortion = 16
	mostPortion  = 256
)

// Scan implements [driver.Reader].
func (rs *rows) Scan(t *driver.Table, s driver.Span, fn func(key, value []byte) bool) error {
	id, err := rs.table(t)
	if err != nil || id == 0 {
		return err
	}
	from, to := limits(s)
	statement := sqlReadUp
	if s.Reverse {
		statement = sqlReadDown
	}
	type row struct{ key, value []byte }
	left := s.Limit
	for size := leastPortion; ; size = min(2*size, mostPortion) {
		if s.Limit > 0 {
			size = min(size, left)
		}
		var found []row
		var end sqldriver.Value
		if to != nil {
			end = to
		}
		err := rs.c.query(statement, func(v []sqldriver.Value) error {
			found = append(found, row{notNil(bytesOf(v[0])), notNil(bytesOf(v[1]))})
			return nil
		}, id, from, end, int64(size))
		if err != nil {
			return rs.failed(err)
		}
		for _, r := range found {
			if !fn(r.key, r.value) {
				return nil
			}
		}
		if left -= len(found); len(found) < size || s.Limit > 0 && left <= 0 {
			return nil
		}
		if last := found[len(found)-1].key; s.Reverse {
			to = last
		} else {
			from = driver.After(last)
		}
	}
}

// limits returns the first key of a span, and the first key behind it, nil for none.
func limits(s driver.Span) (from, to []byte) {
	from = notNil(s.Prefix)
	if bytes.Compare(s.From, from) > 0 {
		from = s.From
	}
	to = bytes.Clone(s.Prefix)
	for len(to) > 0 && to[len(to)-1] == 0xff {
		to = to[:len(to)-1]
	}
	if len(to) == 0 {
		return from, nil
	}
	to[len(to)-1]++
	return from, to
}

// Put implements [driver.Writer].
func (rs *rows) Put(t *driver.Table, key, value []byte) error {
	id, err := rs.table(t)
	if err == nil && id == 0 {
		if err := rs.createTables(t.Space()); err != nil {
			return rs.failed(err)
		}
		id, err = rs.table(t)
	}
	if err != nil {
		return err
	}
	if _, err := rs.c.exec(`INSERT OR REPLACE INTO pawl_kv (tab, key, value) VALUES (?, ?, ?)`, id, notNil(key), notNil(value)); err != nil {
		return rs.failed(err)
	}
	return nil
}

// Delete implements [driver.Writer].
func (rs *rows) Delete(t *driver.Table, key []byte) error {
	id, err := rs.table(t)
	if err != nil || id == 0 {
		return err
	}
	if _, err := rs.c.exec(`DELETE FROM pawl_kv WHERE tab = ? AND key = ?`, id, notNil(key)); err != nil {
		return rs.failed(err)
	}
	return nil
}

// DeleteSpan implements [driver.Writer].
func (rs *rows) DeleteSpan(t *driver.Table, s driver.Span, size int) (n, removed int, err error) {
	return core.DeleteSpan(rs, t, s, size)
}

// OnCommit implements [driver.Writer].
func (rs *rows) OnCommit(fn func()) { rs.onCommit = append(rs.onCommit, fn) }

// ViewRows runs fn in a read transaction over the rows that a driver.Mutation writes. The
// transaction reads one snapshot.
func (q *Queue) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	var result error
	err := q.look(ctx, func(c conn) error {
		result = fn(newRows(c))
		return nil
	})
	if err != nil {
		return err
	}
	return result
}
