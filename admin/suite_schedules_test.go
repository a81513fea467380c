package admin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/schedule"
)

// Operations on schedules have the effect of the library's own verbs, wherever the queue is.
func TestSuiteSchedules(t *testing.T) { runSuite(t, scheduleCases) }

// someSchedules adds hourly, the schedule of a program, and daily, that of operators.
func someSchedules(f *fixture) {
	ctx := context.Background()
	s, err := schedule.Open(f.q, &schedule.Options{Group: "app"})
	require.NoError(f.t, err)
	greet := pawl.Define[string]("greet")
	require.NoError(f.t, s.Sync(ctx, schedule.Job("hourly", "@hourly", greet, "a \xff b", schedule.In("Europe/Berlin"))))
	s.Close()
	require.NoError(f.t, s.Put(ctx, schedule.Job("daily", "@daily", greet, "b", schedule.Overlap(schedule.Allow))))
}

// damagedSchedule damages the row of daily.
func damagedSchedule(f *fixture) {
	someSchedules(f)
	require.NoError(f.t, f.q.Mutate(context.Background(), damagedRow{}, 0))
}

type damagedRow struct{}

func (damagedRow) Check(driver.Ops) error { return nil }

func (damagedRow) Apply(w driver.Writer) error {
	return w.Put(driver.NewSpace("pawl.schedule").Table("schedules"), []byte("daily\x00"), []byte("none"))
}

