package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/schedule"
)

// Schedules is what an operator does to stored schedules. The guarantees of [Admin] apply here too.
// Methods that take a name return [schedule.ErrNotFound] if there is no such schedule, and the other
// errors of the same methods of [schedule.Manager].
type Schedules interface {
	// List reads one page of schedules, in the order of their names.
	List(ctx context.Context, q ScheduleQuery) (ScheduleList, error)

	// Show reads one schedule, with its next ticks up to a number of them.
	Show(ctx context.Context, name string, ticks int) (*Schedule, error)

	// History reads what became of the ticks of a schedule, oldest first: the entries that are kept,
	// after a number.
	History(ctx context.Context, name string, after uint64) ([]schedule.Entry, error)

	// Put stores a schedule that belongs to operators.
	Put(ctx context.Context, s ScheduleDefinition) error

	// Do changes a schedule.
	Do(ctx context.Context, a ScheduleAction, name string) error

	// Trigger fires a schedule now, and returns the ID of its job or run.
	Trigger(ctx context.Context, name string) (pawl.ID, error)

	// Backfill fires the ticks of a period again, up to max of them, and returns how many. The end
	// of the period is excluded.
	Backfill(ctx context.Context, name string, from, to time.Time, max int) (int, error)

	// Rows reads the schedules after a name in the form in which they are stored, for an [Export]:
	// as many as fit into an answer, none at the end. See [schedule.Reader.Rows].
	Rows(ctx context.Context, after string) ([]schedule.Rows, error)

	// RestoreRows stores schedules in this form, all or none, for an [Import]. See
	// [schedule.Manager.RestoreRows].
	RestoreRows(ctx context.Context, rows ...*schedule.Rows) error
}

// ScheduleQuery is one page of a list of schedules.
type ScheduleQuery struct {
	After string // a name; "" for the first page
	Limit int    // the most schedules of a page; 0 means [DefaultLimit], and [MaxLimit] is the maximum
}

// ScheduleList is a part of a list of schedules.
type ScheduleList struct {
	Schedules []schedule.Info
	Next      string // where the next page begins, "" after the last
	Firing    Firing
}

// Firing says whether a process fires schedules.
type Firing string

const (
	FiringYes     Firing = "yes"     // the app does
	FiringNo      Firing = "no"      // the app does not, and no other process has the queue
	FiringStopped Firing = "stopped" // no process has the queue open
	FiringUnknown Firing = "unknown" // other processes may fire them
)

// Schedule is a schedule with its next ticks.
type Schedule struct {
	schedule.Info
	Ticks []time.Time
}

// ScheduleDefinition is a schedule that enqueues a job.
type ScheduleDefinition struct {
	Name  string
	Terms schedule.Terms
	Job   *pawl.Envelope // at least its kind
}

// The verbs of [Schedules.Do] besides [Pause] and [Resume].
const (
	Set    Verb = "set"    // other terms
	Reset  Verb = "reset"  // the terms of its program again
	Remove Verb = "remove" // a schedule that no program defines
)

// ScheduleAction is a verb with its settings.
type ScheduleAction struct {
	Verb    Verb
	Note    string          // of Pause, for other operators
	CatchUp bool            // Resume fires late ticks as [schedule.Terms.CatchUp] says; otherwise it fires none
	Terms   *schedule.Terms // of Set
}

// directSchedules carries out operations on schedules in this process.
type directSchedules struct{ direct }

// Schedules implements Admin.
func (d direct) Schedules() Schedules { return directSchedules{d} }

func readSchedules[T any](d directSchedules, fn func(*schedule.Reader) (T, error)) (T, error) {
	return using(d.direct, "schedules", func(q schedule.Source) (T, error) { return fn(schedule.Read(q)) })
}

// changeSchedules calls fn with a manager.
func changeSchedules[T any](d directSchedules, fn func(*schedule.Manager) (T, error)) (T, error) {
	return using(d.direct, "schedules", func(q schedule.Store) (T, error) { return fn(schedule.Manage(q, nil)) })
}

// changeSchedule calls fn with a manager. It opens a file for writing only if the file has the
// schedule.
func changeSchedule[T any](ctx context.Context, d directSchedules, name string, fn func(*schedule.Manager) (T, error)) (none T, err error) {
	if !d.live {
		if _, err := readSchedules(d, func(r *schedule.Reader) (schedule.Info, error) { return r.Get(ctx, name) }); err != nil && !errors.Is(err, pawl.ErrCorrupt) {
			return none, err
		}
	}
	return changeSchedules(d, fn)
}

