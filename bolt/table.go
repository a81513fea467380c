package bolt

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// table is a bucket with one cursor for all that is done with single rows. A bucket
// itself makes a new one at every Get and Delete, which is half of what they cost. Rows are
// changed by Put and Delete of the table alone: what else is done to the bucket the cursor
// does not notice.
type table struct {
	*bbolt.Bucket
	name   []byte
	cursor *bbolt.Cursor // nil until it is needed
	at     []byte        // the key where it is, nil once the bucket changed
	seeks  int           // how often a row was searched for
}

// find puts a cursor of the table's on the first row from a key on.
func (b *table) find(c *bbolt.Cursor, from []byte) (key, value []byte) {
	b.seeks++
	return c.Seek(from)
}

// Get returns the value under key, nil when there is none. It is valid until the
// transaction ends.
func (b *table) Get(key []byte) []byte {
	if value, ok := b.seek(key); ok {
		return value
	}
	return nil
}

// seek puts the cursor on key.
func (b *table) seek(key []byte) (value []byte, ok bool) {
	if b.cursor == nil {
		b.cursor = b.Cursor()
	}
	b.at, value = b.find(b.cursor, key)
	if !bytes.Equal(b.at, key) {
		b.at = nil
		return nil, false
	}
	return value, true
}

// Put stores a value under key.
func (b *table) Put(key, value []byte) error {
	b.at = nil
	return b.Bucket.Put(key, value)
}

// Delete removes the row under key, if there is one. It need not search again for one
// that was the last to be read.
func (b *table) Delete(key []byte) error {
	if b.at == nil || !bytes.Equal(b.at, key) {
		if _, ok := b.seek(key); !ok {
			return nil
		}
	}
	b.at = nil
	return b.cursor.Delete()
}
