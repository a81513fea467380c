package workflow

import (
	"bytes"
	"errors"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// An ended run has a row in table ended, under its removal time. It is removed in portions:
//
//  1. the rows that lead to it, so that no reader sees half of a run, and its ID is free
//  2. everything that it wrote, as much as a portion has room for
//  3. its row in ended
//
// A crash or a full portion leaves the last row, and the next sweep continues.

// keptUntil returns when to remove the row of an ended run, or zero for never.
func (row *runRow) keptUntil() time.Time {
	switch {
	case row.Retain <= 0:
		return time.Time{}
	case row.Ended > math.MaxInt64-row.Retain: // later than the largest time
		return time.Time{}
	}
	return time.Unix(0, row.Ended+row.Retain)
}

// sweep removes runs within its quota.
type sweep struct {
	rows
	left quota
	full bool // the quota was reached after the sweep removed something: there may be more
	some bool // it removed something
	runs int  // runs that are gone with all their rows
}

// headRows is the maximum number of rows that lead to a run.
const headRows = 3

// these removes the runs of due rows in ended.
func (s *sweep) these(now time.Time, due [][]byte) error {
	err := s.walk(now, due)
	s.full = s.full && s.some
	return err
}

func (s *sweep) walk(now time.Time, due [][]byte) error {
	for _, key := range due {
		if s.full = s.full || s.left.spent(); s.full {
			return nil
		}
		if key == nil {
			s.left.rows-- // also counts as work
			continue
		}
		if value, err := s.Get(tableEnded, key); value == nil || err != nil {
			if err := present(err); err != nil {
				return err
			}
			continue // another process was first
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

// due returns the due keys in ended, up to one more than the quota allows. It includes malformed
// keys. A nil stands for a damaged row, which stays.
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

// removeRun removes a run except its row in ended. The caller may remove that row, too, unless
// s.full is set. A row in ended alone never removes a run that has not ended. If damage makes a
// run unreadable or keeps it from being removed, the sweep tries again later, and still removes
// other runs.
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
		s.left.rows -= headRows + len(row.foundKeys(run))
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

// ownedByRun are the tables whose keys begin with a run, except those that lead to it.
var ownedByRun = [...]*driver.Table{tableSteps, tableBlobs, tableSignals, tableSeen, tableAnswers, tablePublished, tableStreams, tableItems}

// orLater handles an error: it skips damage.
func (s *sweep) orLater(now time.Time, run pawl.ID, err error) error {
	if !errors.Is(err, pawl.ErrCorrupt) {
		return err
	}
	return s.later(now, run)
}

// later schedules another try for a run.
func (s *sweep) later(now time.Time, run pawl.ID) error {
	s.left.rows-- // also counts as work
	return s.put(tableEnded, endedKey(now.Add(DefaultRetention), run), nil)
}

// removeHead removes the rows that lead to a run.
func (r rows) removeHead(run pawl.ID, row *runRow) error {
	if known, err := r.find(row.Flow, row.ID); err != nil || known == run {
		if err := r.delete(tableIDs, idKey(row.Flow, row.ID)); err != nil {
			return err
		}
	}
	if err := r.delete(tableBlocked, run[:]); err != nil {
		return err
	}
	if err := r.deleteFound(run, row); err != nil {
		return err
	}
	return r.delete(tableRuns, run[:])
}

// quota is how many rows and bytes one transaction may still remove, so that the writer does
// not delay others for long. The last row may exceed the bytes.
type quota struct{ rows, bytes int }

// portionQuota returns the quota of a transaction that removes rows.
func portionQuota() quota { return quota{rows: 1000, bytes: 2 << 20} }

func (q *quota) spent() bool { return q.rows <= 0 || q.bytes <= 0 }

// remove deletes rows whose keys have the prefix, beginning at the key first, within the quota.
// It goes through one table after another.
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
