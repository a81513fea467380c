package admin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a filter selects jobs; the run of each is exported with the runs that it waits for. Runs
// without a job are selected by queue and by flow, and by no other filter.
func TestExportOfSomeRuns(t *testing.T) {
	race.SkipLone(t)
	open := []string{"wait:1", "wait:paused", "wait:told", "sleep:1", "retry:1", "shift:1", "race:1", "parent:1", "child:1/slow", "large:1"}
	all := append([]string{"long:1", "long:2", "wait:dead", "fail:1", "race:won", "quick:1", "quick:1/quick", "wait:off"}, open...)
	synctest.Test(t, func(t *testing.T) {
		from := everyRun(t)
		for _, c := range []struct {
			rule   string
			filter Filter
			want   []string
		}{
			{"no filter", Filter{}, all},
			{"a queue", Filter{Filter: pawl.Filter{Queue: "default"}}, all},
			{"another queue", Filter{Filter: pawl.Filter{Queue: "other"}}, nil},
			{"a flow", Filter{Filter: pawl.Filter{Kind: "workflow/race"}}, []string{"race:1", "race:won"}},
			{"a flow of children", Filter{Filter: pawl.Filter{Kind: "workflow/parent"}}, []string{"parent:1", "child:1/slow"}},
			{"another kind", Filter{Filter: pawl.Filter{Kind: "race"}}, nil},
			{"no flow", Filter{Filter: pawl.Filter{Kind: "workflow/"}}, nil},
			{"a state", Filter{Filter: pawl.Filter{State: pawl.Delayed}}, open},
			{"another state", Filter{Filter: pawl.Filter{State: pawl.Dead}}, []string{"wait:dead"}},
			{"a time", Filter{Since: time.Now().Add(time.Hour)}, nil},
			{"an error", Filter{Error: "nothing has it"}, nil},
		} {
			var b bytes.Buffer
			exported, err := Export(context.Background(), Of(from.q), &b, &ExportOptions{Filter: c.filter})
			require.NoError(t, err)
			var got []string
			for _, line := range runLines(b.String()) {
				l, err := readLine([]byte(line), false)
				require.NoError(t, err)
				if l.Run.Last {
					got = append(got, textOf(l.Run.Flow)+":"+textOf(l.Run.ID))
				}
			}
			require.ElementsMatch(t, c.want, got, c.rule)
			require.EqualValues(t, len(got), exported.Runs)
			require.Zero(t, exported.Damaged)
			to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
			to.open("")
			_, err = Import(context.Background(), Of(to.q), bytes.NewReader(b.Bytes()), nil)
			require.NoError(t, err, c.rule)
			to.close()
		}
	})
}

// Rule: a run with any damaged row is named in the export and counted, as is a damaged job; the
// others are exported, including a run of which only the job is damaged.
func TestExportOfDamagedRuns(t *testing.T) {
	race.SkipLone(t)
	var whole []byte
	var run pawl.ID
	synctest.Test(t, func(t *testing.T) {
		from := everyRun(t)
		run = from.run("wait:paused")
		var b bytes.Buffer
		require.NoError(t, Of(from.q).Backup(context.Background(), &b))
		whole = b.Bytes()
		from.release()
	})
	for _, c := range []struct {
		bucket     []string
		jobs, runs int64
		again      int64 // of the runs that are stored
	}{
		{[]string{"pawl.workflow", "runs"}, 11, 17, 17},
		{[]string{"pawl.workflow", "steps"}, 11, 17, 17},
		{[]string{"pawl.workflow", "blobs"}, 11, 17, 17},
		{[]string{"pawl.workflow", "signals"}, 11, 17, 17},
		{[]string{"pawl.workflow", "published"}, 11, 17, 17},
		{[]string{"pawl.workflow", "seen"}, 11, 17, 17},
		{[]string{"pawl", "jobs"}, 11, 18, 18},
	} {
		path := filepath.Join(memdir.New(t), "damaged.db")
		require.NoError(t, os.WriteFile(path, whole, 0o600))
		db, err := bbolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(c.bucket[0])).Bucket([]byte(c.bucket[1]))
			k, v := b.Cursor().Seek(run[:])
			require.True(t, bytes.HasPrefix(k, run[:]), c.bucket)
			v = bytes.Clone(v)
			v[len(v)-1] ^= 1
			return b.Put(bytes.Clone(k), v)
		}))
		require.NoError(t, db.Close())
		a := offlineFile(path, nil)
		var b bytes.Buffer
		exported, err := Export(t.Context(), a, &b, nil)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		require.Len(t, exported.Damage, 1, c.bucket)
		require.Equal(t, run, exported.Damage[0].ID)
		require.ErrorIs(t, exported.Damage[0].Err, pawl.ErrCorrupt)
		exported.Damage = nil
		require.Equal(t, Exported{Queues: 1, Jobs: c.jobs, Runs: c.runs, Damaged: 1}, exported, c.bucket)
		to := transferQueue(t)
		imported, err := Import(t.Context(), Of(to), bytes.NewReader(b.Bytes()), nil)
		require.NoError(t, err)
		require.Equal(t, Imported{Version: ExportVersion, Checked: c.jobs, Damaged: 1, Jobs: c.jobs, Runs: c.again}, imported)
		require.NoError(t, workflow.Read(to).Check(t.Context()))
	}
}

