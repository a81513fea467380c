package admin

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// staged is an Admin of a running app that acts before each job is stored. The jobs are stored
// one by one, the newest first.
type staged struct {
	Admin
	before func()
}

func (s *staged) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if err := s.Admin.Restore(ctx, nil, effects); err != nil {
		return err
	}
	for i := range jobs {
		s.before()
		if err := s.Admin.Restore(ctx, jobs[len(jobs)-1-i:][:1], nil); err != nil {
			return err
		}
	}
	return nil
}

// Rule: what a run waits for may arrive at a running app when the rows of the run are there and
// its job is not: a signal, or the end of a faster child. The run continues anyway.
func TestImportOfRunsIntoAnAppThatWorks(t *testing.T) {
	for _, keep := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			export, _ := exportOfRuns(t, nil)
			to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
			to.release()
			to.open("3")
			sent := false
			target := &staged{Admin: Of(to.q), before: func() {
				for _, id := range []string{"wait:1", "wait:told", "race:1", "child:1/slow", "large:1"} {
					if !sent {
						require.NoError(t, runsGo.Send(context.Background(), to.e, to.run(id), "now", ""))
					}
				}
				sent = true
				synctest.Wait()
			}}
			_, err := Import(context.Background(), target, strings.NewReader(export), &ImportOptions{KeepIDs: keep})
			require.NoError(t, err)
			synctest.Wait()
			statuses := to.statuses()
			for _, id := range []string{"wait:1", "wait:told", "race:1", "child:1/slow", "large:1", "parent:1"} {
				require.Equal(t, workflow.Done, statuses[id], id)
			}
			to.close()
		})
	}
}

// Rule: a parent that is imported later than its child, which was exported alone, learns of the
// child's end, with and without kept IDs.
func TestImportOfAParentBehindItsChild(t *testing.T) {
	for _, keep := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			from := everyRun(t)
			to := newRunsApp(t, filepath.Join(memdir.New(t), "to.db"))
			to.open("3")
			for _, flow := range []string{"child", "parent"} {
				var b bytes.Buffer
				_, err := Export(context.Background(), Of(from.q), &b, &ExportOptions{Filter: Filter{Filter: pawl.Filter{Kind: workflow.KindPrefix + flow}}})
				require.NoError(t, err)
				_, err = Import(context.Background(), Of(to.q), bytes.NewReader(b.Bytes()), &ImportOptions{KeepIDs: keep, SkipExisting: true})
				require.NoError(t, err)
			}
			from.release()
			synctest.Wait()
			from.close()
			require.NoError(t, runsGo.Send(context.Background(), to.e, to.run("child:1/slow"), "now", ""))
			synctest.Wait()
			require.Equal(t, workflow.Done, to.statuses()["parent:1"])
			to.close()
		})
	}
}

// listsOld is an Admin whose lists show an earlier moment.
type listsOld struct {
	Admin
	page Page
}

func (l *listsOld) List(context.Context, Query) (Page, error) { return l.page, nil }

// Rule: the job of a run that has ended and was removed while the jobs were read is not exported
// alone: an import would turn it into a dead job.
func TestExportOfARunThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := newRunsApp(t, filepath.Join(memdir.New(t), "from.db"))
		from.open("1")
		for _, f := range from.flows() {
			if f.Name() == "wait" {
				_, err := f.(*workflow.Flow[string, string]).Start(context.Background(), from.e, "1", "")
				require.NoError(t, err)
			}
		}
		synctest.Wait()
		page, err := Of(from.q).List(context.Background(), Query{Detail: Whole})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
		require.NoError(t, from.e.Terminate(context.Background(), from.run("wait:1"), ""))
		synctest.Wait()
		old := &listsOld{Of(from.q), page}
		var b bytes.Buffer
		exported, err := Export(context.Background(), old, &b, nil)
		require.NoError(t, err)
		require.Equal(t, Exported{Queues: 1, Runs: 1}, exported, "it has ended")
		_, err = from.e.Prune(context.Background(), time.Now().Add(time.Hour), nil)
		require.NoError(t, err)
		exported, err = Export(context.Background(), old, &b, nil)
		require.NoError(t, err)
		require.Equal(t, Exported{Queues: 1}, exported)
		from.close()
	})
}
