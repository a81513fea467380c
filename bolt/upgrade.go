package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
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
// as it was, and so does every error but that of a failed sync, which leaves either.
func upgrade(db *bbolt.DB, commit func(*bbolt.Tx) error) (err error) {
	var tx *bbolt.Tx
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the pages of the file are damaged: %v", pawl.ErrCorrupt, p)
		}
		if err != nil && tx != nil {
			rollback(tx)
		}
	}()
	var version uint32
	err = db.View(func(tx *bbolt.Tx) (err error) {
		version, err = format(tx)
		return err
	})
	if err != nil || version == formatVersion {
		return err
	}
	if tx, err = db.Begin(true); err != nil {
		return err
	}
	if err = upgradeFrom(version, tx); err == nil {
		err = commitMarked(tx, commit)
	}
	switch {
	case refusedByDisk(err):
		err = fmt.Errorf("%w: bring the file from format %d to %d: %w", ErrDisk, version, formatVersion, err)
	case err != nil:
		err = fmt.Errorf("bring the file from format %d to %d: %w", version, formatVersion, err)
	}
	return err
}

// upgradeFrom brings a file from a version to this build's format.
func upgradeFrom(version uint32, tx *bbolt.Tx) error {
	root := tx.Bucket(bucketRoot)
	for v := version; v < formatVersion; v++ {
		if err := upgrades[v](root); err != nil {
			return err
		}
	}
	if err := putFormat(root, formatVersion); err != nil {
		return err
	}
	_, err := openStore(tx)
	return err
}

// separateRetries brings a file from format 1 to 2: new buckets, new columns in the
// rows of queues, and lanes that separate retries from first runs.
func separateRetries(root *bbolt.Bucket) error {
	for _, name := range [][]byte{bucketQueues, bucketJobs, bucketReady, bucketDelayed} {
		if root.Bucket(name) == nil {
			return fmt.Errorf("%w: bucket %q is missing", pawl.ErrCorrupt, name)
		}
	}
	for _, name := range [][]byte{bucketCompleted, bucketUnique, bucketEffects, bucketExpiry} {
		if _, err := root.CreateBucket(name); err != nil {
			return fmt.Errorf("%w: bucket %q: %w", pawl.ErrCorrupt, name, err)
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
		rewriteRows(root.Bucket(bucketQueues), func(key, value []byte) []byte {
			const counts = 5 * 8 // ready, delayed, parked, leased, dead
			if key[0] != queueByNumber || len(value) < counts {
				return value
			}
			added := make([]byte, 8+1) // completed, paused
			return slices.Insert(value, counts, added...)
		}),
		rewriteRows(root.Bucket(bucketReady), func(key, value []byte) []byte {
			if len(key) == readyKeyWidth && len(value) == indexWidth {
				setLane(key, pawl.ID(value[:16]), flags(value[16]))
			}
			return value
		}),
		rewriteRows(root.Bucket(bucketDelayed), func(_, value []byte) []byte {
			if len(value) == indexWidth+readyKeyWidth {
				setLane(value[indexWidth:], pawl.ID(value[:16]), flags(value[16]))
			}
			return value
		}),
	)
}

// rewriteRows changes rows of a bucket: change changes the key in place and returns the
// new value. A row that is damaged stays as it is.
//
// Only what changes is written, so that a file with a long backlog is mostly read; and
// in the order of keys: bbolt keeps what is put next to each other as one long list, of
// which an insertion anywhere but at its end moves the rest.
func rewriteRows(b *bbolt.Bucket, change func(key, value []byte) []byte) error {
	type row struct{ old, key, sealed []byte }
	var rows []row
	var last, key, value []byte
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if last != nil && bytes.Compare(k, last) <= 0 {
			return fmt.Errorf("%w: the keys of a page are out of order", pawl.ErrCorrupt)
		}
		last = k
		old, err := unseal(k, v, -1)
		if err != nil {
			continue
		}
		key = append(key[:0], k...)
		value = change(key, append(value[:0], old...))
		if !bytes.Equal(key, k) || !bytes.Equal(value, old) {
			rows = append(rows, row{bytes.Clone(k), bytes.Clone(key), seal(key, bytes.Clone(value))})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return bytes.Compare(a.key, b.key) })
	for _, r := range rows {
		if err := b.Delete(r.old); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if err := b.Put(r.key, r.sealed); err != nil {
			return err
		}
	}
	return nil
}