// moving is an Admin in which a run changes between reads of its parts.
type moving struct {
	Admin
	times int
	reads int
}

func (m *moving) Workflows() Workflows { return movingRuns{m.Admin.Workflows(), m} }

type movingRuns struct {
	Workflows
	m *moving
}

func (w movingRuns) Rows(ctx context.Context, run pawl.ID, after string) (workflow.Rows, error) {
	rows, err := w.Workflows.Rows(ctx, run, after)
	if w.m.reads++; after != "" && w.m.times > 0 {
		w.m.times--
		rows.Mark++
	}
	return rows, err
}

// Rule: the parts of a run in an export show one moment: a run that changes between them is read
// again, and one that keeps changing is named as unreadable.
func TestExportOfARunThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := everyRun(t)
		only := &ExportOptions{Filter: Filter{Filter: pawl.Filter{Kind: "workflow/large"}}}
		steady := &moving{Admin: Of(from.q)}
		var want, got bytes.Buffer
		_, err := Export(context.Background(), steady, &want, only)
		require.NoError(t, err)
		changing := &moving{Admin: Of(from.q), times: 3}
		_, err = Export(context.Background(), changing, &got, only)
		require.NoError(t, err)
		require.Equal(t, runLines(want.String()), runLines(got.String()))
		require.Greater(t, changing.reads, steady.reads)
		exported, err := Export(context.Background(), &moving{Admin: Of(from.q), times: 1000}, &got, only)
		require.NoError(t, err)
		require.EqualValues(t, 1, exported.Damaged)
		require.ErrorContains(t, exported.Damage[0].Err, "changes all the while")
	})
}

// Rule: if any bit in the line of a run is flipped, an import fails with the number of the line
// and stores nothing, or it stores sound data. It never panics.
func TestImportOfFlippedRuns(t *testing.T) {
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		export, _ := exportOfRuns(t, &ExportOptions{Filter: Filter{Filter: pawl.Filter{Kind: "workflow/parent"}}})
		for line := range strings.Lines(export) {
			if strings.HasPrefix(line, `{"run"`) || strings.HasPrefix(line, `{"job"`) {
				lines = append(lines, strings.TrimSuffix(line, "\n"))
			}
		}
	})
	export := []byte(exportLines(lines...))
	refused, step := 0, 44/race.Fewer(2)
	for i := 0; i < len(export); i += step {
		flipped := bytes.Clone(export)
		flipped[i] ^= 1 << (i % 7)
		w := &watchedRuns{}
		_, err := Import(t.Context(), w, bytes.NewReader(flipped), nil)
		if err != nil {
			refused++
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.Regexp(t, `line \d+|it was cut`, err.Error())
			require.Empty(t, w.changes)
		}
	}
	require.NotZero(t, refused)
}

// watchedRuns is a watched Admin without runs and without a queue.
type watchedRuns struct{ watched }

func (w *watchedRuns) Workflows() Workflows { return noRuns{w: w} }

type noRuns struct {
	Workflows
	w *watchedRuns
}

func (noRuns) Find(context.Context, string, string) (pawl.ID, error) {
	return pawl.ID{}, workflow.ErrNotFound
}

func (noRuns) Show(context.Context, pawl.ID, RunDepth) (*WorkflowRun, error) {
	return nil, workflow.ErrNotFound
}

func (n noRuns) RestoreRows(_ context.Context, parts ...*workflow.Rows) error {
	n.w.changes = append(n.w.changes, fmt.Sprint(len(parts)))
	return nil
}

