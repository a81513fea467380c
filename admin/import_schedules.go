package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
)

// Schedules are stored after the jobs, so that a tick that is due in the target sees which of the jobs
// before it are alive. An import that ends early leaves them out, and the next import stores them.

// schedules writes the schedules. They come before the jobs, so that a tick that fires during the
// export is decided again in the target, and not lost.
func (x *exporter) schedules(ctx context.Context) error {
	for after := ""; ; {
		list, err := x.from.Schedules().Rows(ctx, after)
		switch {
		case errors.As(err, new(*UnsupportedError)): // the engine keeps no schedules
			return nil
		case err != nil || len(list) == 0:
			return err
		}
		for i := range list {
			after = list[i].Name
			if list[i].Form == 0 {
				err = x.damage(pawl.ID{}, fmt.Errorf("%w: the row of schedule %q", pawl.ErrCorrupt, list[i].Name))
			} else {
				x.done.Schedules++
				err = x.to.Encode(exportLine{Schedule: exportScheduleOf(&list[i])})
			}
			if err != nil {
				return err
			}
		}
	}
}

// storedSchedule is a schedule to store, and its position in the export.
type storedSchedule struct {
	name   string
	offset int64
}

// schedule checks the line of a schedule.
func (c *checking) schedule(x *exportSchedule, offset int64) error {
	rows := x.rows()
	alive, err := rows.Alive()
	if err != nil {
		return err
	}
	if c.named[rows.Name] {
		return fmt.Errorf("schedule %q has a line already", truncate(rows.Name))
	}
	c.named[rows.Name] = true
	c.importer.schedules = append(c.importer.schedules, storedSchedule{rows.Name, offset})
	for _, id := range alive {
		c.awaited[id] = rows.Name
	}
	return nil
}

// leaveOutSchedules finds which schedules the target has, by their names.
func (m *importer) leaveOutSchedules(ctx context.Context) error {
	var left []storedSchedule
	kept := make(map[string]bool)
	for _, s := range m.schedules {
		_, err := m.to.Schedules().Show(ctx, s.name, 0)
		switch {
		case errors.Is(err, schedule.ErrNotFound):
			left, kept[s.name] = append(left, s), true
		case err != nil && !errors.Is(err, pawl.ErrCorrupt):
			return fmt.Errorf("look which schedules are there already: %w; nothing was stored", err)
		case !m.opts.SkipExisting:
			return fmt.Errorf("line %d: schedule %q: %w: the target has a schedule of this name; nothing was stored; SkipExisting leaves it out",
				m.in.number(s.offset), truncate(s.name), pawl.ErrConflict)
		}
	}
	maps.DeleteFunc(m.awaited, func(_ pawl.ID, name string) bool { return !kept[name] })
	m.done.SchedulesSkipped = int64(len(m.schedules) - len(left))
	m.schedules = left
	return nil
}

// storeSchedules stores the schedules, portion by portion.
func (m *importer) storeSchedules(ctx context.Context) error {
	var portion []*schedule.Rows
	size := 0
	for _, s := range m.schedules {
		rows, n, err := m.rereadSchedule(s)
		if err != nil {
			return err
		}
		if len(portion) > 0 && size+n+lineExtra > portionBytes {
			if err := m.storeSomeSchedules(ctx, portion); err != nil {
				return err
			}
			portion, size = nil, 0
		}
		portion, size = append(portion, rows), size+n+lineExtra
		m.read += int64(n)
	}
	return m.storeSomeSchedules(ctx, portion)
}

func (m *importer) storeSomeSchedules(ctx context.Context, portion []*schedule.Rows) error {
	if len(portion) == 0 {
		return nil
	}
	if err := m.to.Schedules().RestoreRows(ctx, portion...); err != nil {
		return fmt.Errorf("schedule %q and those stored with it: perhaps not stored: %w; the jobs and %d schedules were stored before",
			truncate(portion[0].Name), err, m.done.Schedules)
	}
	m.done.Schedules += int64(len(portion))
	m.progress(m.read)
	return nil
}

// rereadSchedule reads the line of a schedule again, and names the jobs that its ticks wait for as the
// target does.
func (m *importer) rereadSchedule(s storedSchedule) (*schedule.Rows, int, error) {
	l, size, err := m.reread(s.offset)
	if err != nil {
		return nil, 0, err
	}
	if l.Schedule == nil || string(l.Schedule.Name) != s.name {
		return nil, 0, m.unread(s.offset, errChanged)
	}
	rows := l.Schedule.rows()
	if err := rows.Rename(m.newID); err != nil {
		return nil, 0, m.unread(s.offset, errChanged)
	}
	return rows, size, nil
}
