package memory

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sort"

	"github.com/gopawl/pawl/driver"
)

// tableName names a table of another package.
type tableName struct{ space, table string }

func nameOf(t *driver.Table) tableName { return tableName{string(t.Space().Bytes()), t.String()} }

// row is a row of another package. It does not change once it is stored.
type row struct{ key, value []byte }

// rows implements [driver.Writer] on a snapshot of all tables. It copies a table before the first
// write, so the tables of the queue and of other snapshots do not change. A transaction that
// commits gives its tables to the queue, and one that fails drops them.
type rows struct {
	tables   map[tableName][]row // in the order of their keys
	own      map[tableName]bool  // the tables that it has copied
	onCommit []func()
}

// snapshot returns the rows of the queue, which the caller has locked.
func (q *Queue) snapshot() *rows {
	return &rows{tables: maps.Clone(q.tables), own: make(map[tableName]bool)}
}

// ViewRows calls fn with a snapshot of the rows that mutations write.
func (q *Queue) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	var rs *rows
	err := q.look(ctx, func() error {
		rs = q.snapshot()
		return nil
	})
	if err != nil {
		return err
	}
	return fn(rs)
}

// search finds the first row of a table whose key is at least key.
func search(all []row, key []byte) (i int, found bool) {
	return slices.BinarySearchFunc(all, key, func(r row, key []byte) int { return bytes.Compare(r.key, key) })
}

// span returns the rows of a span in the order of their keys.
func (rs *rows) span(t *driver.Table, s driver.Span) []row {
	all := rs.tables[nameOf(t)]
	from := s.Prefix
	if bytes.Compare(s.From, from) > 0 {
		from = s.From
	}
	first, _ := search(all, from)
	all = all[first:]
	all = all[:sort.Search(len(all), func(i int) bool { return !bytes.HasPrefix(all[i].key, s.Prefix) })]
	switch most := s.Limit; {
	case most <= 0 || most >= len(all):
	case s.Reverse:
		all = all[len(all)-most:]
	default:
		all = all[:most]
	}
	return all
}

// Get implements [driver.Reader].
func (rs *rows) Get(t *driver.Table, key []byte) ([]byte, error) {
	all := rs.tables[nameOf(t)]
	if i, found := search(all, key); found {
		return all[i].value, nil
	}
	return nil, nil
}

// Scan implements [driver.Reader].
func (rs *rows) Scan(t *driver.Table, s driver.Span, fn func(key, value []byte) bool) error {
	each := slices.All[[]row]
	if s.Reverse {
		each = slices.Backward[[]row]
	}
	for _, r := range each(rs.span(t, s)) {
		if !fn(r.key, r.value) {
			break
		}
	}
	return nil
}

// copied returns the name and the rows of a table, as a copy that may change.
func (rs *rows) copied(t *driver.Table) (tableName, []row) {
	name := nameOf(t)
	if !rs.own[name] {
		rs.own[name], rs.tables[name] = true, slices.Clone(rs.tables[name])
	}
	return name, rs.tables[name]
}

// Put implements [driver.Writer].
func (rs *rows) Put(t *driver.Table, key, value []byte) error {
	name, all := rs.copied(t)
	stored := row{bytes.Clone(key), append([]byte{}, value...)} // an empty value is not nil
	i, found := search(all, key)
	if !found {
		all = slices.Insert(all, i, stored)
	}
	all[i] = stored
	rs.tables[name] = all
	return nil
}

// Delete implements [driver.Writer].
func (rs *rows) Delete(t *driver.Table, key []byte) error {
	name, all := rs.copied(t)
	if i, found := search(all, key); found {
		rs.tables[name] = slices.Delete(all, i, i+1)
	}
	return nil
}

// DeleteSpan implements [driver.Writer].
func (rs *rows) DeleteSpan(t *driver.Table, s driver.Span, size int) (n, removed int, err error) {
	name, all := rs.copied(t)
	span := rs.span(t, s)
	for n < len(span) && removed < size {
		removed += len(span[n].key) + len(span[n].value)
		n++
	}
	if n > 0 {
		first, _ := search(all, span[0].key)
		rs.tables[name] = slices.Delete(all, first, first+n)
	}
	return n, removed, nil
}

// OnCommit implements [driver.Writer].
func (rs *rows) OnCommit(fn func()) { rs.onCommit = append(rs.onCommit, fn) }
