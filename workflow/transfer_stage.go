package workflow

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A run whose last part is missing has a row in table ended, but no row of the run itself, like a
// run whose removal has begun. So its rows are removed if the last part never comes. The removal
// time is a whole number of days, so that the call that completes the run finds the row.
const (
	stageDay  = 24 * time.Hour
	stageKept = 3 // days
	stageOld  = 7 // days that one restore may take
)

func stageKey(now time.Time, days int, run pawl.ID) []byte {
	return endedKey(now.Truncate(stageDay).Add(time.Duration(days)*stageDay), run)
}

// stage keeps the stored part of a run for some days and counts its rows.
func (r rows) stage(now time.Time, run pawl.ID, n int) error {
	if err := r.unstage(now, run); err != nil {
		return err
	}
	return r.put(tableEnded, stageKey(now, stageKept, run), binary.AppendUvarint(nil, uint64(n)))
}

// staged returns how many rows of an incomplete run are stored.
func (r rows) staged(now time.Time, run pawl.ID) (n int, err error) {
	for day := stageKept; day >= -stageOld; day-- {
		content, err := r.get(tableEnded, stageKey(now, day, run))
		if err != nil {
			return 0, err
		}
		if rows, ok := binary.Uvarint(content); ok > 0 && rows <= maxRows {
			return int(rows), nil
		}
	}
	return 0, nil
}

// hasRows reports whether anything is stored for a run.
func (r rows) hasRows(run pawl.ID) (bool, error) {
	for _, t := range transferred {
		if found, err := r.has(t, run[:], nil); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// unstage removes the rows that keep the stored part of a run.
func (r rows) unstage(now time.Time, run pawl.ID) error {
	for day := -stageOld; day <= stageKept; day++ {
		if err := r.delete(tableEnded, stageKey(now, day, run)); err != nil {
			return err
		}
	}
	return nil
}

// clear removes what an earlier restore or removal left of a run, in portions.
func (e *Engine) clear(ctx context.Context, run pawl.ID) error {
	for {
		c := &clearRows{run: run}
		left := false
		err := e.source.ViewRows(ctx, func(tx driver.Reader) error {
			r := rowsOf(tx)
			if known, err := r.get(tableRuns, run[:]); known != nil || err != nil {
				return nil // the restore reports it
			}
			var err error
			if c.overdue, err = r.overdue(e.now(), run); err != nil {
				return err
			}
			left, err = r.hasRows(run)
			left = left || len(c.overdue) > 0
			return err
		})
		if err != nil || !left {
			return err
		}
		if err := e.queue.Mutate(ctx, c, requestBytes); err != nil {
			return err
		}
	}
}

// overdue returns the rows in table ended that schedule the removal of a run at or before
// now. A killed sweep leaves such a row, even if nothing else is left of the run. With that
// row, the next sweep would remove the run that is about to be stored.
func (r rows) overdue(now time.Time, run pawl.ID) (keys [][]byte, err error) {
	err = r.each(tableEnded, nil, func(key, _ []byte, _ error) error {
		until, of, err := parseEndedKey(key)
		if err == nil && of == run {
			keys = append(keys, bytes.Clone(key))
		}
		if err == nil && until.After(now) {
			return errStop
		}
		return nil
	})
	return keys, err
}

// clearRows is the mutation of clear.
type clearRows struct {
	run     pawl.ID
	overdue [][]byte
	now     time.Time
	whole   bool // the run exists by now
}

// Check tests whether the run exists by now.
func (c *clearRows) Check(ops driver.Ops) error {
	known, err := rowsOf(ops).get(tableRuns, c.run[:])
	c.now, c.whole = ops.Now(), known != nil || err != nil
	return nil
}

// Apply removes a portion, and with the last portion the row that kept it.
func (c *clearRows) Apply(tx driver.Writer) error {
	if c.whole {
		return nil
	}
	r := rowsTo(tx)
	left := portionQuota()
	if err := r.remove(c.run[:], c.run[:], &left, append(ownedByRun[:], tableBlocked)...); err != nil || left.spent() {
		return err
	}
	for _, key := range c.overdue {
		if err := r.delete(tableEnded, key); err != nil {
			return err
		}
	}
	return r.unstage(c.now, c.run)
}

// findCalls finds the entries that wait for children, in the file and in the last parts. It runs
// before the mutation: other callers must not wait while it reads a long journal.
func (s *restoreRows) findCalls(ctx context.Context, source Source) error {
	s.calls = make(map[pawl.ID][]uint32)
	note := func(run pawl.ID, key, content []byte) error {
		e, err := parseEntry(key, content)
		if err == nil && !e.Child.IsZero() && e.State == EntryPending {
			s.calls[run] = append(s.calls[run], e.seq)
		}
		return err
	}
	for _, part := range s.parts {
		for _, row := range part.Rows {
			if row.In != tableSteps.String() {
				continue
			}
			if err := note(part.Run, append(bytes.Clone(part.Run[:]), row.Key...), row.Value); err != nil {
				return fmt.Errorf("restore run %s: %w", part.Run, err)
			}
		}
	}
	return source.ViewRows(ctx, func(tx driver.Reader) error {
		for _, part := range s.parts {
			r := rowsOf(tx)
			if !part.Last() {
				continue
			}
			if known, err := r.Get(tableRuns, part.Run[:]); present(err) != nil {
				return err
			} else if known != nil {
				continue // it will be refused
			}
			err := r.each(tableSteps, part.Run[:], func(key, content []byte, damage error) error {
				if damage != nil {
					return damage
				}
				return note(part.Run, key, content)
			})
			if err != nil {
				return fmt.Errorf("restore run %s: %w", part.Run, err)
			}
		}
		return nil
	})
}
