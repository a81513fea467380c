package workflow_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: the progress of the job of a run names the steps that have run for a second, also those of branches and of
// transactions, from at most a second later until they end. Short steps store nothing.
func TestStepsAtWork(t *testing.T) {
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer q.Close()
		step := func(r *workflow.Run, name string, d time.Duration) error {
			_, err := workflow.Step(r, name, func(context.Context) (int, error) {
				time.Sleep(d)
				return 0, nil
			})
			return err
		}
		flow := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			if err := step(r, "short", time.Second-1); err != nil {
				return 0, err
			}
			b := workflow.Go(r, "b", func(r *workflow.Run) (int, error) { return 0, step(r, "long", time.Minute) })
			if err := step(r, "longer", time.Hour); err != nil {
				return 0, err
			}
			if _, err := b.Wait(r); err != nil {
				return 0, err
			}
			return 0, step(r, "last", time.Second-1) // the run ends after the note of "longer" was replaced
		})
		e := workflow.Open(q, nil)
		w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, e.Handle(t.Context(), w, flow))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		began := time.Now()
		h, err := flow.Start(t.Context(), e, "1", 0)
		require.NoError(t, err)

		for _, each := range []struct {
			at   time.Duration // since began
			none bool          // nothing is noted
			want []string      // steps of the progress
		}{
			{at: time.Second, none: true},
			{at: 1500 * time.Millisecond, none: true},
			{at: 4 * time.Second, want: []string{"b/long", "longer"}},
			{at: time.Minute, want: []string{"b/long", "longer"}},
			{at: time.Minute + 4*time.Second, want: []string{"longer"}},
			{at: time.Hour, want: []string{"longer"}},
			{at: time.Hour + 1500*time.Millisecond},
		} {
			time.Sleep(time.Until(began.Add(each.at)))
			synctest.Wait()
			all, err := driver.NotesOf(q).ReadProgress(t.Context(), h.Run())
			require.NoError(t, err)
			noted, ok := all[h.Run()]
			require.Equal(t, each.none, !ok, "after %s: %s", each.at, noted)
			if each.none {
				continue
			}
			var steps []string
			for text := range strings.SplitSeq(noted.Text, ", ") {
				if step, _ := strings.CutSuffix(text, " since 2000-01-01T00:00:00Z"); step != "" {
					steps = append(steps, step)
				}
			}
			require.ElementsMatch(t, each.want, steps, "after %s", each.at)
			require.Equal(t, len(each.want) == 0, noted.Done > 0)
		}
		_, err = h.Result(t.Context())
		require.NoError(t, err)
		stop()
		require.NoError(t, <-ended)
	})
}