// firing reports whether a process fires the schedules.
func (d directSchedules) firing() Firing {
	if !d.live {
		return FiringStopped
	}
	if q, ok := d.q.(schedule.Store); ok && d.flows && schedule.Manage(q, nil).Firing() {
		return FiringYes
	}
	if able, ok := d.q.(driver.Able); ok && able.Abilities()&pawl.Shared != 0 {
		return FiringUnknown
	}
	return FiringNo
}

// Schedules implements Admin.
func (c *client) Schedules() Schedules { return clientSchedules{c} }

type clientSchedules struct{ c *client }

var opSchedules = define(operation[ScheduleQuery, ScheduleList]{
	path: "schedules/list", work: lists, large: func(q *ScheduleQuery) bool { return q.Limit > DefaultLimit },
	do: func(ctx context.Context, a Admin, q *ScheduleQuery) (ScheduleList, error) {
		return a.Schedules().List(ctx, *q)
	},
	check: func(q *ScheduleQuery, l *ScheduleList) error {
		return checkList(len(l.Schedules), q.Limit, q.After, l.Next)
	},
})

func (s clientSchedules) List(ctx context.Context, q ScheduleQuery) (ScheduleList, error) {
	return ask(ctx, s.c, opSchedules, q)
}

func (d directSchedules) List(ctx context.Context, q ScheduleQuery) (ScheduleList, error) {
	limit, err := pageSize(q.Limit)
	if err != nil {
		return ScheduleList{}, err
	}
	return readSchedules(d, func(r *schedule.Reader) (l ScheduleList, err error) {
		l.Firing = d.firing()
		l.Schedules, err = r.List(ctx, q.After, limit)
		if n := len(l.Schedules); n == limit {
			l.Next = l.Schedules[n-1].Name
		}
		return l, err
	})
}

type showScheduleRequest struct {
	Name  string
	Ticks int
}

var opShowSchedule = define(operation[showScheduleRequest, *Schedule]{
	path: "schedules/show", work: lists, large: always[showScheduleRequest],
	do: func(ctx context.Context, a Admin, r *showScheduleRequest) (*Schedule, error) {
		return a.Schedules().Show(ctx, r.Name, r.Ticks)
	},
	check: func(r *showScheduleRequest, s **Schedule) error {
		if *s == nil || (*s).Name != r.Name || len((*s).Ticks) > r.Ticks {
			return errors.New("it has another schedule, or none, or too many ticks")
		}
		return nil
	},
})

func (s clientSchedules) Show(ctx context.Context, name string, ticks int) (*Schedule, error) {
	return ask(ctx, s.c, opShowSchedule, showScheduleRequest{name, ticks})
}

func (d directSchedules) Show(ctx context.Context, name string, ticks int) (*Schedule, error) {
	return readSchedules(d, func(r *schedule.Reader) (*Schedule, error) {
		info, err := r.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		s := &Schedule{Info: info}
		if info.Broken == "" && ticks != 0 {
			s.Ticks, err = r.Next(ctx, name, ticks)
		}
		return s, err
	})
}

// scheduleName names a schedule in a request.
type scheduleName struct{ Name string }

type historyRequest struct {
	Name  string
	After uint64
}

// entries is a history.
type entries struct{ Entries []schedule.Entry }

var opScheduleHistory = define(operation[historyRequest, entries]{
	path: "schedules/history", work: lists, large: always[historyRequest],
	do: func(ctx context.Context, a Admin, r *historyRequest) (entries, error) {
		list, err := a.Schedules().History(ctx, r.Name, r.After)
		return entries{list}, err
	},
	check: func(_ *historyRequest, l *entries) error {
		return checkPage(len(l.Entries), schedule.MaxHistory, "", "")
	},
})

func (s clientSchedules) History(ctx context.Context, name string, after uint64) ([]schedule.Entry, error) {
	l, err := ask(ctx, s.c, opScheduleHistory, historyRequest{name, after})
	return l.Entries, err
}

func (d directSchedules) History(ctx context.Context, name string, after uint64) ([]schedule.Entry, error) {
	return readSchedules(d, func(r *schedule.Reader) ([]schedule.Entry, error) { return r.History(ctx, name, after) })
}

var opPutSchedule = defineChange("schedules/put", func(ctx context.Context, a Admin, s *ScheduleDefinition) error {
	return a.Schedules().Put(ctx, *s)
})

func (s clientSchedules) Put(ctx context.Context, d ScheduleDefinition) error {
	return send(ctx, s.c, opPutSchedule, d)
}

