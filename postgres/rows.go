package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// rows implements [driver.Writer] in one transaction. It keeps the rows that were read and those
// to write. It writes these with the jobs: see write. Its first error ends the transaction.
type rows struct {
	q    *Queue
	ctx  context.Context
	tx   Tx
	view bool // the transaction only reads, and keeps no rows
	err  error

	tables map[*driver.Table]*tableRows
	named  map[string]*tableRows   // the same tables by name
	fresh  map[*driver.Table]int32 // numbers of tables that the queue does not know yet
	spaces map[*driver.Space]int   // how many tables each space has; only spaces that it has looked at

	cover    cover
	onCommit []func()
}

func newRows(q *Queue, ctx context.Context, tx Tx) *rows {
	return &rows{q: q, ctx: ctx, tx: tx, tables: make(map[*driver.Table]*tableRows), named: make(map[string]*tableRows),
		fresh: make(map[*driver.Table]int32), spaces: make(map[*driver.Space]int)}
}

// tableRows are the rows of a table that a transaction knows.
type tableRows struct {
	id   int32    // 0 while the space has no tables
	keys []string // of rows, in order
	rows map[string]*row
	full keyRanges // the ranges whose rows are all in rows
}

// row is a row that was read, or is to be written.
type row struct {
	value []byte // nil: there is none
	read  bool
	found bool // it was read, and it existed
	dirty bool
}

// of returns the known rows of a table.
func (rs *rows) of(t *driver.Table) (*tableRows, error) {
	if rs.err != nil {
		return nil, rs.err
	}
	tr := rs.tables[t]
	if tr == nil || tr.id == 0 {
		id, err := rs.table(t)
		if err != nil {
			return nil, rs.failed(err)
		}
		if tr == nil {
			name := string(t.Space().Bytes()) + "\x00" + t.String()
			if tr = rs.named[name]; tr == nil {
				tr = &tableRows{rows: make(map[string]*row)}
				rs.named[name] = tr
			}
			rs.tables[t] = tr
		}
		if tr.id = id; id == 0 {
			tr.full = keyRanges{{to: bound{last: true}}}
		}
	}
	return tr, nil
}

// failed ends the transaction with an error of the server. Any other error is the caller's.
func (rs *rows) failed(err error) error {
	if !errors.Is(err, driver.ErrNoTable) {
		rs.err = err
	}
	return err
}

// entry returns the row of a key, and makes one if none is known.
func (tr *tableRows) entry(key string) *row {
	r := tr.rows[key]
	if r == nil {
		r = new(row)
		tr.rows[key] = r
		at, _ := slices.BinarySearch(tr.keys, key)
		tr.keys = slices.Insert(tr.keys, at, key)
	}
	return r
}

// learn records a row as the server has it. It does not overwrite a row that the transaction has
// changed.
func (tr *tableRows) learn(key string, value []byte) {
	r := tr.entry(key)
	if r.read {
		return
	}
	r.read, r.found = true, value != nil
	if !r.dirty {
		r.value = value
	}
}

// known returns the row of a key, and whether the transaction knows it.
func (tr *tableRows) known(key string) (*row, bool) {
	if r := tr.rows[key]; r != nil && (r.read || r.dirty) {
		return r, true
	}
	if _, ok := tr.full.at(key); ok {
		return nil, true
	}
	return nil, false
}

// Get implements [driver.Reader].
func (rs *rows) Get(t *driver.Table, key []byte) ([]byte, error) {
	tr, err := rs.of(t)
	if err != nil {
		return nil, err
	}
	if err := rs.covers(t, key, true); err != nil {
		return nil, err
	}
	r, ok := tr.known(string(key))
	if !ok {
		var value []byte
		err := rs.tx.QueryRow(rs.ctx, rs.q.sql(sqlReadRow), tr.id, key).Scan(&value)
		if err != nil && err != pgx.ErrNoRows {
			return nil, rs.failed(err)
		}
		if rs.view {
			return value, nil
		}
		tr.learn(string(key), value)
		r = tr.rows[string(key)]
	}
	if r == nil {
		return nil, nil
	}
	return r.value, nil
}

// Scan implements [driver.Reader].
func (rs *rows) Scan(t *driver.Table, s driver.Span, fn func(key, value []byte) bool) error {
	tr, err := rs.of(t)
	if err != nil {
		return err
	}
	if err := rs.covers(t, s.Prefix, false); err != nil {
		return err
	}
	from, to := limits(s)
	left := s.Limit
	for size := leastPortion; !to.follows(from); size = min(2*size, mostPortion) {
		if left > 0 {
			size = min(size, left)
		}
		part, err := rs.portion(tr, from, to, size, s.Reverse)
		if err != nil {
			return err
		}
		list := tr.list(part)
		if s.Reverse {
			slices.Reverse(list)
		}
		for _, found := range list {
			if !fn(found.key, found.value) {
				return nil
			}
			if left--; left == 0 {
				return nil
			}
		}
		switch {
		case s.Reverse:
			to = bound{key: part.from}
		case part.to.last:
			return nil
		default:
			from = part.to.key
		}
	}
	return nil
}

