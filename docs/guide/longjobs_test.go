package guide

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

type (
	File struct {
		Path  string
		Lines int
	}
	Position struct{ Line int }
)

var ImportFile = pawl.Define[File]("import", pawl.MaxRetries(5))

// handleImport registers the handler of the guide.
func handleImport(w *worker.Worker, importLines func(ctx context.Context, path string, from, n int) error) {
	worker.Handle(w, ImportFile, func(ctx context.Context, job *pawl.Job[File]) error {
		var at Position
		if _, err := job.LoadCursor(&at); err != nil {
			return err
		}
		for at.Line < job.Args.Lines {
			if err := importLines(ctx, job.Args.Path, at.Line, 1000); err != nil {
				return err
			}
			at.Line += 1000
			if err := job.SaveCursor(ctx, at); err != nil {
				return err
			}
		}
		return nil
	})
}

var ImportRows = pawl.Define[[]string]("import-rows", pawl.MaxRetries(0))

// handleRows registers the handler of the guide that notes its progress.
func handleRows(w *worker.Worker, importRow func(row string) error) {
	worker.Handle(w, ImportRows, func(ctx context.Context, job *pawl.Job[[]string]) error {
		log := pawl.Log(ctx)
		for n, row := range job.Args {
			if err := importRow(row); err != nil {
				log.Warn("row was skipped", "row", n, "error", err)
			}
			job.Progress(int64(n+1), int64(len(job.Args)), row)
		}
		return errors.New("to keep the record")
	})
}

// Rule: the guide's handler leaves its log.
func TestLongJobWithALog(t *testing.T) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	handleRows(w, func(row string) error {
		if row == "b" {
			return errors.New("no comma")
		}
		return nil
	})
	stored, err := ImportRows.Enqueue(t.Context(), q, []string{"a", "b", "c"})
	require.NoError(t, err)
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	logs, err := driver.NotesOf(q).ReadLogs(t.Context(), stored.ID)
	require.NoError(t, err)
	require.Len(t, logs, 1)
	require.Contains(t, logs[0].Head, `level=WARN msg="row was skipped" row=1 error="no comma"`)
}

// Rule: the guide's import goes on where its last run got.
func TestLongJob(t *testing.T) {
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	defer q.Close()
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger(), Policy: pawl.Fixed(0)})
	var portions []int
	failed := false
	handleImport(w, func(_ context.Context, _ string, from, _ int) error {
		if from == 2000 && !failed {
			failed = true
			return errors.New("connection lost")
		}
		portions = append(portions, from)
		return nil
	})
	_, err := ImportFile.Enqueue(t.Context(), q, File{"customers.csv", 4000})
	require.NoError(t, err)
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	require.Equal(t, []int{0, 1000, 2000, 3000}, portions)
}