func (d directSchedules) Put(ctx context.Context, s ScheduleDefinition) error {
	if s.Job == nil {
		return invalid("job", "there is none")
	}
	t := s.Terms
	opts := []schedule.Option{schedule.In(t.Zone), schedule.CatchUp(t.CatchUp), schedule.Window(t.Window), schedule.Spread(t.Spread), schedule.Overlap(t.Overlap)}
	if t.Buffer != 0 {
		opts = append(opts, schedule.BufferLimit(t.Buffer))
	}
	_, err := changeSchedules(d, func(m *schedule.Manager) (nothing, error) {
		return nothing{}, m.Put(ctx, schedule.Envelope(s.Name, t.Spec, s.Job, opts...))
	})
	return err
}

type doScheduleRequest struct {
	ScheduleAction
	Name string
}

var opDoSchedule = defineChange("schedules/do", func(ctx context.Context, a Admin, r *doScheduleRequest) error {
	return a.Schedules().Do(ctx, r.ScheduleAction, r.Name)
})

func (s clientSchedules) Do(ctx context.Context, a ScheduleAction, name string) error {
	return send(ctx, s.c, opDoSchedule, doScheduleRequest{a, name})
}

func (d directSchedules) Do(ctx context.Context, a ScheduleAction, name string) error {
	if err := a.check(); err != nil {
		return err
	}
	_, err := changeSchedule(ctx, d, name, func(m *schedule.Manager) (nothing, error) { return nothing{}, a.do(ctx, m, name) })
	return err
}

// check rejects an invalid action.
func (a ScheduleAction) check() error {
	switch {
	case a.Note != "" && a.Verb != Pause:
		return invalid("note", "only %s takes one", Pause)
	case a.CatchUp && a.Verb != Resume:
		return invalid("catch_up", "only %s takes it", Resume)
	case (a.Terms != nil) != (a.Verb == Set):
		return invalid("terms", "%s takes them, and no other verb", Set)
	case !slices.Contains([]Verb{Pause, Resume, Set, Reset, Remove}, a.Verb):
		return invalid("verb", "%q is none of %s, %s, %s, %s, %s", truncate(string(a.Verb)), Pause, Resume, Set, Reset, Remove)
	}
	return nil
}

// do carries out the action.
func (a ScheduleAction) do(ctx context.Context, m *schedule.Manager, name string) error {
	switch a.Verb {
	case Pause:
		return m.Pause(ctx, name, a.Note)
	case Resume:
		after := schedule.SkipPaused
		if a.CatchUp {
			after = schedule.CatchUpPaused
		}
		return m.Resume(ctx, name, after)
	case Set:
		return m.Set(ctx, name, *a.Terms)
	case Reset:
		return m.Reset(ctx, name)
	}
	return m.Remove(ctx, name)
}

// fired is what an operator fired.
type fired struct{ ID pawl.ID }

var opTrigger = define(operation[scheduleName, fired]{
	path: "schedules/trigger", changes: true,
	do: func(ctx context.Context, a Admin, r *scheduleName) (fired, error) {
		id, err := a.Schedules().Trigger(ctx, r.Name)
		return fired{id}, err
	},
	check: func(_ *scheduleName, f *fired) error {
		if f.ID.IsZero() {
			return errors.New("it names no job")
		}
		return nil
	},
})

func (s clientSchedules) Trigger(ctx context.Context, name string) (pawl.ID, error) {
	f, err := ask(ctx, s.c, opTrigger, scheduleName{name})
	return f.ID, err
}

func (d directSchedules) Trigger(ctx context.Context, name string) (pawl.ID, error) {
	return changeSchedule(ctx, d, name, func(m *schedule.Manager) (pawl.ID, error) { return m.Trigger(ctx, name) })
}

type backfillRequest struct {
	Name     string
	From, To time.Time
	Max      int
}

// backfilled is how many ticks a backfill fired.
type backfilled struct{ Fired int }

var opBackfill = define(operation[backfillRequest, backfilled]{
	path: "schedules/backfill", changes: true,
	do: func(ctx context.Context, a Admin, r *backfillRequest) (backfilled, error) {
		n, err := a.Schedules().Backfill(ctx, r.Name, r.From, r.To, r.Max)
		return backfilled{n}, err
	},
	check: func(r *backfillRequest, b *backfilled) error {
		if b.Fired > r.Max {
			return fmt.Errorf("it fired %d ticks, at most %d were requested", b.Fired, r.Max)
		}
		return checkNumber(b.Fired)
	},
})

func (s clientSchedules) Backfill(ctx context.Context, name string, from, to time.Time, max int) (int, error) {
	b, err := ask(ctx, s.c, opBackfill, backfillRequest{name, from, to, max})
	return b.Fired, err
}

func (d directSchedules) Backfill(ctx context.Context, name string, from, to time.Time, max int) (int, error) {
	return changeSchedule(ctx, d, name, func(m *schedule.Manager) (int, error) { return m.Backfill(ctx, name, from, to, max) })
}
