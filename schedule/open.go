package schedule

import (
	"context"
	"errors"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// open decides a tick of each schedule with @open: once for each opening of the store in this
// process. It decides schedules of the group and of operators.
func (s *Scheduler) open(ctx context.Context) error {
	var names []string
	err := s.source.ViewRows(ctx, func(r driver.Reader) error {
		names = nil
		return each(r, "", func(name string, row *row, damage error) bool {
			if damage == nil && row.active() && strings.HasSuffix(row.terms().Spec, atOpen) && (row.Group == s.opts.Group || row.Group == "") {
				names = append(names, name)
			}
			return true
		})
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, done := s.hub.opened.LoadOrStore(name, true); done {
			continue
		}
		if err := s.openOne(ctx, name); err != nil {
			s.hub.opened.Delete(name)
			return err
		}
	}
	return nil
}

// openOne decides the tick of one schedule, unless it has been paused or changed since.
func (s *Scheduler) openOne(ctx context.Context, name string) error {
	for {
		var r *row
		err := s.source.ViewRows(ctx, func(tx driver.Reader) (err error) {
			r, err = read(tx, name)
			return err
		})
		switch {
		case err != nil && !errors.Is(err, pawl.ErrCorrupt):
			return err
		case r == nil || !r.active() || !strings.HasSuffix(r.terms().Spec, atOpen):
			return nil
		}
		c, err := s.candidate(name, r, 0, 1)
		if err != nil {
			s.passOver(name, r.Changes, err)
			return nil
		}
		tick := max(s.store.Now().UnixNano(), r.Last+1)
		c.due.ticks = []int64{tick}
		if err := s.prepare(c, tick, ""); err != nil {
			return err
		}
		changes, err := s.decide(ctx, []*candidate{c}, r.Alive, nil)
		switch {
		case err != nil:
			return err
		case c.damage != nil:
			s.passOver(name, r.Changes, c.damage)
			return nil
		case len(changes) > 0:
			return nil
		}
	}
}