// How many rows a scan reads at a time. It begins with few, because many scans end early.
const (
	leastPortion = 16
	mostPortion  = 256
)

// portion returns a range at the beginning of a longer one, or at its end if down is set. The
// transaction knows every row of the returned range. If it does not know them yet, portion reads
// up to size rows.
func (rs *rows) portion(tr *tableRows, from string, to bound, size int, down bool) (keyRange, error) {
	if !down {
		if end, ok := tr.full.at(from); ok {
			if to.before(end) {
				end = to
			}
			return keyRange{from, end}, nil
		}
	} else if begin, ok := tr.full.below(to); ok {
		return keyRange{max(begin, from), to}, nil
	}
	if rs.view {
		tr.keys, tr.full = nil, nil
		clear(tr.rows)
	}
	statement := sqlReadUp
	if down {
		statement = sqlReadDown
	}
	found, err := rs.tx.Query(rs.ctx, rs.q.sql(statement), tr.id, []byte(from), to.end(), size)
	if err != nil {
		return keyRange{}, rs.failed(err)
	}
	var last []byte
	n := 0
	var key, value []byte
	if _, err := pgx.ForEachRow(found, []any{&key, &value}, func() error {
		tr.learn(string(key), value)
		last, n = key, n+1
		return nil
	}); err != nil {
		return keyRange{}, rs.failed(err)
	}
	part := keyRange{from, to}
	if n == size && down {
		part.from = string(last)
	} else if n == size {
		part.to = bound{key: string(driver.After(last))}
	}
	tr.full.add(part.from, part.to)
	return part, nil
}

// keyValue is a row that exists.
type keyValue struct{ key, value []byte }

// list returns the known rows of a range, in order.
func (tr *tableRows) list(r keyRange) (list []keyValue) {
	at, _ := slices.BinarySearch(tr.keys, r.from)
	for _, key := range tr.keys[at:] {
		if r.to.follows(key) {
			break
		}
		if found := tr.rows[key]; found.value != nil {
			list = append(list, keyValue{[]byte(key), found.value})
		}
	}
	return list
}

// Put implements [driver.Writer].
func (rs *rows) Put(t *driver.Table, key, value []byte) error {
	if err := rs.writes(t, key); err != nil {
		return err
	}
	tr, err := rs.of(t)
	if err == nil && tr.id == 0 {
		if err := rs.createTables(t.Space()); err != nil {
			return rs.failed(err)
		}
		tr, err = rs.of(t)
	}
	if err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	rs.change(tr, string(key), value)
	return nil
}

// Delete implements [driver.Writer].
func (rs *rows) Delete(t *driver.Table, key []byte) error {
	if err := rs.writes(t, key); err != nil {
		return err
	}
	tr, err := rs.of(t)
	if err != nil || tr.id == 0 {
		return err
	}
	if r, known := tr.known(string(key)); known && (r == nil || r.value == nil) {
		return nil
	}
	rs.change(tr, string(key), nil)
	return nil
}

// change records a row to write.
func (rs *rows) change(tr *tableRows, key string, value []byte) {
	r := tr.entry(key)
	if _, full := tr.full.at(key); full {
		r.read = true
	}
	r.value, r.dirty = value, true
	rs.cover.wrote = true
}

// DeleteSpan implements [driver.Writer].
func (rs *rows) DeleteSpan(t *driver.Table, s driver.Span, size int) (n, removed int, err error) {
	return core.DeleteSpan(rs, t, s, size)
}

// OnCommit implements [driver.Writer].
func (rs *rows) OnCommit(fn func()) { rs.onCommit = append(rs.onCommit, fn) }

// written are the rows that one statement writes.
type written struct {
	tables       []int32
	keys, values [][]byte
}

func (w *written) add(tr *tableRows, key string, value []byte) {
	w.tables, w.keys, w.values = append(w.tables, tr.id), append(w.keys, []byte(key)), append(w.values, value)
}

// write adds the statements to the pipe that write the changed rows. A row that was missing must
// still be missing.
func (rs *rows) write(t *txn) {
	var added, put, deleted written
	for _, tr := range rs.named {
		for _, key := range tr.keys {
			r := tr.rows[key]
			switch {
			case !r.dirty:
			case r.value == nil && r.read && !r.found:
			case r.value == nil:
				deleted.add(tr, key, nil)
			case r.read && !r.found:
				added.add(tr, key, r.value)
			default:
				put.add(tr, key, r.value)
			}
			if r.dirty {
				r.dirty, r.read, r.found = false, true, r.value != nil
			}
		}
	}
	if len(deleted.keys) > 0 {
		t.write(sqlDeleteRows, deleted.tables, deleted.keys)
	}
	if len(added.keys) > 0 {
		t.write(sqlAddRows, added.tables, added.keys, added.values)
	}
	if len(put.keys) > 0 {
		t.write(sqlPutRows, put.tables, put.keys, put.values)
	}
}
