package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
)

var scheduleRows = defineRows(rowKind[schedule.Rows]{
	one:  "schedule",
	of:   func(a Admin) rowStore[schedule.Rows] { return a.Schedules() },
	head: func(r *schedule.Rows) (string, int) { return r.Name, r.Form },
	line: func(l *exportLine) *schedule.Rows {
		if l.Schedule == nil {
			return nil
		}
		return l.Schedule.rows()
	},
	rename: (*schedule.Rows).Rename,
	most:   schedule.MaxListed,
})

func (s clientSchedules) Rows(ctx context.Context, after string) ([]schedule.Rows, error) {
	return scheduleRows.ask(ctx, s.c, after)
}

func (d directSchedules) Rows(ctx context.Context, after string) ([]schedule.Rows, error) {
	return readSchedules(d, func(r *schedule.Reader) ([]schedule.Rows, error) { return r.Rows(ctx, after, schedule.MaxListed) })
}

func (s clientSchedules) RestoreRows(ctx context.Context, rows ...*schedule.Rows) error {
	return scheduleRows.send(ctx, s.c, rows)
}

func (d directSchedules) RestoreRows(ctx context.Context, rows ...*schedule.Rows) error {
	_, err := changeSchedules(d, func(m *schedule.Manager) (nothing, error) { return nothing{}, m.RestoreRows(ctx, rows...) })
	return err
}

// exportSchedule is a line of an export: a schedule in JSON. Like those of [Job], its field names are
// stable. The rows have the form that they have in the file: see "Schedules in an export" in
// docs/internals/format.md.
type exportSchedule struct {
	Name    Text                `json:"name"`
	Form    int                 `json:"form"`
	Row     []byte              `json:"row"`
	History []exportScheduleRow `json:"history"` // in the order of their numbers
}

type exportScheduleRow struct {
	N     uint64 `json:"n"`
	Value []byte `json:"value"`
}

func exportScheduleOf(r *schedule.Rows) *exportSchedule {
	history := each(r.History, func(h schedule.HistoryRow) exportScheduleRow { return exportScheduleRow(h) })
	return &exportSchedule{Name: Text(r.Name), Form: r.Form, Row: r.Row, History: history}
}

func (x *exportSchedule) rows() *schedule.Rows {
	history := each(x.History, func(h exportScheduleRow) schedule.HistoryRow { return schedule.HistoryRow(h) })
	return &schedule.Rows{Name: string(x.Name), Form: x.Form, Row: x.Row, History: history}
}

func (x *exporter) schedules(ctx context.Context) error {
	return scheduleRows.export(ctx, x, func(r *schedule.Rows) error {
		x.done.Schedules++
		return x.to.Encode(exportLine{Schedule: exportScheduleOf(r)})
	})
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
	c.importer.schedules = append(c.importer.schedules, namedLine{rows.Name, offset})
	for _, id := range alive {
		c.awaited[id] = rows.Name
	}
	return nil
}

// leaveOutSchedules finds which schedules the target has.
func (m *importer) leaveOutSchedules(ctx context.Context) error {
	left, err := scheduleRows.leaveOut(m, m.schedules, func(name string) (bool, error) {
		_, err := m.to.Schedules().Show(ctx, name, 0)
		if errors.Is(err, schedule.ErrNotFound) {
			return false, nil
		}
		return true, err
	})
	kept := make(map[string]bool)
	for _, l := range left {
		kept[l.name] = true
	}
	maps.DeleteFunc(m.awaited, func(_ pawl.ID, name string) bool { return !kept[name] })
	m.done.SchedulesSkipped = int64(len(m.schedules) - len(left))
	m.schedules = left
	return err
}
