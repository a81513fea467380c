package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// ViewRows runs fn in a read transaction over the rows that a [driver.Mutation] writes. See
// [Queue.View].
func (r *reader) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	return r.View(ctx, func(tx *bbolt.Tx) error { return fn(&tables{tx: tx}) })
}

// tables implements [driver.Writer] in one transaction. A space is a top-level bucket, and its
// tables are buckets inside it.
type tables struct {
	tx    *bbolt.Tx
	space *driver.Space // the current space, whose bucket is root
	root  *bbolt.Bucket // nil if not looked up yet, or missing
	used  []usedTable   // tables that were found
}

// usedTable is a table that was found. A transaction uses few tables, each many times, and bbolt looks for a bucket in
// each call.
type usedTable struct {
	table  *driver.Table
	bucket *bbolt.Bucket
}

// bucket returns the bucket of a table, or nil if the space has no buckets. Salvage leaves a
// space without buckets if it could read no row.
func (ts *tables) bucket(t *driver.Table) (*bbolt.Bucket, error) {
	for i := range ts.used {
		if ts.used[i].table == t {
			return ts.used[i].bucket, nil
		}
	}
	if ts.root == nil || ts.space != t.Space() {
		ts.space, ts.root = t.Space(), ts.tx.Bucket(t.Space().Bytes())
	}
	if ts.root == nil {
		return nil, nil
	}
	if b := ts.root.Bucket(t.Bytes()); b != nil {
		ts.used = append(ts.used, usedTable{table: t, bucket: b})
		return b, nil
	}
	if k, _ := ts.root.Cursor().First(); k == nil {
		return nil, nil
	}
	return nil, fmt.Errorf("table %s: %w", t, driver.ErrNoTable)
}

// create creates all buckets of a space that has none.
func (ts *tables) create(s *driver.Space) error {
	root, err := ts.tx.CreateBucketIfNotExists(s.Bytes())
	if err != nil {
		return damagedTable(err)
	}
	for _, t := range s.Tables() {
		if _, err := root.CreateBucket(t.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// Get implements [driver.Reader].
func (ts *tables) Get(t *driver.Table, key []byte) ([]byte, error) {
	b, err := ts.bucket(t)
	if b == nil {
		return nil, err
	}
	return b.Get(key), nil
}

// Scan implements [driver.Reader].
func (ts *tables) Scan(t *driver.Table, s driver.Span, fn func(key, value []byte) bool) error {
	b, err := ts.bucket(t)
	if b == nil {
		return err
	}
	c, from := b.Cursor(), s.From
	if bytes.Compare(from, s.Prefix) < 0 {
		from = s.Prefix
	}
	if s.Reverse {
		return scanBack(c, t, s, fn)
	}
	var last []byte
	n := 1
	for k, v := c.Seek(from); k != nil && bytes.HasPrefix(k, s.Prefix); k, v = c.Next() {
		if bytes.Compare(k, from) < 0 || last != nil && bytes.Compare(k, last) <= 0 {
			return disordered(t)
		}
		if !fn(k, v) || n == s.Limit {
			break
		}
		last = k
		n++
	}
	return nil
}

// scanBack scans the rows of a prefix from the last to the first.
func scanBack(c *bbolt.Cursor, t *driver.Table, s driver.Span, fn func(key, value []byte) bool) error {
	var last []byte
	n := 1
	for k, v := lastOf(c, s.Prefix); ; k, v = c.Prev() {
		if k == nil { // at the first row, or at a page that this transaction emptied, where Prev ends
			if k, v = rowBefore(c, s.Prefix, last); k == nil {
				return nil
			}
		}
		if !bytes.HasPrefix(k, s.Prefix) {
			return nil
		}
		if last != nil && bytes.Compare(k, last) >= 0 {
			return disordered(t)
		}
		if !fn(k, v) || n == s.Limit {
			return nil
		}
		last = k
		n++
	}
}

// rowBefore moves a cursor to the last row of a prefix whose key precedes end, nil for the last row
// of all. It walks forward from the first one, since that passes over empty pages.
func rowBefore(c *bbolt.Cursor, prefix, end []byte) (key, value []byte) {
	var last []byte
	for k, _ := c.Seek(prefix); k != nil && bytes.HasPrefix(k, prefix) && (end == nil || bytes.Compare(k, end) < 0); k, _ = c.Next() {
		if last != nil && bytes.Compare(k, last) <= 0 {
			break // out of order
		}
		last = k
	}
	if last == nil {
		return nil, nil
	}
	return c.Seek(last)
}

// disordered is the error for keys out of order, which mean that pages form a cycle.
func disordered(t *driver.Table) error {
	return fmt.Errorf("%w: the keys of table %s are out of order", pawl.ErrCorrupt, t)
}

// lastOf moves a cursor to the last key with a prefix.
func lastOf(c *bbolt.Cursor, prefix []byte) (key, value []byte) {
	behind := bytes.Clone(prefix)
	for len(behind) > 0 && behind[len(behind)-1] == 0xff {
		behind = behind[:len(behind)-1]
	}
	if len(behind) == 0 {
		return c.Last()
	}
	behind[len(behind)-1]++
	if k, _ := c.Seek(behind); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// Put implements [driver.Writer].
func (ts *tables) Put(t *driver.Table, key, value []byte) error {
	b, err := ts.bucket(t)
	if b == nil && err == nil {
		if err = ts.create(t.Space()); err == nil {
			b, err = ts.bucket(t)
		}
	}
	if err != nil {
		return err
	}
	if value == nil {
		value = []byte{} // before the commit, bbolt reads a nil value back as a missing row
	}
	return damagedTable(b.Put(key, value))
}

// Delete implements [driver.Writer].
func (ts *tables) Delete(t *driver.Table, key []byte) error {
	b, err := ts.bucket(t)
	if b == nil {
		return err
	}
	return damagedTable(b.Delete(key))
}

// DeleteSpan implements [driver.Writer].
func (ts *tables) DeleteSpan(t *driver.Table, s driver.Span, size int) (rows, removed int, err error) {
	b, err := ts.bucket(t)
	if b == nil {
		return 0, 0, err
	}
	c, at := b.Cursor(), bytes.Clone(s.From)
	if bytes.Compare(at, s.Prefix) < 0 {
		at = bytes.Clone(s.Prefix)
	}
	// Seek continues from the deleted key: a search from the prefix would walk over every page
	// that was already emptied.
	for k, v := c.Seek(at); k != nil && bytes.HasPrefix(k, s.Prefix); k, v = c.Seek(at) {
		if removed >= size || s.Limit > 0 && rows == s.Limit {
			break
		}
		at = append(at[:0], k...)
		n := len(k) + len(v)
		if err := c.Delete(); err != nil {
			return rows, removed, damagedTable(err)
		}
		rows++
		removed += n
	}
	return rows, removed, nil
}

// OnCommit implements [driver.Writer].
func (ts *tables) OnCommit(fn func()) { ts.tx.OnCommit(fn) }

// damagedTable turns a bbolt error into one that says the file is damaged: a bucket is where a
// row should be or the reverse, or a row led to an impossible key.
func damagedTable(err error) error {
	if errors.Is(err, berrors.ErrIncompatibleValue) || errors.Is(err, berrors.ErrKeyTooLarge) {
		return fmt.Errorf("%w: a row cannot be written: %w", pawl.ErrCorrupt, err)
	}
	return err
}
