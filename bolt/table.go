package bolt

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// table is a bucket with one cursor for all single-row operations. The bucket itself makes a
// new cursor at every Get and Delete, which is half of their cost. Change rows only by Put and
// Delete of the table, since the cursor does not notice other changes to the bucket.
type table struct {
	root   *bbolt.Bucket // the bucket that has it
	opened *bbolt.Bucket // nil until needed
	name   []byte
	fill   float64       // fill percent; 0 for that of bbolt
	cursor *bbolt.Cursor // nil until needed
	at     []byte        // the key of its position; nil after the bucket changed
	seeks  int           // how many searches it made
}

// bucket returns the bucket of the table. The first use opens it: a transaction uses few tables, and bbolt needs as
// much time to open a bucket as to store a row.
func (b *table) bucket() *bbolt.Bucket {
	if b.opened == nil {
		b.open()
	}
	return b.opened
}

func (b *table) open() {
	b.opened = b.root.Bucket(b.name)
	if b.opened == nil { // the root page is damaged; the caller of the transaction recovers
		panic(fmt.Errorf("%w: bucket %q is not where it was found", pawl.ErrCorrupt, b.name))
	}
	if b.fill != 0 {
		b.opened.FillPercent = b.fill
	}
}

// Cursor returns a cursor of its own.
func (b *table) Cursor() *bbolt.Cursor { return b.bucket().Cursor() }

// Tx returns the transaction.
func (b *table) Tx() *bbolt.Tx { return b.root.Tx() }

// Sequence returns the number that is stored with the bucket.
func (b *table) Sequence() uint64 { return b.bucket().Sequence() }

// SetSequence changes the number that is stored with the bucket.
func (b *table) SetSequence(n uint64) error { return b.bucket().SetSequence(n) }

// NextSequence raises the number that is stored with the bucket by 1, and returns it.
func (b *table) NextSequence() (uint64, error) { return b.bucket().NextSequence() }

// find moves the cursor to the first row at or after a key.
func (b *table) find(c *bbolt.Cursor, from []byte) (key, value []byte) {
	b.seeks++
	return c.Seek(from)
}

// Get returns the value of key, or nil if there is none. It is valid until the transaction
// ends.
func (b *table) Get(key []byte) []byte {
	if value, ok := b.seek(key); ok {
		return value
	}
	return nil
}

// seek moves the cursor to key. Often that is the row after the last one, which needs no search.
func (b *table) seek(key []byte) (value []byte, ok bool) {
	if b.at != nil {
		if b.at, value = b.cursor.Next(); bytes.Equal(b.at, key) {
			return value, true
		}
	}
	at, value := b.first(key)
	if !bytes.Equal(at, key) {
		b.at = nil
		return nil, false
	}
	return value, true
}

// first moves the cursor to the first row at or after from. Delete does not search for that row
// again.
func (b *table) first(from []byte) (key, value []byte) {
	if b.cursor == nil {
		b.cursor = b.Cursor()
	}
	b.at, value = b.find(b.cursor, from)
	return b.at, value
}

// next moves the cursor to the row after the one that first, or next, moved it to.
func (b *table) next() (key, value []byte) {
	b.at, value = b.cursor.Next()
	return b.at, value
}

// followed reports whether the key of the row after the last read row has a prefix.
func (b *table) followed(prefix []byte) bool {
	next, _ := b.cursor.Next()
	if b.at = nil; next != nil { // otherwise the cursor may be in a page that the transaction has emptied
		b.at, _ = b.cursor.Prev() // as a rule, the row that was read last
	}
	return bytes.HasPrefix(next, prefix)
}

// Put stores a value under key.
func (b *table) Put(key, value []byte) error {
	b.at = nil
	return b.bucket().Put(key, value)
}

// Delete removes the row of key, if there is one. It does not search again if that row was read
// last.
func (b *table) Delete(key []byte) error {
	if b.at == nil || !bytes.Equal(b.at, key) {
		if _, ok := b.seek(key); !ok {
			return nil
		}
	}
	b.at = nil
	return b.cursor.Delete()
}
