package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// A policy that panics does not end the process, although no handler can recover
// that panic. The default strategy decides instead.
func TestPolicyThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		w := newWorker(q, worker.Options{Policy: panicky{}})
		runs := 0
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error {
			if runs++; runs == 1 {
				return errBroken
			}
			return nil
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, 2, runs)
		requireDone(t, q, id)
	})
}

type panicky struct{}

func (panicky) Delay(pawl.Retry) (time.Duration, bool) { panic("no policy") }

// What a handler does to its job changes nothing about the decision.
func TestHandlerChangesItsJob(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		id := enqueue(t, q, "a")
		w := newWorker(q, worker.Options{})
		runs := 0
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			runs++
			job.MaxRetries, job.ID, job.Envelope.Attempts = 0, pawl.ID{}, 99
			if runs == 1 {
				return errBroken
			}
			return nil
		})
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Equal(t, 2, runs)
		requireDone(t, q, id)
	})
}
