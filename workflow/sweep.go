package workflow

import (
	"bytes"
	"errors"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A run that is over has a row in table ended, under the time at which to remove it. It is
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
	due, err := s.due(now)
	if err != nil {
		return err
	}
	for _, key := range due {
		if s.full = s.full || s.left.spent(); s.full {
			return nil
		}
		if key == nil {
			s.left.rows-- // as much work
			continue
		}
		if _, run, err := parseEndedKey(key); err == nil {
			if err := s.removeRun(now, run); s.full || err != nil {
				return err
			}
		}
		if err := s.delete(tableEnded, key); err != nil {
			return err
		}
		s.some = true
		s.left.rows--
	}
	return nil
}

// due returns the keys in ended that are due, a key that is none included, and nil for damage
// in the place of a row, which stays. There are as many as the quota allows, and one.
func (s *sweep) due(now time.Time) (keys [][]byte, err error) {
	err = present(s.Scan(tableEnded, driver.Span{Limit: max(s.left.rows, 0) + 1}, func(key, value []byte) bool {
		if value == nil {
			keys = append(keys, nil)
			return true
		}
		until, _, err := parseEndedKey(key)
		if err == nil && until.After(now) {
			return false
		}
		keys = append(keys, bytes.Clone(key))
		return true
	}))
	return keys, err
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

// ownedByRun are the tables whose keys begin with a run, except those by which it is found.
var ownedByRun = [...]*driver.Table{tableSteps, tableBlobs, tableSignals, tableSeen, tablePublished}

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
	return s.put(tableEnded, endedKey(now.Add(DefaultRetention), run), nil)
}

// removeHead removes the rows by which a run is found.
func (r rows) removeHead(run pawl.ID, row *runRow) error {
	if known, err := r.find(row.Flow, row.ID); err != nil || known == run {
		if err := r.delete(tableIDs, idKey(row.Flow, row.ID)); err != nil {
			return err
		}
	}
	if err := r.delete(tableBlocked, run[:]); err != nil {
		return err
	}
	return r.delete(tableRuns, run[:])
}

// quota is what one transaction may still remove, in rows and bytes, so that nobody waits long
// for the writer. The last row may exceed the bytes.
type quota struct{ rows, bytes int }

// portionQuota is the quota of a transaction that removes rows.
func portionQuota() quota { return quota{rows: 1000, bytes: 2 << 20} }

func (q *quota) spent() bool { return q.rows <= 0 || q.bytes <= 0 }

// remove deletes rows whose keys begin with prefix, from the key first on, as far as the quota
// allows. It takes from one table after another.
func (r rows) remove(prefix, first []byte, left *quota, from ...*driver.Table) error {
	for _, t := range from {
		if left.spent() {
			return nil
		}
		n, size, err := r.w.DeleteSpan(t, driver.Span{Prefix: prefix, From: first, Limit: left.rows}, left.bytes)
		left.rows -= n
		left.bytes -= size
		if err != nil {
			return err
		}
	}
	return nil
}
