package admin

import (
	"context"
	"errors"

	"github.com/gopawl/pawl/schedule"
)

type scheduleRowsRequest struct{ After string }

// scheduleRows are some schedules as they are stored.
type scheduleRows struct{ Schedules []schedule.Rows }

var opScheduleRows = define(operation[scheduleRowsRequest, scheduleRows]{
	path: "schedules/rows", work: lists, large: always[scheduleRowsRequest],
	do: func(ctx context.Context, a Admin, r *scheduleRowsRequest) (scheduleRows, error) {
		list, err := a.Schedules().Rows(ctx, r.After)
		return scheduleRows{list}, err
	},
	check: func(r *scheduleRowsRequest, l *scheduleRows) error {
		last := r.After
		for i := range l.Schedules {
			if l.Schedules[i].Name <= last {
				return errors.New("its schedules are not in the order of their names")
			}
			last = l.Schedules[i].Name
		}
		return checkPage(len(l.Schedules), schedule.MaxListed, "", "")
	},
})

func (s clientSchedules) Rows(ctx context.Context, after string) ([]schedule.Rows, error) {
	l, err := ask(ctx, s.c, opScheduleRows, scheduleRowsRequest{after})
	return l.Schedules, err
}

func (d directSchedules) Rows(ctx context.Context, after string) ([]schedule.Rows, error) {
	return readSchedules(d, func(r *schedule.Reader) ([]schedule.Rows, error) { return r.Rows(ctx, after, schedule.MaxListed) })
}

type restoreSchedulesRequest struct{ Schedules []*schedule.Rows }

var opRestoreSchedules = define(operation[restoreSchedulesRequest, nothing]{
	path: "schedules/restore", changes: true,
	do: func(ctx context.Context, a Admin, r *restoreSchedulesRequest) (nothing, error) {
		for _, rows := range r.Schedules {
			if rows == nil {
				return nothing{}, invalid("schedules", "one is null")
			}
		}
		return nothing{}, a.Schedules().RestoreRows(ctx, r.Schedules...)
	},
})

func (s clientSchedules) RestoreRows(ctx context.Context, rows ...*schedule.Rows) error {
	_, err := ask(ctx, s.c, opRestoreSchedules, restoreSchedulesRequest{rows})
	return err
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
	x := &exportSchedule{Name: Text(r.Name), Form: r.Form, Row: r.Row, History: make([]exportScheduleRow, len(r.History))}
	for i, h := range r.History {
		x.History[i] = exportScheduleRow(h)
	}
	return x
}

func (x *exportSchedule) rows() *schedule.Rows {
	r := &schedule.Rows{Name: string(x.Name), Form: x.Form, Row: x.Row, History: make([]schedule.HistoryRow, len(x.History))}
	for i, h := range x.History {
		r.History[i] = schedule.HistoryRow(h)
	}
	return r
}
