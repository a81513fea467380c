package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/worker"
)

// runRole works on the given file until no job is left in it, or a job has ended the process.
func runRole(args []string) error {
	q, err := Open(args[0], quiet())
	if err != nil {
		return err
	}
	w := worker.New(q, &worker.Options{Concurrency: 8, Logger: quiet().Logger})
	worker.Handle(w, pawl.Define[string]("bystander"), func(ctx context.Context, _ *pawl.Job[string]) error {
		ctx, end := context.WithTimeout(ctx, 5*time.Millisecond)
		defer end()
		<-ctx.Done()
		return nil
	})
	worker.Handle(w, pawl.Define[string]("killer"), func(_ context.Context, job *pawl.Job[string]) error {
		kills.Say("killed")
		if job.Args == "exit" {
			os.Exit(3)
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := self.Kill(); err != nil {
			return err
		}
		select {}
	})
	return errors.Join(w.Drain(context.Background(), pawl.WaitFinished), q.Close())
}

// A job that crashes its process ends among the dead jobs as poison. The jobs that ran beside
// it crashed too, and none of them dies.
func TestJobThatKillsItsProcess(t *testing.T) {
	tests := []struct {
		rule, way string
		behind    int // clean jobs enqueued before it
	}{
		{"killed amid the others", "kill", 100},
		{"exits amid the others", "exit", 37},
		{"killed at the head of the queue", "kill", 0},
		{"exits behind all others", "exit", 200},
	}
	for _, test := range tests[:max(2, race.Fewer(len(tests)))] {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			q, err := Open(path, quiet())
			require.NoError(t, err)
			ctx := t.Context()
			var killer pawl.Enqueued
			for n := range 201 {
				if n == test.behind {
					killer, err = pawl.Define[string]("killer").Enqueue(ctx, q, test.way)
				} else {
					_, err = pawl.Define[string]("bystander").Enqueue(ctx, q, "")
				}
				require.NoError(t, err)
			}
			require.NoError(t, q.Close())

			runs := 0
			for done := false; !done; {
				require.LessOrEqual(t, runs, 5, "the killer runs on and on")
				c := kills.Start(t, "run", path)
				runs += len(c.Rest())
				done = c.Cmd.ProcessState.Success()
				require.Empty(t, c.Stderr.String())
				require.True(t, done || c.Cmd.ProcessState.ExitCode() == 3 || c.Cmd.ProcessState.ExitCode() == -1)
			}
			require.Equal(t, 5, runs, "the killer has five crashes")

			q = openAt(t, path, nil)
			require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue), "every bystander ran to its end")
			e := find(t, q, killer.ID)
			require.Equal(t, pawl.ReasonPoison, e.Death.Reason)
			require.Equal(t, 5, e.Crashes)
			require.Zero(t, e.Attempts)
		})
	}
}
