package admin

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// cutShort is an Admin whose process is killed before a change.
type cutShort struct {
	Admin
	left int // changes before it
}

func (d *cutShort) change(do func() error) error {
	if d.left--; d.left >= 0 {
		return do()
	}
	return errWatched
}

func (d *cutShort) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	return d.change(func() error { return d.Admin.Restore(ctx, jobs, effects) })
}

func (d *cutShort) Workflows() Workflows { return cutShortRuns{d.Admin.Workflows(), d} }

type cutShortRuns struct {
	Workflows
	d *cutShort
}

func (w cutShortRuns) RestoreRows(ctx context.Context, parts ...*workflow.Rows) error {
	return w.d.change(func() error { return w.Workflows.RestoreRows(ctx, parts...) })
}

// exportOfRuns returns an export of every run, whose app is closed afterward.
func exportOfRuns(t *testing.T, opts *ExportOptions) (string, Exported) {
	t.Helper()
	from := everyRun(t)
	var b bytes.Buffer
	exported, err := Export(context.Background(), Of(from.q), &b, opts)
	require.NoError(t, err)
	from.release()
	synctest.Wait()
	from.close()
	return b.String(), exported
}

// Rule: wherever an import of runs is interrupted, the file is sound, and no job exists without
// its run; the same import continues, with and without kept IDs, and finally every run reaches
// its correct end.
func TestImportOfRunsCutOff(t *testing.T) {
	race.SkipLone(t)
	var export string
	synctest.Test(t, func(t *testing.T) { export, _ = exportOfRuns(t, nil) })
	for _, keep := range []bool{true, false} {
		n := 0
		for through := false; !through; n++ {
			synctest.Test(t, func(t *testing.T) { through = cutOff(t, export, keep, n) })
		}
		require.GreaterOrEqual(t, n, 5, "the large run comes in several changes")
	}
}

// cutOff interrupts an import before a change, and imports again; through reports that the import
// was interrupted after its last change.
func cutOff(t *testing.T, export string, keep bool, n int) (through bool) {
	to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
	to.open("")
	opts := &ImportOptions{KeepIDs: keep, SkipExisting: true}
	_, err := Import(context.Background(), &cutShort{Admin: Of(to.q), left: n}, strings.NewReader(export), opts)
	if through = err == nil; !through {
		require.ErrorIs(t, err, errWatched)
	}
	to.close() // this requires that it is sound
	to.open("")
	for _, e := range jobsIn(t, to.q) {
		_, err := workflow.Read(to.q).Info(context.Background(), e.ID)
		require.NoError(t, err, "the run of a job")
	}
	_, err = Import(context.Background(), Of(to.q), strings.NewReader(export), opts)
	require.NoError(t, err)
	to.close()
	to.toTheEnd()
	return through
}

// Rule: the rows of an interrupted import are removed after some days if the rest does not
// arrive.
func TestImportOfRunsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		export, _ := exportOfRuns(t, nil)
		to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
		to.open("1")
		var parts []*workflow.Rows
		for _, line := range runLines(export) {
			l, err := readLine([]byte(line), false)
			require.NoError(t, err)
			if !l.Run.Last {
				parts = append(parts, l.Run.part())
			}
		}
		require.NotEmpty(t, parts)
		w := Of(to.q).Workflows()
		require.NoError(t, w.RestoreRows(context.Background(), parts[0]))
		require.Empty(t, to.statuses(), "it is no run")
		require.ErrorIs(t, w.RestoreRows(context.Background(), parts[2], lastOf(t, export)), workflow.ErrConflict, "one between them is missing")
		<-time.After(5 * 24 * time.Hour)
		require.ErrorIs(t, w.RestoreRows(context.Background(), parts[1]), workflow.ErrConflict, "the part before it is gone")
		_, err := Import(context.Background(), Of(to.q), strings.NewReader(export), &ImportOptions{KeepIDs: true})
		require.NoError(t, err)
		to.close()
	})
}

