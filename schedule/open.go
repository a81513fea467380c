package schedule

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// open decides a tick of each schedule with @open: once for each opening of the store in this
// process. It decides schedules of the group and of operators. A tick that failed for a reason that may pass is tried
// again. A schedule that is added meanwhile waits for the next opening.
func (s *Scheduler) open(ctx context.Context) error {
	if s.opening == nil {
		if err := s.toOpen(ctx); err != nil {
			return err
		}
	}
	failed := []string{}
	for _, name := range s.opening {
		if _, done := s.hub.opened.LoadOrStore(name, true); done {
			continue
		}
		again, err := time.Now().Before(s.damaged[name].until), error(nil)
		if !again {
			again, err = s.openOne(ctx, name)
		}
		if again || err != nil {
			s.hub.opened.Delete(name)
		}
		if err != nil {
			return err
		}
		if again {
			failed = append(failed, name)
		}
	}
	s.opening = failed
	return nil
}

// toOpen reads which schedules have a tick for the opening of the store.
func (s *Scheduler) toOpen(ctx context.Context) error {
	return s.source.ViewRows(ctx, func(r driver.Reader) error {
		s.opening = []string{}
		return each(r, "", func(name string, row *row, damage error) bool {
			if damage == nil && row.active() && strings.HasSuffix(row.terms().Spec, atOpen) && (row.Group == s.opts.Group || row.Group == "") {
				s.opening = append(s.opening, name)
			}
			return true
		})
	})
}

// openOne decides the tick of one schedule, unless it has been paused or changed since. It reports whether the tick
// failed.
func (s *Scheduler) openOne(ctx context.Context, name string) (failed bool, err error) {
	for {
		var r *row
		err := s.source.ViewRows(ctx, func(tx driver.Reader) (err error) {
			r, err = read(tx, name)
			return err
		})
		switch {
		case err != nil && !errors.Is(err, pawl.ErrCorrupt):
			return false, err
		case r == nil || !r.active() || !strings.HasSuffix(r.terms().Spec, atOpen):
			return false, nil
		}
		c, err := s.candidate(name, r, 0, 1)
		if err != nil {
			s.passOver(name, r.Changes, err, 0)
			return false, nil
		}
		tick := max(s.store.Now().UnixNano(), r.Last+1)
		c.due.ticks = []int64{tick}
		s.prepare(c, tick, "")
		changes, err := s.decide(ctx, []*candidate{c}, r.Alive, nil)
		switch {
		case err != nil:
			return false, err
		case c.failed != nil:
			s.passOver(name, r.Changes, c.failed, failedPause)
			return true, nil
		case len(changes) > 0:
			return false, nil
		}
	}
}