var scheduleCases = []suiteCase{
	{"schedules are listed page by page, in the order of their names, with all that they have", someSchedules, nil, func(t *testing.T, s *suiteTest) {
		all, err := s.Schedules().List(t.Context(), ScheduleQuery{})
		require.NoError(t, err)
		require.Len(t, all.Schedules, 2)
		require.Empty(t, all.Next)
		firing := FiringStopped
		if s.live {
			firing = FiringNo
		}
		require.Equal(t, firing, all.Firing)
		first, err := s.Schedules().List(t.Context(), ScheduleQuery{Limit: 1})
		require.NoError(t, err)
		require.Equal(t, "daily", first.Next)
		second, err := s.Schedules().List(t.Context(), ScheduleQuery{Limit: 1, After: first.Next})
		require.NoError(t, err)
		require.Equal(t, all.Schedules, append(first.Schedules, second.Schedules...))
		i := second.Schedules[0]
		require.Equal(t, []string{"hourly", "app", "@hourly", "Europe/Berlin"}, []string{i.Name, i.Group, i.Terms.Spec, i.Terms.Zone})
		require.Equal(t, packOf(t, "a \xff b"), i.Job.Payload)
		require.True(t, i.Next.Equal(noon.Add(time.Hour)), i.Next)
		_, err = s.Schedules().List(t.Context(), ScheduleQuery{Limit: -1})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}},
	{"a schedule is shown with its next ticks, and its history", someSchedules, nil, func(t *testing.T, s *suiteTest) {
		got, err := s.Schedules().Show(t.Context(), "daily", 2)
		require.NoError(t, err)
		require.Len(t, got.Ticks, 2)
		require.Equal(t, 24*time.Hour, got.Ticks[1].Sub(got.Ticks[0]))
		_, err = s.Schedules().Show(t.Context(), "daily", schedule.MaxNext+1)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		id, err := s.Schedules().Trigger(t.Context(), "daily")
		require.NoError(t, err)
		e, err := s.Job(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "greet", e.Kind)
		list, err := s.Schedules().History(t.Context(), "daily", 0)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, id, list[0].Job)
		require.True(t, list[0].Manual)
		list, err = s.Schedules().History(t.Context(), "daily", 1)
		require.NoError(t, err)
		require.Empty(t, list)
	}},
	{"a schedule is put, set, reset, paused, resumed, and removed", someSchedules, nil, func(t *testing.T, s *suiteTest) {
		all := s.Schedules()
		terms := schedule.Terms{Spec: "0 4 * * *", CatchUp: 3, Overlap: schedule.Buffer, Buffer: 5, Window: time.Hour, Spread: time.Minute}
		require.NoError(t, all.Put(t.Context(), ScheduleDefinition{Name: "new", Terms: terms, Job: &pawl.Envelope{Kind: "k", Priority: 3}}))
		require.ErrorIs(t, all.Put(t.Context(), ScheduleDefinition{Name: "new", Terms: terms}), pawl.ErrInvalid)
		require.ErrorIs(t, all.Put(t.Context(), ScheduleDefinition{Name: "hourly", Terms: terms, Job: &pawl.Envelope{Kind: "k"}}), pawl.ErrConflict)
		got, err := all.Show(t.Context(), "new", 0)
		require.NoError(t, err)
		require.Equal(t, terms, got.Terms)
		require.EqualValues(t, 3, got.Job.Priority)

		state := func(name string) string {
			got, err := all.Show(t.Context(), name, 0)
			require.NoError(t, err)
			return ScheduleState(&got.Info) + " " + got.Terms.Spec + " " + got.Note
		}
		require.NoError(t, all.Do(t.Context(), ScheduleAction{Verb: Set, Terms: &terms}, "hourly"))
		require.Equal(t, "active 0 4 * * * ", state("hourly"))
		require.NoError(t, all.Do(t.Context(), ScheduleAction{Verb: Reset}, "hourly"))
		require.NoError(t, all.Do(t.Context(), ScheduleAction{Verb: Pause, Note: "a \xff b"}, "hourly"))
		require.Equal(t, "paused @hourly a \xff b", state("hourly"))
		require.NoError(t, all.Do(t.Context(), ScheduleAction{Verb: Resume, CatchUp: true}, "hourly"))
		require.Equal(t, "active @hourly ", state("hourly"))
		require.ErrorIs(t, all.Do(t.Context(), ScheduleAction{Verb: Remove}, "hourly"), pawl.ErrInvalid)
		require.NoError(t, all.Do(t.Context(), ScheduleAction{Verb: Remove}, "new"))
		for _, wrong := range []ScheduleAction{{Verb: "stop"}, {Verb: Set}, {Verb: Reset, Note: "x"}, {Verb: Pause, CatchUp: true}, {Verb: Reset, Terms: &terms}} {
			require.ErrorIs(t, all.Do(t.Context(), wrong, "hourly"), pawl.ErrInvalid, "%+v", wrong)
		}
	}},
	{"a period is filled with as many ticks as were allowed, and no more", someSchedules, nil, func(t *testing.T, s *suiteTest) {
		n, err := s.Schedules().Backfill(t.Context(), "daily", noon.Add(-73*time.Hour), noon.Add(-time.Hour), 3)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		_, err = s.Schedules().Backfill(t.Context(), "daily", noon.Add(-73*time.Hour), noon.Add(-time.Hour), 2)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		got, err := s.Schedules().Show(t.Context(), "daily", 0)
		require.NoError(t, err)
		require.EqualValues(t, 3, got.Counts.Fired)
	}},
	{"a schedule that is not there is not found, and a call whose context has ended fails", someSchedules, nil, func(t *testing.T, s *suiteTest) {
		all := s.Schedules()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range map[string]func(ctx context.Context, name string) error{
			"Show":    func(ctx context.Context, name string) error { _, err := all.Show(ctx, name, 1); return err },
			"History": func(ctx context.Context, name string) error { _, err := all.History(ctx, name, 0); return err },
			"Trigger": func(ctx context.Context, name string) error { _, err := all.Trigger(ctx, name); return err },
			"Backfill": func(ctx context.Context, name string) error {
				_, err := all.Backfill(ctx, name, noon, noon, 1)
				return err
			},
			"Do": func(ctx context.Context, name string) error { return all.Do(ctx, ScheduleAction{Verb: Pause}, name) },
		} {
			err := call(t.Context(), "none")
			require.ErrorIs(t, err, schedule.ErrNotFound, name)
			require.ErrorIs(t, err, pawl.ErrNotFound, name)
			err = call(ended, "daily")
			require.True(t, errors.Is(err, context.Canceled), "%s: %v", name, err)
		}
	}},
	{"a schedule whose row is damaged is listed as broken, and can be removed and added again", damagedSchedule, nil, func(t *testing.T, s *suiteTest) {
		all := s.Schedules()
		l, err := all.List(t.Context(), ScheduleQuery{})
		require.NoError(t, err)
		require.Equal(t, []string{"broken", "active"}, []string{ScheduleState(&l.Schedules[0]), ScheduleState(&l.Schedules[1])})
		require.ErrorIs(t, all.Do(t.Context(), ScheduleAction{Verb: Pause}, "daily"), pawl.ErrCorrupt)
		require.NoError(t, all.Do(t.Context(), ScheduleAction{Verb: Remove}, "daily"))
		require.ErrorIs(t, all.Do(t.Context(), ScheduleAction{Verb: Remove}, "daily"), schedule.ErrNotFound)
		terms := schedule.Terms{Spec: "@daily", CatchUp: schedule.Latest, Overlap: schedule.Skip}
		require.NoError(t, all.Put(t.Context(), ScheduleDefinition{Name: "daily", Terms: terms, Job: &pawl.Envelope{Kind: "k"}}))
		_, err = all.Trigger(t.Context(), "daily")
		require.NoError(t, err)
	}},
	{"a queue without schedules has none", nil, nil, func(t *testing.T, s *suiteTest) {
		l, err := s.Schedules().List(t.Context(), ScheduleQuery{})
		require.NoError(t, err)
		require.Empty(t, l.Schedules)
	}},
}

