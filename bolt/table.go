package bolt

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// table is a bucket with one cursor for all single-row operations. The bucket itself makes a
// new cursor at every Get and Delete, which is half of their cost. Change rows only by Put and
// Delete of the table, since the cursor does not notice other changes to the bucket.
type table struct {
	*bbolt.Bucket
	name   []byte
	cursor *bbolt.Cursor // nil until needed
	at     []byte        // the key of its position; nil after the bucket changed
	seeks  int           // how many searches it made
}

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

// Put stores a value under key.
func (b *table) Put(key, value []byte) error {
	b.at = nil
	return b.Bucket.Put(key, value)
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
