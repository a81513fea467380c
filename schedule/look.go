package schedule

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// view is what is due.
type view struct {
	now      int64
	due      []named
	buffered []named
	stale    []stale
	wait     time.Duration
}

// named is a row with its name.
type named struct {
	name string
	row  *row
}

// look reads what is due, and when the next schedule is.
func (s *Scheduler) look(ctx context.Context) (v view, err error) {
	v.now, v.wait = s.store.Now().UnixNano(), longestSleep
	if s.hub.shared {
		v.wait = min(v.wait, s.opts.Poll)
	}
	err = s.source.ViewRows(ctx, func(r driver.Reader) error {
		due, err := s.lookDue(r, &v)
		if err != nil {
			return err
		}
		waiting, err := s.lookBuffered(r, &v)
		if err != nil {
			return err
		}
		isDue := make(map[string]bool)
		for _, d := range due {
			row, err := s.sound(r, d.name)
			switch {
			case err != nil:
				return err
			case s.isDamaged(d.name):
			case row == nil || row.Due != d.at:
				v.stale = append(v.stale, stale{d.name, d.at})
			default:
				isDue[d.name] = true
				v.due = append(v.due, named{d.name, row})
			}
		}
		for _, name := range waiting {
			if isDue[name] {
				continue
			}
			row, err := s.sound(r, name)
			if err != nil {
				return err
			}
			switch {
			case s.isDamaged(name):
			case row == nil || !row.waits():
				v.stale = append(v.stale, stale{name: name})
			default:
				v.buffered = append(v.buffered, named{name, row})
			}
		}
		return nil
	})
	return v, err
}

// dueRow is a row of the table of due schedules.
type dueRow struct {
	at   int64
	name string
}

// lookDue returns the schedules that are due. Damaged schedules do not count against the limit: they
// stay due until they are replaced or removed.
func (s *Scheduler) lookDue(r driver.Reader, v *view) (due []dueRow, err error) {
	n := 0
	err = present(r.Scan(tableDue, driver.Span{}, func(key, _ []byte) bool {
		t, name, err := parseDueKey(key)
		switch {
		case err != nil:
			return true
		case t > v.now:
			v.wait = min(v.wait, time.Duration(t-v.now))
			return false
		case !s.isDamaged(name):
			n++
		}
		due = append(due, dueRow{t, name})
		return n < portion
	}))
	return due, err
}

// lookBuffered returns schedules with waiting ticks. If there are many, each look returns the next
// ones in turn, and the next look comes soon.
func (s *Scheduler) lookBuffered(r driver.Reader, v *view) (names []string, err error) {
	var last []byte
	n, from := 0, s.behind
	err = present(r.Scan(tableBuffered, driver.Span{From: from, Limit: portion}, func(key, _ []byte) bool {
		n, last = n+1, bytes.Clone(key)
		names = append(names, nameOf(key))
		return true
	}))
	s.behind = nil
	if n == portion {
		s.behind = driver.After(last)
	}
	if from != nil || s.behind != nil {
		v.wait = min(v.wait, bufferPause)
	}
	return names, err
}

// sound reads a row. It returns nil for a row that is skipped, and logs that once.
func (s *Scheduler) sound(r driver.Reader, name string) (*row, error) {
	row, err := read(r, name)
	switch {
	case err == nil:
		was, passed := s.damaged[name]
		switch {
		case !passed || row == nil || row.Changes != was.changes: // the row was replaced or removed
			delete(s.damaged, name)
		case s.isDamaged(name):
			return nil, nil
		}
		return row, nil
	case !errors.Is(err, pawl.ErrCorrupt) && !errors.Is(err, pawl.ErrNewerFormat):
		return nil, err
	}
	s.passOver(name, unread, err, 0)
	return nil, nil
}

// damaged is a schedule that is passed over.
type damaged struct {
	changes uint64    // changes of its row
	until   time.Time // when to try it again; zero if only another row helps
}

