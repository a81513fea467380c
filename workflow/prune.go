package workflow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
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

// removeEnded removes runs that are to be removed by now, up to most rows, and returns how
// many rows it removed. It is called by those who start runs, inside their commit: where
// there is nothing to remove it looks at one row.
func (r rows) removeEnded(now time.Time, most int) (removed int, err error) {
	s := sweep{rows: r, most: most}
	err = s.until(now)
	return s.removed, err
}

// sweep removes runs, up to a number of rows.
type sweep struct {
	rows
	most    int
	removed int // rows
	runs    int // that are gone with all their rows
}

// headRows is how many rows a run is found by, at most.
const headRows = 3

// until removes runs that are to be removed by now.
func (s *sweep) until(now time.Time) error {
	ended := s.bucket(bucketEnded)
	if ended == nil {
		return nil
	}
	c := ended.Cursor()
	var passed []byte // a bucket in the place of a row, which stays
	for k, v := c.First(); k != nil && s.removed < s.most; k, v = c.Seek(passed) {
		if bytes.Equal(k, passed) {
			if k, v = c.Next(); k == nil {
				return nil
			}
		}
		key := bytes.Clone(k)
		if v == nil {
			passed = key
			s.removed++ // as much work
			continue
		}
		until, run, err := parseEndedKey(key)
		if err == nil {
			if until.After(now) {
				return nil
			}
			if over, err := s.removeRun(now, run); !over || err != nil {
				return err
			}
		}
		if err := s.delete(bucketEnded, key); err != nil {
			return err
		}
		s.removed++
	}
	return nil
}

// removeRun removes a run but for its row in ended. Over says that this can go too, and
// otherwise the sweep is at its end. A row in ended is not enough to lose a run: one that
// has not ended stays, and one that cannot be read, or not be removed because the file is
// damaged, is looked at again later: nobody else is to wait for it, nor fail.
func (s *sweep) removeRun(now time.Time, run pawl.ID) (over bool, err error) {
	row, err := s.run(run)
	switch {
	case err != nil:
		return true, s.later(now, run)
	case row != nil && row.open():
		return true, nil
	case row != nil && s.most-s.removed < headRows:
		return false, nil
	case row != nil:
		if err := s.removeHead(run, row); err != nil {
			return s.orLater(now, run, err)
		}
		s.removed += headRows
	}
	n, err := s.rows.remove(run, s.most-s.removed, bucketSteps, bucketBlobs, bucketSignals, bucketSeen, bucketPublished)
	s.removed += n
	switch {
	case err != nil:
		return s.orLater(now, run, err)
	case s.removed >= s.most:
		return false, nil
	}
	s.runs++
	return true, nil
}

// orLater deals with an error: damage is passed over.
func (s *sweep) orLater(now time.Time, run pawl.ID, err error) (over bool, _ error) {
	if !errors.Is(err, pawl.ErrCorrupt) {
		return false, err
	}
	return true, s.later(now, run)
}

// later has a run be looked at again.
func (s *sweep) later(now time.Time, run pawl.ID) error {
	s.removed++ // as much work
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

// Prune removes the runs that ended before a time, whatever their retention, those too that
// are kept for ever. It works in small portions, and tells progress after each how many runs
// are gone so far; progress may be nil. When it fails midway the runs counted are gone.
//
// The file does not become smaller; what is freed is used again.
func (e *Engine) Prune(ctx context.Context, before time.Time, progress func(done int)) (done int, err error) {
	for w := (walk{bucket: bucketRuns}); !w.end; {
		p := &prune{before: before}
		_, err := w.step(ctx, e.source, func(r rows, key, _ []byte, _ error) bool {
			if len(key) == len(pawl.ID{}) {
				if row, err := r.run(pawl.ID(key)); err == nil && p.chooses(row) {
					p.runs = append(p.runs, pawl.ID(key))
				}
			}
			return len(p.runs) < portion
		})
		if err != nil {
			return done, fmt.Errorf("prune: %w", err)
		}
		for more := len(p.runs) > 0 || w.end; more; more = p.more {
			if err := e.queue.Join(ctx, p, len(p.runs)*requestBytes); err != nil {
				return done, fmt.Errorf("prune: %w", err)
			}
			done += p.done
			if progress != nil && p.done > 0 {
				progress(done)
			}
		}
	}
	return done, nil
}

// prunePortion is how many rows one rider of Prune removes at most.
const prunePortion = 500

// atOnce is when those are to be removed that Prune has chosen: before all others.
var atOnce = time.Unix(0, math.MinInt64)

// prune is the rider that removes runs that have ended. It gives them the time at which to
// remove them anew, and removes what has that time; so what one does not get done the next
// does, or any start.
type prune struct {
	before time.Time
	runs   []pawl.ID

	due  map[pawl.ID]*runRow
	done int  // runs that are gone
	more bool // are left
}

func (p *prune) chooses(row *runRow) bool {
	return row != nil && !row.open() && time.Unix(0, row.Ended).Before(p.before)
}

// Check looks which of the runs are still there.
func (p *prune) Check(plan *bolt.Plan) error {
	r := rowsOf(plan.Tx())
	p.due = make(map[pawl.ID]*runRow)
	for _, run := range p.runs {
		if row, err := r.run(run); err == nil && p.chooses(row) {
			p.due[run] = row
		}
	}
	return nil
}

// Apply removes a portion.
func (p *prune) Apply(tx *bbolt.Tx) (err error) {
	r := rowsOf(tx)
	for run, row := range p.due {
		if until := row.keptUntil(); !until.IsZero() {
			if err := r.delete(bucketEnded, endedKey(until, run)); err != nil {
				return err
			}
		}
		if err := r.put(bucketEnded, endedKey(atOnce, run), nil); err != nil {
			return err
		}
	}
	s := sweep{rows: r, most: prunePortion}
	err = s.until(atOnce)
	p.done, p.more = s.runs, s.most-s.removed < headRows
	return err
}