// Rule: an export whose lines of runs were moved, lost, duplicated or attributed to another run
// is refused, with the line.
func TestImportOfRunsThatAreWrong(t *testing.T) {
	race.SkipLone(t)
	var job string
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		export, _ := exportOfRuns(t, &ExportOptions{Filter: Filter{Filter: pawl.Filter{Kind: "workflow/large"}}})
		for line := range strings.Lines(export) {
			if strings.HasPrefix(line, `{"job"`) {
				job = strings.TrimSuffix(line, "\n")
			}
		}
		for _, line := range runLines(export) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	})
	require.Greater(t, len(lines), 3)
	last := lines[len(lines)-1]
	change := func(old, new string) []string {
		require.Contains(t, last, old)
		return append(slices.Clone(lines[:len(lines)-1]), strings.Replace(last, old, new, 1))
	}
	for rule, c := range map[string]struct {
		lines []string
		want  string
	}{
		"a part is missing":        {append([]string{lines[0]}, lines[2:]...), "line 3: .*part 3 of run .* where part 2"},
		"the first is missing":     {lines[1:], "line 2: .*part 2 of run .* where part 1"},
		"the last is missing":      {lines[:len(lines)-1], "between the lines of a run"},
		"two are swapped":          {append([]string{lines[1], lines[0]}, lines[2:]...), "line 2: "},
		"another line between":     {append([]string{lines[0], job}, lines[1:]...), "line 3: .*between the lines of a run"},
		"it is there twice":        {append(slices.Clone(lines), lines...), "is in line 2 already"},
		"another flow":             {change(`"flow":"large"`, `"flow":"wait"`), "its row says another"},
		"another ID":               {change(`"id":"1"`, `"id":"2"`), "its row says another"},
		"another status":           {change(`"status":"waiting"`, `"status":"done"`), "its row says another"},
		"a parent":                 {change(`"status":"waiting"`, `"status":"waiting","parent":"01000000-0000-7000-8000-000000000001"`), "its row says another"},
		"a newer form":             {change(`"form":1`, `"form":2`), "form 2"},
		"no form":                  {change(`"form":1`, `"form":0`), "no form"},
		"another count of rows":    {change(`"all_rows":`, `"all_rows":1`), "its last part counts"},
		"a bucket that is none":    {change(`"in":"runs"`, `"in":"jobs"`), `"jobs" is no table`},
		"a bucket of the queue's":  {change(`"in":"runs"`, `"in":"ended"`), `"ended" is no table`},
		"a row out of order":       {change(`"in":"runs"`, `"in":"blobs"`), "out of order"},
		"a row with another key":   {change(`"in":"runs"`, `"in":"runs","key":"AAAA"`), "behind the run"},
		"a content that is none":   {change(`"in":"runs","value":"`, `"in":"runs","value":"AAAA`), "line "},
		"an unknown field":         {change(`"last":true`, `"last":true,"lamp":1`), `unknown field "lamp"`},
		"a number that is too big": {change(`"part":`, `"part":99999999999999999999`), "line "},
	} {
		t.Run(rule, func(t *testing.T) {
			w := &watchedRuns{}
			_, err := Import(t.Context(), w, strings.NewReader(exportLines(c.lines...)), nil)
			require.Error(t, err)
			require.Regexp(t, c.want, err.Error())
			require.ErrorContains(t, err, "nothing was stored")
			require.Empty(t, w.changes)
		})
	}
}

// Rule: the app that stores rows checks their content too, even if an import did not.
func TestRestoreOfRowsThatAreWrong(t *testing.T) {
	q, err := bolt.Open(filepath.Join(memdir.New(t), "a.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	id := simpleJob(1, nil).ID
	for rule, part := range map[string]workflow.Rows{
		"nothing":         {},
		"no row":          {Run: id, Form: 1, Part: 1},
		"another bucket":  {Run: id, Form: 1, Part: 1, Rows: []workflow.Row{{In: "ended"}}, Next: "x"},
		"a row that ends": {Run: id, Form: 1, Part: 1, Rows: []workflow.Row{{In: "runs", Value: []byte{0x90}}}, All: 1},
		"a long key":      {Run: id, Form: 1, Part: 1, Rows: []workflow.Row{{In: "seen", Key: make([]byte, 40_000)}}, Next: "x"},
		"an entry":        {Run: id, Form: 1, Part: 1, Rows: []workflow.Row{{In: "steps", Key: make([]byte, 4)}}, Next: "x"},
	} {
		require.ErrorIs(t, Of(q).Workflows().RestoreRows(t.Context(), &part), pawl.ErrInvalid, rule)
	}
	require.NoError(t, workflow.Read(q).Check(t.Context()))
}
