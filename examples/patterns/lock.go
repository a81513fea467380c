package patterns

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// Signals between a lock and those who want it.
var (
	claim   = workflow.DefineSignal[pawl.ID]("claim") // from this run
	granted = workflow.DefineSignal[string]("granted")
	release = workflow.DefineSignal[pawl.ID]("release")
)

// Lock is a run that grants itself to one other run at a time, in the order of their claims. Its ID
// is what it locks. Engine returns the engine of the process.
//
// To keep jobs of one key apart, no lock is needed: see the limits of a queue.
func Lock(engine func() *workflow.Engine) *workflow.Flow[int, int] {
	return workflow.Define("lock", func(r *workflow.Run, grants int) (int, error) {
		holder, err := claim.Wait(r, workflow.Forever)
		if err != nil {
			return 0, err
		}
		if err := send(r, engine, "grant", granted, holder, r.ID()); err != nil {
			return 0, err
		}
		if _, err := release.Wait(r, workflow.Forever); err != nil {
			return 0, err
		}
		return 0, workflow.Restart(r, grants+1) // with an empty journal
	})
}

// Hold does one thing while it holds a lock.
func Hold(w World, engine func() *workflow.Engine, lock *workflow.Flow[int, int]) *workflow.Flow[string, string] {
	return workflow.Define("hold", func(r *workflow.Run, name string) (string, error) {
		locking, err := workflow.Step(r, "find", func(ctx context.Context) (pawl.ID, error) {
			h, err := lock.Start(ctx, engine(), name, 0) // or find it
			if err != nil {
				return pawl.ID{}, err
			}
			return h.Run(), nil
		})
		if err != nil {
			return "", err
		}
		if err := send(r, engine, "claim", claim, locking, r.Run()); err != nil {
			return "", err
		}
		if _, err := granted.Wait(r, workflow.Forever); err != nil {
			return "", err
		}
		if err := do(r, w, "use "+name); err != nil {
			return "", err
		}
		return r.ID(), send(r, engine, "release", release, locking, r.Run())
	})
}

// send is a step that sends a signal to another run. The key makes the other run receive it once.
func send[T any](r *workflow.Run, engine func() *workflow.Engine, name string, s *workflow.Signal[T], to pawl.ID, value T) error {
	_, err := workflow.Step(r, name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Send(ctx, engine(), to, value, r.Key())
	})
	return err
}
