package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: a paused run makes no call even when its time has come. After Resume it continues at
// once, and sees what arrived meanwhile. Neither a restart nor a crash ends a pause.
func (suite) Scenario38PauseOverATimer(t *testing.T) {
	for _, name := range []string{"sleep", "backoff", "wait"} {
		sub(t, name, func(t *testing.T, k *kit) {
			attempts := 0
			f := errand(k, func(r *workflow.Run) error {
				switch name {
				case "sleep":
					return workflow.Sleep(r, "s", time.Hour)
				case "wait":
					_, err := word.Wait(r, 2*time.Hour)
					return err
				}
				_, err := workflow.Step(r, "s", func(context.Context) (int, error) {
					if attempts++; attempts == 1 {
						return 0, pawl.RetryAfter(time.Hour, errors.New("not yet"))
					}
					return 1, nil
				})
				return err
			})
			k.open(f)
			h := start(k, f, "1", 0)
			k.pass(time.Minute)
			require.NoError(t, k.e.Pause(t.Context(), h.Run()))
			require.Equal(t, workflow.Paused, k.info(h.Run()).Status)
			k.pass(30 * time.Minute)
			k.restart("1")
			k.pass(time.Hour)
			k.crash()
			if name == "wait" {
				say(k, h.Run(), "hello", "")
			}
			k.pass(10 * time.Hour)
			require.Equal(t, workflow.Paused, k.info(h.Run()).Status)
			require.Equal(t, []string{"book"}, k.effects())
			require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			k.settle()
			require.Equal(t, workflow.Done, k.info(h.Run()).Status)
			require.Equal(t, []string{"book", "tell"}, k.effects())
		})
	}
}

// Rule: if a run is paused during a step, the step is completed and the next one waits. A pause
// that ends in the meantime has no effect.
func (suite) Scenario38PauseInAStep(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		bubble(t, func(t *testing.T, k *kit) {
			f := trip(k)
			k.open(f)
			in := k.gate("in a")
			h := start(k, f, "1", 0)
			<-in.reached
			require.NoError(t, k.e.Pause(t.Context(), h.Run()))
			if resumed {
				require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			}
			close(in.open)
			k.settle()
			if !resumed {
				require.Equal(t, workflow.Paused, k.info(h.Run()).Status)
				require.Equal(t, []string{"a"}, k.effects())
				require.Equal(t, 1, k.calls("trip"))
				require.NoError(t, k.e.Resume(t.Context(), h.Run()))
				k.settle()
			}
			require.Equal(t, []string{"a", "b"}, k.effects())
			require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status)
		})
	}
}

// late is a queue whose worker receives a lease some time after it was granted.
type late struct {
	Queue
	k *kit
}

// Fetch implements pawl.Queue.
func (q late) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	leases, err := q.Queue.Fetch(ctx, r)
	if len(leases) > 0 {
		q.k.at("fetched")
	}
	return leases, err
}

// Rule: a run that is resumed while it is about to be suspended for its pause is not suspended.
func (suite) Scenario38ResumeWhileItPauses(t *testing.T, k *kit) {
	f := errand(k, func(r *workflow.Run) error { return workflow.Sleep(r, "s", time.Hour) })
	k.slots = -1
	k.open(f)
	ctx, stop := context.WithCancel(t.Context())
	w := worker.New(late{k.q, k}, &worker.Options{Concurrency: 1, Drain: 1, Logger: hclog.NewNullLogger()})
	require.NoError(t, k.e.Handle(ctx, w, f))
	gone := make(chan error)
	go func() { gone <- w.Run(ctx) }()
	h := startAndSettle(k, f, "1", 0)
	require.NoError(t, k.e.Pause(ctx, h.Run()))
	fetched := k.gate("fetched")
	k.pass(time.Hour)
	<-fetched.reached
	g := k.hold()
	resumed := make(chan error)
	go func() { resumed <- k.e.Resume(context.Background(), h.Run()) }()
	k.settle()
	close(fetched.open)
	k.settle() // it has seen the pause
	g.commit()
	require.NoError(t, <-resumed)
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	stop()
	<-gone
}
