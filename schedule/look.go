package schedule

import (
	"bytes"
	"context"
	"errors"
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
	stale    [][]byte
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
		var due []string
		at := make(map[string]int64)
		err := present(r.Scan(tableDue, driver.Span{}, func(key, _ []byte) bool {
			t, name, err := parseDueKey(key)
			switch {
			case err != nil || s.isDamaged(name):
			case t > v.now:
				v.wait = min(v.wait, time.Duration(t-v.now))
				return false
			default:
				due, at[name] = append(due, name), t
			}
			return len(due) < portion
		}))
		if err != nil {
			return err
		}
		waiting, err := s.lookBuffered(r, &v)
		if err != nil {
			return err
		}
		for _, name := range due {
			row, err := s.sound(r, name)
			switch {
			case err != nil:
				return err
			case s.isDamaged(name):
			case row == nil || row.Due != at[name]:
				v.stale = append(v.stale, dueKey(at[name], name))
			default:
				v.due = append(v.due, named{name, row})
			}
		}
		for _, name := range waiting {
			if at[name] != 0 {
				continue
			}
			row, err := s.sound(r, name)
			if err != nil {
				return err
			}
			if row != nil && row.waits() {
				v.buffered = append(v.buffered, named{name, row})
			}
		}
		return nil
	})
	return v, err
}

// lookBuffered returns schedules with ticks that wait. If there are many, each look returns the next
// ones in turn, and the next look comes soon.
func (s *Scheduler) lookBuffered(r driver.Reader, v *view) (names []string, err error) {
	var last []byte
	n, from := 0, s.behind
	err = present(r.Scan(tableBuffered, driver.Span{From: from, Limit: portion}, func(key, _ []byte) bool {
		if n, last = n+1, bytes.Clone(key); !s.isDamaged(nameOf(key)) {
			names = append(names, nameOf(key))
		}
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

// sound reads a row. It logs a damaged one, which does not hold up the others, and returns nil.
func (s *Scheduler) sound(r driver.Reader, name string) (*row, error) {
	row, err := read(r, name)
	if err == nil || !errors.Is(err, pawl.ErrCorrupt) && !errors.Is(err, pawl.ErrNewerFormat) {
		return row, err
	}
	s.passOver(name, err)
	return nil, nil
}

func (s *Scheduler) isDamaged(name string) bool {
	_, damaged := s.damaged.Load(name)
	return damaged
}

func (s *Scheduler) passOver(name string, err error) {
	s.damaged.Store(name, true)
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
			s.passOver(n.name, err)
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

// isFree reports whether all jobs of a schedule have ended. It cancels those that are in the way of
// a tick.
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
		if !s.asked[id] {
			s.asked[id] = true
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
