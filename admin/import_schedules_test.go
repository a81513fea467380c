package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/schedule"
)

var nightly = pawl.Define[string]("greet")

// scheduleLine returns the line of a schedule, which has fired once.
func scheduleLine(name string) string {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	ctx, m := context.Background(), schedule.Manage(q, nil)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(m.Put(ctx, schedule.Job(name, "@daily", nightly, "x")))
	_, err := m.Trigger(ctx, name)
	must(err)
	rows, err := m.Rows(ctx, "", 1)
	must(err)
	line, err := json.Marshal(exportLine{Schedule: exportScheduleOf(&rows[0])})
	must(err)
	return string(line)
}

// Rule: an import stores the schedules of an export with their history. They wait for the same jobs,
// whatever IDs these have, and continue with their next tick.
func TestSchedulesTravel(t *testing.T) {
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprintf("keep IDs: %t", keep), func(t *testing.T) {
			from, to := transferQueue(t), transferQueue(t)
			m := schedule.Manage(from, nil)
			require.NoError(t, m.Put(t.Context(), schedule.Job("nightly", "@daily", nightly, "x")))
			require.NoError(t, m.Put(t.Context(), schedule.Job("paused", "@hourly", nightly, "x", schedule.In("Europe/Berlin"))))
			require.NoError(t, m.Pause(t.Context(), "paused", "a \xff b"))
			id, err := m.Trigger(t.Context(), "nightly")
			require.NoError(t, err)
			export := exportOf(t, Of(from))

			dry, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: keep, DryRun: true})
			require.NoError(t, err)
			imported, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: keep})
			require.NoError(t, err)
			require.Equal(t, Imported{Version: ExportVersion, Checked: 1, Jobs: 1, Schedules: 2}, imported)
			require.Equal(t, imported, dry)

			want, err := m.List(t.Context(), "", 10)
			require.NoError(t, err)
			got, err := schedule.Read(to).List(t.Context(), "", 10)
			require.NoError(t, err)
			alive := got[0].Alive
			require.Len(t, alive, 1)
			require.Equal(t, keep, alive[0] == id)
			e, err := to.Job(t.Context(), alive[0])
			require.NoError(t, err)
			require.Equal(t, "greet", e.Kind)
			got[0].Alive = want[0].Alive
			require.Equal(t, want, got)
			entries, err := schedule.Read(to).History(t.Context(), "nightly", 0)
			require.NoError(t, err)
			require.Len(t, entries, 1)
			require.Equal(t, id, entries[0].Job)

			_, err = Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: keep})
			require.ErrorIs(t, err, pawl.ErrConflict)
			require.ErrorContains(t, err, "nothing was stored")
			again, err := Import(t.Context(), Of(to), strings.NewReader(export), &ImportOptions{KeepIDs: keep, SkipExisting: true})
			require.NoError(t, err)
			require.EqualValues(t, 2, again.SchedulesSkipped)
			require.Zero(t, again.Schedules)
		})
	}
}

// Rule: an export of some jobs has no schedules. A damaged schedule is named.
func TestExportOfSomeSchedules(t *testing.T) {
	q := transferQueue(t)
	m := schedule.Manage(q, nil)
	for n := range 3 {
		require.NoError(t, m.Put(t.Context(), schedule.Job([]string{"a", "daily", "z"}[n], "@daily", nightly, "x")))
	}
	require.NoError(t, q.Mutate(t.Context(), damagedRow{}, 0))
	var b bytes.Buffer
	done, err := Export(t.Context(), Of(q), &b, &ExportOptions{Filter: Filter{Filter: pawl.Filter{Queue: "default"}}})
	require.NoError(t, err)
	require.Zero(t, done.Schedules+done.Damaged)
	done, err = Export(t.Context(), Of(q), &b, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, done.Schedules)
	require.EqualValues(t, 1, done.Damaged)
	require.ErrorContains(t, done.Damage[0].Err, `the row of schedule "daily"`)
}

// Rule: schedules that are large travel in several answers and portions, each once.
func TestManySchedulesTravel(t *testing.T) {
	from, to := transferQueue(t), transferQueue(t)
	m := schedule.Manage(from, nil)
	const n = 7
	for i := range n {
		require.NoError(t, m.Put(t.Context(), schedule.Job(fmt.Sprint("s", i), "@daily", nightly, strings.Repeat("x", 400<<10))))
	}
	first, err := Of(from).Schedules().Rows(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, first, 3)
	imported, err := Import(t.Context(), Of(to), strings.NewReader(exportOf(t, Of(from))), nil)
	require.NoError(t, err)
	require.EqualValues(t, n, imported.Schedules)
}

// Rule: a line of a schedule that no store has written is refused, and nothing is stored.
func TestImportOfHostileSchedules(t *testing.T) {
	line := scheduleLine("nightly")
	var l exportLine
	require.NoError(t, json.Unmarshal([]byte(line), &l))
	for rule, change := range map[string]func(*exportSchedule){
		"a slash in the name":  func(x *exportSchedule) { x.Name = "a/b" },
		"no form":              func(x *exportSchedule) { x.Form = 0 },
		"a row that is none":   func(x *exportSchedule) { x.Row = []byte("none") },
		"an entry that is not": func(x *exportSchedule) { x.History[0].N = 9 },
	} {
		c := *l.Schedule
		c.History = append([]exportScheduleRow(nil), c.History...)
		change(&c)
		text, err := json.Marshal(exportLine{Schedule: &c})
		require.NoError(t, err)
		t.Run(rule, func(t *testing.T) { requireRefused(t, exportLines(string(text))) })
	}
	require.ErrorContains(t, requireRefused(t, exportLines(line, line)), "has a line already")
}

// Rule: an import into a queue that keeps no schedules fails before it stores anything.
func TestImportWhereNoSchedulesAre(t *testing.T) {
	to := transferQueue(t)
	_, err := Import(t.Context(), withoutSchedules{Of(to)}, strings.NewReader(exportLines(jobLine(simpleJob(1, nil)), scheduleLine("a"))), nil)
	require.True(t, errors.As(err, new(*UnsupportedError)), "%v", err)
	requireEmpty(t, to)
}

// withoutSchedules is a queue that keeps no schedules.
type withoutSchedules struct{ Admin }

func (withoutSchedules) Schedules() Schedules { return directSchedules{} }
