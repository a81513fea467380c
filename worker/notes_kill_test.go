package worker_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
)

// Rule: after kill -9 the log of the attempt is there up to its last second, and stays when the job runs again.
//
// A kill leaves what was written to the file. The test copies the file while the handler runs, at some times, and
// opens each copy.
func TestLogOfAKilledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, path := open(t)
		w := newWorker(q, worker.Options{Concurrency: 1})
		worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
			log := pawl.Log(ctx)
			for n := 1; n <= 80; n++ { // 8 s
				time.Sleep(100 * time.Millisecond)
				log.Info("row", "n", n)
			}
			return nil
		})
		stored, err := task.Enqueue(t.Context(), q, "job")
		require.NoError(t, err)
		began := time.Now()
		stop := start(t, w)
		for range 5 {
			time.Sleep(1350 * time.Millisecond)
			synctest.Wait()
			copied := filepath.Join(memdir.New(t), "jobs.db")
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(copied, content, 0o600))

			after := reopen(t, copied)
			job, err := after.Job(t.Context(), stored.ID)
			require.NoError(t, err)
			require.Equal(t, pawl.Ready, job.State)
			require.Equal(t, 1, job.Crashes)
			due := int(time.Since(began)/(100*time.Millisecond)) - 11 // logged more than a second ago, by the interval of a store
			lastLine := func() string {
				logs, _ := notesOf(t, after, stored.ID)
				require.NotEmpty(t, logs)
				lines := strings.SplitAfter(logs[0].Head+logs[0].Tail, "\n")
				return lines[len(lines)-2]
			}
			last := lastLine()
			_, text, found := strings.Cut(strings.TrimSpace(last), "msg=row n=")
			require.True(t, found, last)
			require.GreaterOrEqual(t, number(t, text), due)

			again := newWorker(after, worker.Options{Concurrency: 1})
			worker.Handle(again, task, func(ctx context.Context, _ *pawl.Job[string]) error {
				pawl.Log(ctx).Info("again")
				return pawl.Permanent(errBroken)
			})
			require.NoError(t, again.Drain(t.Context(), pawl.WaitFinished))
			logs, _ := notesOf(t, after, stored.ID)
			require.Len(t, logs, 2)
			require.Equal(t, last, lastLine())
			require.Contains(t, logs[1].Head, "msg=again\n")
		}
		require.NoError(t, stop())
	})
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
