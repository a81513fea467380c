package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/pages"
)

// salvageCopy copies rows into the new file, in transactions of limited size.
type salvageCopy struct {
	*salvor
	tx      *bbolt.Tx
	bytes   int
	buckets map[string]*bbolt.Bucket // buckets of the transaction, by path
	format  bool                     // the row of the format version was seen
}

// copyTree copies every sound row that the meta page leads to.
func (s *salvor) copyTree() (walked *pages.Walked, err error) {
	if len(s.damagedFile.metas) == 0 {
		s.result.NoFormat = true
		s.hurt[string(bucketJobs)] = true
		walked, ok, err := pages.UnreachedOnly(s.ctx, s.damagedFile, s.damagedFile.size)
		if err == nil && !ok {
			err = s.damagedFile.noPages()
		}
		return walked, err
	}
	meta := s.damagedFile.metas[0]
	s.result.Meta, s.result.Older = int(meta.Page), s.damagedFile.older
	if s.damagedFile.older {
		s.hurt[string(bucketJobs)] = true // the jobs that the last transaction stored are lost
	}
	c := &salvageCopy{salvor: s}
	defer func() {
		if c.tx != nil {
			dbfile.Rollback(c.tx)
		}
	}()
	walked, err = pages.Walk(s.ctx, s.damagedFile, s.damagedFile.size, meta, pages.Visitor{
		Bucket: c.bucket, Element: c.element, Problem: c.problem,
	})
	if err == nil {
		err = c.commit()
	}
	for _, name := range buckets {
		if _, found := c.sequences[string(name)]; !found {
			c.lost(name) // the whole bucket
		}
	}
	s.result.NoFormat = !c.format
	return walked, err
}

// problem records a damaged page. If the page belongs to a bucket with other buckets inside,
// it is unknown what was lost, so all of those buckets count as hurt.
func (c *salvageCopy) problem(p pages.Problem) {
	c.result.damagedPage(p)
	switch {
	case len(p.Bucket) > 1 && bytes.Equal(p.Bucket[0], bucketRoot):
		c.hurt[string(p.Bucket[1])] = true
	case len(p.Bucket) == 0 || bytes.Equal(p.Bucket[0], bucketRoot):
		for _, name := range buckets {
			c.hurt[string(name)] = true
		}
	}
}

func (c *salvageCopy) bucket(path [][]byte, sequence uint64) error {
	if bytes.Equal(path[0], bucketRoot) {
		switch {
		case len(path) == 2 && slices.ContainsFunc(buckets, func(name []byte) bool { return bytes.Equal(name, path[1]) }):
			c.sequences[string(path[1])] = sequence
		case len(path) > 1:
			c.lost(bucketRoot)
			return pages.ErrSkipBucket
		}
		return nil
	}
	b, err := c.to(path)
	if err != nil {
		return err
	}
	if b == nil {
		c.result.AppLost++
		return pages.ErrSkipBucket
	}
	return b.SetSequence(sequence)
}

func (c *salvageCopy) element(path [][]byte, e pages.Element) error {
	ours := len(path) > 0 && bytes.Equal(path[0], bucketRoot)
	switch {
	case len(path) == 0:
		c.result.AppLost++ // bbolt cannot have such a row
		return nil
	case ours && len(path) != 2:
		c.lost(bucketRoot)
		return nil
	case ours && e.Size > maxSalvagedRow:
		c.lost(path[1])
		return nil
	}
	value, err := e.Value()
	if err != nil {
		c.rowLost(path, ours)
		c.problem(pages.Problem{Page: e.Page, Bucket: path, Err: err})
		return nil
	}
	if ours {
		err = soundRow(path[1], e.Key, value)
		c.format = c.format || err == nil && bytes.Equal(path[1], bucketMeta)
	} else if driver.RowDamage(path, e.Key, value) != nil {
		c.rowLost(path, ours)
		return nil
	} else if driver.SealDamage(path, e.Key, value) != nil {
		// It is copied nevertheless, so that its reader finds it damaged and not missing, unless only people read it.
		if c.result.Lost[joinPath(path)]++; joinPath(path) == historyOfSchedules {
			return nil
		}
	}
	switch {
	case errors.Is(err, pawl.ErrNewerFormat), errors.Is(err, ErrOlderFormat):
		return err
	case err != nil:
		c.lost(path[1])
		return pages.ErrMisplaced
	}
	if err := c.put(path, ours, e.Key, value); err != nil {
		return err
	}
	if !ours && partOfJob(e.Key, value) {
		return pages.ErrMisplaced
	}
	return nil
}

// historyOfSchedules is the path of the table with what became of the ticks.
const historyOfSchedules = "pawl.schedule/history"

// maxSalvagedRow is larger than any row of a queue, in bytes.
const maxSalvagedRow = pawl.MaxBatchBytes + 1<<20

func (c *salvageCopy) rowLost(path [][]byte, ours bool) {
	if ours {
		c.lost(path[1])
	} else {
		c.result.AppLost++
	}
}

// put copies one row.
func (c *salvageCopy) put(path [][]byte, ours bool, key, value []byte) error {
	if c.bytes > compactBytes {
		if err := c.commit(); err != nil {
			return err
		}
	}
	b, err := c.to(path)
	if err != nil {
		return err
	}
	c.bytes += len(key) + len(value)
	if b == nil || b.Put(key, slices.Clone(value)) != nil { // a bucket has the name key, or the key is too long
		c.rowLost(path, ours)
	} else if !ours && !bytes.Equal(path[0], driver.MeterSpace.Bytes()) {
		c.result.AppRows++
	}
	return nil
}

// to returns the bucket of the new file at path, or nil if a row has its name.
func (c *salvageCopy) to(path [][]byte) (b *bbolt.Bucket, err error) {
	if c.tx == nil {
		if c.tx, err = c.db.Begin(true); err != nil {
			return nil, err
		}
		c.buckets, c.bytes = make(map[string]*bbolt.Bucket), 0
	}
	id := fmt.Sprintf("%q", path)
	if b = c.buckets[id]; b != nil {
		return b, nil
	}
	if b, err = c.tx.CreateBucketIfNotExists(path[0]); err != nil {
		return nil, nil
	}
	for _, name := range path[1:] {
		if b, err = b.CreateBucketIfNotExists(name); err != nil {
			return nil, nil
		}
	}
	b.FillPercent = sequentialFill
	c.buckets[id] = b
	return b, nil
}

func (c *salvageCopy) commit() error {
	if c.tx == nil {
		return nil
	}
	tx := c.tx
	c.tx = nil
	return tx.Commit()
}
