package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// upgrades bring a file from the format of their index to the next one. A file keeps
// its first format until a build that writes a newer one opens it.
var upgrades = [formatVersion]func(root *bbolt.Bucket) error{
	1: separateRetries,
}

// upgrade brings a file to this build's format, in one transaction: a crash leaves it
// as it was.
func upgrade(db *bbolt.DB) error {
	var version uint32
	err := db.View(func(tx *bbolt.Tx) (err error) {
		version, err = format(tx)
		return err
	})
	if err != nil || version == formatVersion {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		root := tx.Bucket(bucketRoot)
		for v := version; v < formatVersion; v++ {
			if err := upgrades[v](root); err != nil {
				return fmt.Errorf("bring the file from format %d to %d: %w", v, v+1, err)
			}
		}
		if err := putFormat(root, formatVersion); err != nil {
			return err
		}
		_, err := openStore(tx)
		return err
	})
	if refusedByDisk(err) {
		return fmt.Errorf("%w: bring the file from format %d to %d: %w", ErrDisk, version, formatVersion, err)
	}
	return err
}

// separateRetries brings a file from format 1 to 2: new buckets, new columns in the
// rows of queues, and lanes that separate retries from first runs.
func separateRetries(root *bbolt.Bucket) error {
	for _, name := range [][]byte{bucketCompleted, bucketUnique, bucketEffects, bucketExpiry} {
		if _, err := root.CreateBucket(name); err != nil {
			return err
		}
	}
	jobs := root.Bucket(bucketJobs)
	setLane := func(ready []byte, id pawl.ID, f flags) {
		ready[4] <<= 1 // 0, 1 or 2: how often the job crashed
		if f&hasHistory == 0 {
			return // it never failed
		}
		if e, _, err := pawl.ParseRecord(jobs.Get(id[:])); err == nil && e.Attempts > 0 {
			ready[4] |= 1
		}
	}
	return errors.Join(
		rewriteRows(root, bucketQueues, func(key, value []byte) []byte {
			const counts = 5 * 8 // ready, delayed, parked, leased, dead
			if key[0] != queueByNumber || len(value) < counts {
				return value
			}
			added := make([]byte, 8+1) // completed, paused
			return slices.Insert(value, counts, added...)
		}),
		rewriteRows(root, bucketReady, func(key, value []byte) []byte {
			if len(key) == readyKeyWidth && len(value) == indexWidth {
				setLane(key, pawl.ID(value[:16]), flags(value[16]))
			}
			return value
		}),
		rewriteRows(root, bucketDelayed, func(_, value []byte) []byte {
			if len(value) == indexWidth+readyKeyWidth {
				setLane(value[indexWidth:], pawl.ID(value[:16]), flags(value[16]))
			}
			return value
		}),
	)
}

// rewriteRows replaces the rows of a bucket: change changes the key in place and
// returns the new value. A row that is damaged stays as it is.
func rewriteRows(root *bbolt.Bucket, name []byte, change func(key, value []byte) []byte) error {
	type row struct{ key, sealed []byte }
	var rows []row
	old := root.Bucket(name)
	c := old.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		r := row{bytes.Clone(k), bytes.Clone(v)}
		if value, err := unseal(k, v, -1); err == nil {
			value = change(r.key, bytes.Clone(value))
			r.sealed = seal(r.key, value)
		}
		rows = append(rows, r)
	}
	sequence := old.Sequence()
	if err := root.DeleteBucket(name); err != nil {
		return err
	}
	b, err := root.CreateBucket(name)
	if err == nil {
		err = b.SetSequence(sequence)
	}
	for _, r := range rows {
		if err == nil {
			err = b.Put(r.key, r.sealed)
		}
	}
	return err
}
