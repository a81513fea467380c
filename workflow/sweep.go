package workflow

import (
	"bytes"
	"errors"
	"math"
	"time"

	"github.com/gopawl/pawl"
)

// A run that is over has a row in bucket ended, under the time at which to remove it. It is
// removed in portions:
//
//  1. the rows by which it is found, so that nobody meets half of a run, and its ID is free
//  2. all that it wrote, as much as a portion has room for
//  3. its row in ended
//
// A crash, or a portion that is full, leaves the last, and whoever comes next goes on.

// keptUntil is when to remove the row of a run that has ended; zero for never.
func (row *runRow) keptUntil() time.Time {
	switch {
	case row.Retain <= 0:
		return time.Time{}
	case row.Ended > math.MaxInt64-row.Retain: // later than can be written
		return time.Time{}
	}
	return time.Unix(0, row.Ended+row.Retain)
}

// sweep removes runs, as far as its quota allows.
type sweep struct {
	rows
	left quota
	full bool // the quota ended it after it removed something: there may be more
	some bool // it removed something
	runs int  // that are gone with all their rows
}

// headRows is how many rows a run is found by, at most.
const headRows = 3

// until removes runs that are to be removed by now.
func (s *sweep) until(now time.Time) error {
	err := s.walk(now)
	s.full = s.full && s.some
	return err
}

func (s *sweep) walk(now time.Time) error {
	ended := s.bucket(bucketEnded)
	if ended == nil {
		return nil
	}
	c := ended.Cursor()
	var passed []byte // a bucket in the place of a row, which stays
	for k, v := c.First(); k != nil; k, v = c.Seek(passed) {
		if bytes.Equal(k, passed) {
			if k, v = c.Next(); k == nil {
				return nil
			}
		}
		if s.full = s.full || s.left.spent(); s.full {
			return nil
		}
		key := bytes.Clone(k)
		if v == nil {
			passed = key
			s.left.rows-- // as much work
			continue
		}
		until, run, err := parseEndedKey(key)
		if err == nil {
			if until.After(now) {
				return nil
			}
			if err := s.removeRun(now, run); s.full || err != nil {
				return err
			}
		}
		if err := s.delete(bucketEnded, key); err != nil {
			return err
		}
		s.some = true
		s.left.rows--
	}
	return nil
}

// removeRun removes a run but for its row in ended, which can go too unless the quota ended it
// before. A row in ended is not enough to lose a run: one that has not ended stays, and one
// that cannot be read, or cannot be removed because the file is damaged, is looked at again
// later: nobody else waits for it, or fails.
func (s *sweep) removeRun(now time.Time, run pawl.ID) error {
	row, err := s.run(run)
	switch {
	case err != nil:
		return s.later(now, run)
	case row != nil && row.open():
		return nil
	case row != nil && s.left.rows < headRows:
		s.full = true
		return nil
	case row != nil:
		if err := s.removeHead(run, row); err != nil {
			return s.orLater(now, run, err)
		}
		s.left.rows -= headRows
	}
	s.some = true
	if err := s.remove(run[:], run[:], &s.left, ownedByRun[:]...); err != nil {
		return s.orLater(now, run, err)
	}
	if s.full = s.left.spent(); !s.full {
		s.runs++
	}
	return nil
}

// ownedByRun are the buckets whose keys begin with a run, but for those by which it is found.
var ownedByRun = [...][]byte{bucketSteps, bucketBlobs, bucketSignals, bucketSeen, bucketPublished}

// orLater deals with an error: damage is passed over.
func (s *sweep) orLater(now time.Time, run pawl.ID, err error) error {
	if !errors.Is(err, pawl.ErrCorrupt) {
		return err
	}
	return s.later(now, run)
}

// later has a run be looked at again.
func (s *sweep) later(now time.Time, run pawl.ID) error {
	s.left.rows-- // as much work
	return s.put(bucketEnded, endedKey(now.Add(DefaultRetention), run), nil)
}

// removeHead removes the rows by which a run is found.
func (r rows) removeHead(run pawl.ID, row *runRow) error {
	if known, err := r.find(row.Flow, row.ID); err != nil || known == run {
		if err := r.delete(bucketIDs, idKey(row.Flow, row.ID)); err != nil {
			return err
		}
	}
	if err := r.delete(bucketBlocked, run[:]); err != nil {
		return err
	}
	return r.delete(bucketRuns, run[:])
}

// quota is what one transaction may still remove, in rows and bytes, so that nobody waits long
// for the writer. The last row may exceed the bytes.
type quota struct{ rows, bytes int }

// portionQuota is the quota of a transaction that removes rows.
func portionQuota() quota { return quota{rows: 1000, bytes: 2 << 20} }

func (q *quota) spent() bool { return q.rows <= 0 || q.bytes <= 0 }

// remove deletes rows whose keys begin with prefix, from the key first on, as far as the quota
// allows. It takes from one bucket after another.
func (r rows) remove(prefix, first []byte, left *quota, from ...[]byte) error {
	for _, name := range from {
		b := r.bucket(name)
		if b == nil {
			return errNoBucket
		}
		c := b.Cursor()
		at := bytes.Clone(first)
		// Seek goes on from the key that was deleted: a search from the prefix would pass over
		// every page that was emptied before.
		for k, v := c.Seek(at); k != nil && bytes.HasPrefix(k, prefix) && !left.spent(); k, v = c.Seek(at) {
			at = append(at[:0], k...)
			n := len(k) + len(v)
			if err := writable(c.Delete()); err != nil {
				return err
			}
			left.rows--
			left.bytes -= n
		}
	}
	return nil
}