// Rule: an invalid request about schedules is refused, with a reason, and a read-only handler permits no
// change.
func TestHostileRequestsAboutSchedules(t *testing.T) {
	q := Of(openLive(t))
	h := handlerFor(t, q, &HandlerOptions{Logger: hclog.NewNullLogger()})
	for _, test := range []requestTest{
		{rule: "a change by GET", method: "GET", path: opTrigger.path, status: 405, code: codeMethod},
		{rule: "a negative limit", method: "POST", path: opSchedules.path, kind: jsonType, body: `{"limit":-1}`, status: 400, code: "invalid"},
		{rule: "no name", method: "POST", path: opShowSchedule.path, kind: jsonType, body: `{}`, status: 404, code: "no_schedule"},
		{rule: "a schedule that is not there", method: "POST", path: opTrigger.path, kind: jsonType, body: `{"name":"a"}`, status: 404, code: "no_schedule"},
		{rule: "an unknown field", method: "POST", path: opDoSchedule.path, kind: jsonType, body: `{"verb":"pause","at":1}`, status: 400, code: "invalid"},
		{rule: "a verb that is none", method: "POST", path: opDoSchedule.path, kind: jsonType, body: `{"verb":"stop","name":"a"}`, status: 400, code: "invalid"},
		{rule: "other terms that are none", method: "POST", path: opDoSchedule.path, kind: jsonType, body: `{"verb":"set","name":"a"}`, status: 400, code: "invalid"},
		{rule: "a schedule without a job", method: "POST", path: opPutSchedule.path, kind: jsonType, body: `{"name":"a"}`, status: 400, code: "invalid"},
		{rule: "a name with a slash", method: "POST", path: opPutSchedule.path, kind: jsonType, body: `{"name":"a/b","terms":{"spec":"@daily","overlap":"skip"},"job":{"kind":"k"}}`, status: 400, code: "invalid"},
		{rule: "a schedule", method: "POST", path: opPutSchedule.path, kind: jsonType, body: `{"name":"a","terms":{"spec":"@daily","overlap":"skip"},"job":{"kind":"k"}}`, status: 200},
		{rule: "more ticks than any", method: "POST", path: opBackfill.path, kind: jsonType, body: `{"name":"a","max":1000000000}`, status: 400, code: "invalid"},
		{rule: "more next ticks than any", method: "POST", path: opShowSchedule.path, kind: jsonType, body: `{"name":"a","ticks":1000000000}`, status: 400, code: "invalid"},
	} {
		test.run(t, h)
	}
	h = handlerFor(t, q, &HandlerOptions{ReadOnly: true, Logger: hclog.NewNullLogger()})
	for _, path := range []string{opPutSchedule.path, opDoSchedule.path, opTrigger.path, opBackfill.path} {
		requestTest{rule: path, method: "POST", path: path, kind: jsonType, body: `{"name":"a"}`, status: 403, code: "denied"}.run(t, h)
	}
	requestTest{rule: "list", method: "GET", path: opSchedules.path, status: 200}.run(t, h)
}
