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
// process. It decides schedules of the group and of operators. It reports whether all are decided: a tick that failed
// for a reason that may pass is tried again.
func (s *Scheduler) open(ctx context.Context) (all bool, err error) {
	var names []string
	err = s.source.ViewRows(ctx, func(r driver.Reader) error {
		names = nil
		return each(r, "", func(name string, row *row, damage error) bool {
			if damage == nil && row.active() && strings.HasSuffix(row.terms().Spec, atOpen) && (row.Group == s.opts.Group || row.Group == "") {
				names = append(names, name)
			}
			return true
		})
	})
	if err != nil {
		return false, err
	}
	all = true
	for _, name := range names {
		if _, done := s.hub.opened.LoadOrStore(name, true); done {
			continue
		}
		failed := time.Now().Before(s.damaged[name].until)
		if !failed {
			failed, err = s.openOne(ctx, name)
		}
		if failed || err != nil {
			s.hub.opened.Delete(name)
			all = false
		}
		if err != nil {
			return false, err
		}
	}
	return all, nil
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
