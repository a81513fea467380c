package bolt

import (
	"bytes"

	"github.com/gopawl/pawl/bolt/internal/dbfile"
)

// salvagePortion is how many rows one transaction of the repair visits.
const salvagePortion = 500

// update runs fn in a transaction of the new file.
func (s *salvor) update(fn func(t *txn)) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	defer dbfile.Rollback(tx) // a no-op after the commit
	t, err := begin(tx, s.now, settings{})
	if err != nil {
		return err
	}
	t.recounts, t.keyless, t.groupless = true, true, true
	fn(t)
	if err := t.finish(); err != nil || !t.changed {
		return err
	}
	return tx.Commit()
}

// eachKey calls fn for the keys of a bucket from a key on, in transactions of limited size. Fn
// may change any row. eachKey also visits rows that fn adds behind the current key.
func (s *salvor) eachKey(bucket, from []byte, fn func(t *txn, b *table, key []byte)) error {
	last := from
	for first, more := true, true; more; first = false {
		err := s.update(func(t *txn) {
			b := t.table(bucket)
			var keys [][]byte
			c := b.Cursor()
			k, _ := c.Seek(last)
			if !first && bytes.Equal(k, last) {
				k, _ = c.Next()
			}
			for ; k != nil && len(keys) < salvagePortion; k, _ = c.Next() {
				keys = append(keys, bytes.Clone(k))
			}
			if more = len(keys) == salvagePortion; more {
				last = keys[len(keys)-1]
			}
			for _, k := range keys {
				fn(t, b, k)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stateBuckets together have one row for each job.
var stateBuckets = [][]byte{bucketReady, bucketDelayed, bucketLeased, bucketFailed, bucketCompleted}
