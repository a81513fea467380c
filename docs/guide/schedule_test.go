package guide

import (
	"context"
	"errors"
	"log"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/pawltest"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

type ReportArgs struct{ Full bool }

var (
	SendReport = pawl.Define[ReportArgs]("report")
	Vacuum     = pawl.Define[struct{}]("vacuum")
)

var (
	Settle = workflow.Define("settle", func(r *workflow.Run, _ struct{}) (int, error) {
		tick, ok := schedule.TickOfRun(r.ID())
		if !ok || tick.Manual {
			return 0, errors.New("started by hand: no period to settle")
		}
		return settle(r, tick.Nominal.Add(-15*time.Minute), tick.Nominal)
	})
)

func settle(_ *workflow.Run, from, to time.Time) (int, error) { return int(to.Sub(from)), nil }

// report is the handler of the page.
func report(_ context.Context, job *pawl.Job[ReportArgs]) error {
	tick, ok := schedule.TickOf(job.Envelope)
	if ok && tick.Missed > 0 {
		log.Printf("%d reports were missed before this one", tick.Missed)
	}
	return write(tick.Nominal, job.Args.Full)
}

func write(time.Time, bool) error { return nil }

func synced(ctx context.Context, q pawl.Queue) (*schedule.Scheduler, error) {
	s, err := schedule.Open(q, nil)
	if err != nil {
		return nil, err
	}
	err = s.Sync(ctx,
		schedule.Job("nightly", "30 2 * * MON-FRI", SendReport, ReportArgs{Full: true}, schedule.In("Europe/Berlin")),
		schedule.Job("vacuum", "H H(1-5) * * *", Vacuum, struct{}{}, schedule.Spread(10*time.Minute)),
		schedule.Flow("settle", "@every 15m", Settle, struct{}{}),
	)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Rule: the program of the page fires what its operator asks for.
func TestSchedules(t *testing.T) {
	q, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	s, err := synced(t.Context(), q)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, operate(t.Context(), s))
	require.NoError(t, newReporter(q).Drain(t.Context(), pawl.WaitDrained))
	history, err := s.History(t.Context(), "nightly", 0)
	require.NoError(t, err)
	require.Equal(t, schedule.Fired, history[0].Decision)
}

// newReporter returns the worker of the page about tests.
func newReporter(q pawl.Queue) *worker.Worker {
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	worker.Handle(w, SendReport, report)
	return w
}

// Rule: a schedule fires in a bubble of synctest at each of its times.
func TestSchedulesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := pawltest.New(t, nil)
		s, err := synced(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		go newReporter(q).Run(t.Context())
		time.Sleep(7 * 24 * time.Hour) // a week in no time
		synctest.Wait()
		if reports := pawltest.Enqueued(t, q, SendReport); len(reports) != 5 {
			t.Errorf("%d reports in a week", len(reports))
		}
	})
}

func operate(ctx context.Context, s *schedule.Scheduler) error {
	if err := s.Pause(ctx, "nightly", "the printer is broken"); err != nil {
		return err
	}
	if err := s.Resume(ctx, "nightly", schedule.CatchUpPaused); err != nil {
		return err
	}
	_, err := s.Trigger(ctx, "nightly")
	return err
}