// Rule: rows left by another interrupted import, from another moment, are not mixed with those
// stored now.
func TestImportOfRunsBegunByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		export, _ := exportOfRuns(t, nil)
		to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
		to.open("")
		var other *workflow.Rows
		for _, line := range runLines(export) {
			l, err := readLine([]byte(line), false)
			require.NoError(t, err)
			if !l.Run.Last && l.Run.Part == 1 {
				other = l.Run.part()
			}
		}
		for i := range 1500 { // more than are removed at once
			other.Rows = append(other.Rows, workflow.Row{In: "seen", Key: fmt.Appendf(nil, "%04d", i), Value: []byte("1")})
		}
		require.NoError(t, Of(to.q).Workflows().RestoreRows(context.Background(), other))
		to.close()
		to.open("")
		_, err := Import(context.Background(), Of(to.q), strings.NewReader(export), &ImportOptions{KeepIDs: true})
		require.NoError(t, err)
		require.ElementsMatch(t, runLines(export), runLines(exportOf(t, Of(to.q))))
		to.close()
	})
}

// Rule: a run that had ended is kept in the target exactly as long as planned.
func TestImportOfRunsThatAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		export, _ := exportOfRuns(t, nil)
		to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
		to.open("")
		_, err := Import(context.Background(), Of(to.q), strings.NewReader(export), nil)
		require.NoError(t, err)
		to.e = workflow.Open(to.q, nil)
		idle := worker.New(to.q, nil) // a worker with flows also removes runs
		require.NoError(t, to.e.Handle(context.Background(), idle, to.flows()...))
		<-time.After(6 * 24 * time.Hour)
		require.Contains(t, to.statuses(), "fail:1")
		<-time.After(2 * 24 * time.Hour)
		require.NotContains(t, to.statuses(), "fail:1")
		require.Contains(t, to.statuses(), "wait:1")
		to.close()
	})
}

// lastOf returns the last part of the largest run of an export.
func lastOf(t *testing.T, export string) *workflow.Rows {
	t.Helper()
	for _, line := range runLines(export) {
		l, err := readLine([]byte(line), false)
		require.NoError(t, err)
		if l.Run.Last && l.Run.Part > 1 {
			return l.Run.part()
		}
	}
	t.Fatal("no run has several lines")
	return nil
}

// Rule: a run whose name is taken is a conflict, and nothing is stored; or it is skipped with
// its job, as is a parent that waits for it. The others are stored, and the result counts both.
func TestImportOfRunsThatAreThere(t *testing.T) {
	race.SkipLone(t)
	synctest.Test(t, func(t *testing.T) {
		export, _ := exportOfRuns(t, nil)
		for _, keep := range []bool{true, false} {
			to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
			to.open("1")
			for _, f := range to.flows() {
				if id, taken := map[string]string{"wait": "1", "child": "1/slow"}[f.Name()]; taken {
					_, err := f.(*workflow.Flow[string, string]).Start(context.Background(), to.e, id, "own")
					require.NoError(t, err)
				}
			}
			synctest.Wait()
			opts := &ImportOptions{KeepIDs: keep}
			imported, err := Import(context.Background(), Of(to.q), strings.NewReader(export), opts)
			require.ErrorIs(t, err, pawl.ErrConflict)
			require.ErrorContains(t, err, "2 of 18 runs")
			require.Regexp(t, `line \d+: workflow (wait "1"|child "1/slow")`, err.Error())
			require.Equal(t, Imported{Version: ExportVersion, Checked: 12}, imported)
			require.Len(t, to.statuses(), 2)
			for _, dry := range []bool{true, false} {
				opts := &ImportOptions{KeepIDs: keep, SkipExisting: true, DryRun: dry}
				imported, err = Import(context.Background(), Of(to.q), strings.NewReader(export), opts)
				require.NoError(t, err)
				require.Equal(t, Imported{Version: ExportVersion, Checked: 12, Jobs: 9, Skipped: 3, Runs: 15, RunsSkipped: 3}, imported)
			}
			require.Len(t, to.statuses(), 17)
			require.NotContains(t, to.statuses(), "parent:1")
			imported, err = Import(context.Background(), Of(to.q), strings.NewReader(export), &ImportOptions{KeepIDs: keep, SkipExisting: true})
			require.NoError(t, err)
			require.EqualValues(t, 18, imported.RunsSkipped, "again there is nothing to store")
			require.Zero(t, imported.Runs+imported.Jobs)
			to.release()
			to.close()
		}
	})
}

