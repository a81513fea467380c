package metrics_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a worker says how many slots are busy, a reader of workflows how many runs have each status, and a
// reader of schedules what became of their ticks and how late the next is.
func TestProducersOfTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := hclog.NewNullLogger()
		q, err := bolt.Open(filepath.Join(memdir.New(t), "jobs.db"), &bolt.Options{Logger: quiet})
		require.NoError(t, err)
		task, release := pawl.Define[string]("task"), make(chan struct{})
		approved := workflow.DefineSignal[bool]("approved")
		order := workflow.Define("order", func(r *workflow.Run, _ string) (string, error) {
			_, err := approved.Wait(r, time.Hour)
			return "", err
		})
		w := worker.New(q, &worker.Options{Logger: quiet, Concurrency: 3})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { <-release; return nil })
		e := workflow.Open(q, &workflow.Options{Logger: quiet})
		require.NoError(t, e.Handle(t.Context(), w, order))
		m := schedule.Manage(q, nil)
		require.NoError(t, m.Put(t.Context(), schedule.Job("nightly", "30 2 * * *", task, "")))

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		_, err = task.Enqueue(t.Context(), q, "")
		require.NoError(t, err)
		_, err = order.Start(t.Context(), e, "1", "")
		require.NoError(t, err)
		synctest.Wait()

		_, err = m.Trigger(t.Context(), "nightly") // nobody fires its ticks
		require.NoError(t, err)
		synctest.Wait()
		s, err := schedule.Read(q).Get(t.Context(), "nightly")
		require.NoError(t, err)
		time.Sleep(time.Until(s.Next) + time.Minute) // in the virtual time of the test
		values := samples(t, q, w, workflow.Read(q), schedule.Read(q))
		for name, want := range map[string]float64{
			"pawl_worker_slots busy": 2, "pawl_worker_slots idle": 1, "pawl_worker_slots stuck": 0,
			"pawl_workflow_runs paused": 0, "pawl_workflow_runs blocked": 0,
			"pawl_schedule_ticks_total nightly fired": 1, "pawl_schedule_ticks_total nightly missed": 0, "pawl_schedule_late_seconds nightly": 60,
		} {
			require.Equal(t, want, values[name], name)
		}
		require.Equal(t, 1.0, values["pawl_workflow_runs active"]+values["pawl_workflow_runs failed"]) // its wait may have ended

		close(release)
		stop()
		require.NoError(t, <-ended)
		require.Zero(t, samples(t, q, w)["pawl_worker_slots idle"])
		require.NoError(t, q.Close())
	})
}

// samples returns the values by the name and the labels.
func samples(t *testing.T, q metrics.Source, more ...metrics.Producer) map[string]float64 {
	t.Helper()
	families, err := metrics.Families(t.Context(), q, nil, more...)
	require.NoError(t, err)
	values := make(map[string]float64)
	for _, f := range families {
		for _, s := range f.Samples {
			name := strings.TrimSpace(f.Name + " " + strings.Join(s.Values, " "))
			values[name] = s.Value
		}
	}
	return values
}
