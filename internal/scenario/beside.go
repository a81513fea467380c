package scenario

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// foreign is the queue as another process has it: its engines hear nothing of those of the kit.
type foreign struct{ Queue }

// Abilities implements driver.Able.
func (s *foreign) Abilities() pawl.Ability { return s.Queue.Abilities() | pawl.Shared }

// Rule: over a store that processes share, a run that is active hears of signals and requests of
// another process within seconds, and a waiter hears of the end of a run.
func (suite) BesideAnotherProcess(t *testing.T, k *kit) {
	f := workflow.Define("busy", func(r *workflow.Run, _ int) (int, error) {
		busy := workflow.Go(r, "busy", func(r *workflow.Run) (int, error) {
			return workflow.Step(r, "long", func(ctx context.Context) (int, error) {
				k.at("long")
				return 1, nil
			})
		})
		noticed := workflow.Go(r, "noticed", func(r *workflow.Run) (int, error) {
			n, err := proceed.Wait(r, workflow.Forever)
			k.called("noticed")
			return n, err
		})
		all, err := workflow.All(r, busy, noticed)
		if err != nil {
			return 0, err
		}
		return all[0] + all[1], nil
	})
	k.slots = -1
	k.open(f)
	far := workflow.Open(&foreign{k.q}, &workflow.Options{Build: "1", Codec: k.codec, Logger: hclog.NewNullLogger()})
	ctx, stop := context.WithCancel(t.Context())
	w := worker.New(k.q, &worker.Options{Concurrency: 1, Drain: 1, Logger: hclog.NewNullLogger()})
	require.NoError(t, far.Handle(ctx, w, f))
	gone := make(chan error)
	go func() { gone <- w.Run(ctx) }()
	long := k.gate("long")
	h := start(k, f, "1", 0)
	<-long.reached
	k.settle()

	require.NoError(t, proceed.Send(t.Context(), k.e, h.Run(), 6, ""))
	k.settle()
	require.Zero(t, k.calls("noticed"), "the run is in another process")
	k.pass(10 * time.Second)
	require.Equal(t, 1, k.calls("noticed"))

	near, err := f.Handle(t.Context(), workflow.Open(&foreign{k.q}, &workflow.Options{Codec: k.codec}), "1")
	require.NoError(t, err)
	waited := make(chan int, 1)
	go func() {
		out, err := near.Result(context.Background())
		if err != nil {
			t.Errorf("result: %v", err)
		}
		waited <- out
	}()
	k.settle()
	close(long.open)
	k.pass(time.Second)
	select {
	case out := <-waited:
		require.Equal(t, 7, out)
	default:
		t.Error("it waits still, though the run has ended")
	}
	stop()
	<-gone
}