// Rule: a job of a run that has ended in the target is not stored again.
func TestImportOfRunsThatHaveEnded(t *testing.T) {
	race.SkipLone(t)
	synctest.Test(t, func(t *testing.T) {
		export, _ := exportOfRuns(t, nil)
		for _, keep := range []bool{true, false} {
			to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
			to.release()
			to.open("1")
			_, err := Import(context.Background(), Of(to.q), strings.NewReader(export), &ImportOptions{KeepIDs: keep})
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, workflow.Done, to.statuses()["long:2"])
			imported, err := Import(context.Background(), Of(to.q), strings.NewReader(export), &ImportOptions{KeepIDs: keep, SkipExisting: true})
			require.NoError(t, err)
			require.Zero(t, imported.Jobs)
			require.EqualValues(t, 12, imported.Skipped)
			to.close()
		}
	})
}

// Rule: while an app runs, a parent may be exported as waiting for a child that has ended when
// the child is exported. The parent then continues in the target, whichever comes first, with
// the result or the error of the child.
func TestImportOfRunsOfSeveralMoments(t *testing.T) {
	for _, parentFirst := range []bool{true, false} {
		for _, cancelled := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				from := newRunsApp(t, filepath.Join(memdir.New(t), "from.db"))
				from.open("1")
				parent := from.flows()[len(from.flows())-1].(*workflow.Flow[string, string])
				_, err := parent.Start(context.Background(), from.e, "1", "p")
				require.NoError(t, err)
				synctest.Wait()
				before := familyLines(t, exportOf(t, Of(from.q)))
				if cancelled {
					require.NoError(t, from.e.Cancel(context.Background(), from.run("child:1/slow"), "too slow"))
				} else {
					require.NoError(t, runsGo.Send(context.Background(), from.e, from.run("child:1/slow"), "now", ""))
				}
				synctest.Wait()
				after := familyLines(t, exportOf(t, Of(from.q)))
				from.close()

				lines := append(append([]string(nil), before["parent"]...), append(after["child"], after["quick"]...)...)
				if !parentFirst {
					lines = append(append(append([]string(nil), after["child"]...), after["quick"]...), before["parent"]...)
				}
				to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
				to.open("1")
				_, err = Import(context.Background(), Of(to.q), strings.NewReader(exportLines(lines...)), nil)
				require.NoError(t, err)
				synctest.Wait()
				info, err := to.e.Info(context.Background(), to.run("parent:1"))
				require.NoError(t, err)
				if cancelled {
					require.Equal(t, workflow.Failed, info.Status)
					require.Contains(t, info.Error, "cancelled: too slow")
				} else {
					require.Equal(t, workflow.Done, info.Status)
				}
				to.close()
			})
		}
	}
}

// familyLines returns the lines of each flow, with those of its jobs.
func familyLines(t *testing.T, export string) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	for line := range strings.Lines(export) {
		l, err := readLine([]byte(line), true)
		line = strings.TrimSuffix(line, "\n")
		switch {
		case err != nil || l.Run == nil && l.Job == nil:
		case l.Run != nil:
			all[textOf(l.Run.Flow)] = append(all[textOf(l.Run.Flow)], line)
		default:
			flow := strings.TrimPrefix(string(l.Job.Kind), workflow.KindPrefix)
			all[flow] = append(all[flow], line)
		}
	}
	return all
}