func (s *Scheduler) isDamaged(name string) bool {
	d, passed := s.damaged[name]
	return passed && (d.until.IsZero() || time.Now().Before(d.until))
}

// untilRetry returns how long to wait until a schedule that is passed over is tried again.
func (s *Scheduler) untilRetry() time.Duration {
	least := longestSleep
	for _, d := range s.damaged {
		if left := time.Until(d.until); left > 0 {
			least = min(least, left)
		}
	}
	return least
}

// unread stands for the changes of a row that cannot be read.
const unread = math.MaxUint64

// passOver leaves a schedule undecided until its row changes, so that it does not delay the others. If again is not 0,
// the schedule is tried again after that time.
func (s *Scheduler) passOver(name string, changes uint64, err error, again time.Duration) {
	d := damaged{changes: changes}
	if again > 0 {
		d.until = time.Now().Add(again)
	}
	was, known := s.damaged[name]
	s.damaged[name] = d
	if known && was.changes == changes {
		return
	}
	s.opts.Logger.Warn("a schedule is passed over", "schedule", name, "error", err)
}

// candidates returns the schedules that fit into one mutation, with the jobs that they wait for.
func (s *Scheduler) candidates(ctx context.Context, v *view) (list []*candidate, jobs []pawl.ID, err error) {
	if !s.awaited.await(v.buffered) {
		v.wait = min(v.wait, bufferPause)
	}
	ticks, size := 0, 0
	add := func(n named) bool {
		c, err := s.candidate(n.name, n.row, v.now, max(portion-ticks, 1))
		if err != nil {
			s.passOver(n.name, n.row.Changes, err, 0)
			return true
		}
		list, jobs = append(list, c), append(jobs, n.row.Alive...)
		ticks += len(c.fires)
		size += len(c.fires) * (len(n.row.Action.Job) + rowBytes)
		return ticks < portion && size < portionBytes
	}
	for _, n := range v.buffered {
		free, err := s.isFree(ctx, n.row)
		if err != nil {
			return nil, nil, err
		}
		if free && !add(n) {
			return list, jobs, nil
		}
	}
	for _, n := range v.due {
		if !add(n) {
			break
		}
	}
	return list, jobs, nil
}

// isFree reports whether all jobs of a schedule have ended. It cancels the jobs that are in the way
// of a tick.
func (s *Scheduler) isFree(ctx context.Context, r *row) (free bool, err error) {
	free = true
	for _, id := range r.Alive {
		e, err := s.source.Job(ctx, id)
		switch {
		case errors.Is(err, pawl.ErrNotFound), errors.Is(err, pawl.ErrCorrupt):
			delete(s.asked, id)
			continue
		case err != nil:
			return false, err
		case !isAlive(e.State):
			delete(s.asked, id)
			continue
		}
		free = false
		if p := r.terms().Overlap; s.asked[id] != p {
			s.asked[id] = p
			s.end(ctx, r, id)
		}
	}
	return free, nil
}

// canceller is a queue that cancels jobs.
type canceller interface {
	Cancel(ctx context.Context, id pawl.ID) error
}

// end cancels or terminates a job that is in the way, if the policy says so.
func (s *Scheduler) end(ctx context.Context, r *row, id pawl.ID) {
	const reason = "the next tick of its schedule is due"
	var err error
	switch p := r.terms().Overlap; {
	case p == TerminateOther && r.Action.Run != nil:
		err = workflow.Open(s.store, nil).Terminate(ctx, id, reason)
	case p == CancelOther && r.Action.Run != nil:
		err = workflow.Open(s.store, nil).Cancel(ctx, id, reason)
	case p == CancelOther:
		if q, ok := s.store.(canceller); ok {
			err = q.Cancel(ctx, id)
		}
	}
	if err != nil && !errors.Is(err, pawl.ErrNotFound) && !errors.Is(err, pawl.ErrConflict) && !errors.Is(err, workflow.ErrNotRunning) {
		delete(s.asked, id)
		s.opts.Logger.Warn("cannot end a job for the next tick of its schedule; trying again", "job", id, "error", err)
	}
}
