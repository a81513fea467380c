package guide

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type (
	Import struct{ File string }
	Row    struct {
		File string
		N    int
	}
)

var (
	ImportRow = pawl.Define[Row]("import.row")
	Summary   = pawl.Define[Import]("import.summary")
)

// importFile enqueues a job for each row of a file, and one for the end.
func importFile(ctx context.Context, q *memory.Queue, file string, rows int) error {
	summary, err := Summary.Envelope(Import{File: file})
	if err != nil {
		return err
	}
	if err := group.Make(ctx, q, group.Group{Name: file, Done: summary}); err != nil {
		return err
	}
	for n := range rows {
		if _, err := ImportRow.Enqueue(ctx, q, Row{File: file, N: n}, pawl.InGroup(file)); err != nil {
			return err
		}
	}
	return group.Close(ctx, q, file)
}

// printImport prints how far an import is.
func printImport(ctx context.Context, q *memory.Queue, file string) error {
	s, err := group.Get(ctx, q, file)
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d rows, %d failed\n", s.Succeeded, s.Total, s.Dead)
	return nil
}

// Rule: the summary of the guide runs once, after all rows.
func TestGroups(t *testing.T) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	require.NoError(t, importFile(t.Context(), q, "rows.csv", 20))
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, ImportRow, func(context.Context, *pawl.Job[Row]) error { return nil })
	summaries := 0
	worker.Handle(w, Summary, func(ctx context.Context, job *pawl.Job[Import]) error {
		summaries++
		s, err := group.Get(ctx, q, job.Args.File)
		require.NoError(t, err)
		require.Equal(t, 20, s.Succeeded)
		return nil
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	require.Equal(t, 1, summaries)
	require.NoError(t, printImport(t.Context(), q, "rows.csv"))
}

var (
	Measure = pawl.DefineTask[Row, int]("import.measure")
	Sum     = pawl.DefineTask[Import, int]("import.sum")
)

// sumOf waits for the result of the callback of a group.
func sumOf(ctx context.Context, q *memory.Queue, file string) (int, error) {
	s, err := group.Get(ctx, q, file)
	if err != nil {
		return 0, err
	}
	return Sum.Wait(ctx, q, s.Done.ID)
}

// Rule: the callback of the page collects the results of all members.
func TestResultsOfMembers(t *testing.T) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	sum, err := Sum.Envelope(Import{File: "rows.csv"})
	require.NoError(t, err)
	require.NoError(t, group.Make(t.Context(), q, group.Group{Name: "rows.csv", Done: sum}))
	for n := range 5 {
		_, err := Measure.Enqueue(t.Context(), q, Row{File: "rows.csv", N: n}, pawl.InGroup("rows.csv"), pawl.MaxRetries(0))
		require.NoError(t, err)
	}
	require.NoError(t, group.Close(t.Context(), q, "rows.csv"))
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.HandleTask(w, Measure, func(_ context.Context, job *pawl.Job[Row]) (int, error) {
		if job.Args.N == 0 {
			return 0, errors.New("it cannot be measured")
		}
		return 10 * job.Args.N, nil
	})
	worker.HandleTask(w, Sum, func(ctx context.Context, job *pawl.Job[Import]) (int, error) {
		sum := 0
		for member, err := range q.Jobs(ctx, pawl.Filter{Group: job.Args.File, State: pawl.Completed}) {
			if err != nil {
				return 0, err
			}
			n, err := Measure.ResultOf(member)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	})
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	got, err := sumOf(t.Context(), q, "rows.csv")
	require.NoError(t, err)
	require.Equal(t, 100, got)
}

// Publish is the kind of a job that waits for others.
var Publish = pawl.Define[string]("publish")

func publishAfter(ctx context.Context, q pawl.Queue, site string, build, test pawl.ID) error {
	publish, err := Publish.Enqueue(ctx, q, site, pawl.After(build, test))
	if err != nil {
		return err
	}
	fmt.Println(publish)
	return nil
}

// Rule: the job of the page waits for both jobs that it names.
func TestJobAfterOthers(t *testing.T) {
	q := memory.New(nil)
	defer q.Close()
	before, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "build"}, &pawl.Envelope{Kind: "test"})
	require.NoError(t, err)
	require.NoError(t, publishAfter(t.Context(), q, "docs", before[0].ID, before[1].ID))
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, stats.Queues[0].Blocked)
}
