package worker_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// ring makes a keyring with one key.
func ring(t *testing.T, id string, secret byte) *pawl.Keyring {
	t.Helper()
	k, err := pawl.NewKeyring(id, map[string][]byte{id: bytes.Repeat([]byte{secret}, pawl.MinSecretBytes)})
	require.NoError(t, err)
	return k
}

// If signatures are required, a job runs if its signature verifies. Otherwise it is
// dead immediately, with a line in the log: no attempt counts, and neither middleware
// nor handler see it.
func TestVerify(t *testing.T) {
	ours := ring(t, "ours", 1)
	for _, c := range []struct {
		rule  string
		spoil func(e *pawl.Envelope) error
		cause string // "" when it runs
	}{
		{rule: "a good signature runs", spoil: ours.Sign},
		{rule: "none does not", spoil: func(*pawl.Envelope) error { return nil }, cause: "not signed"},
		{rule: "nor one by a key that is not known", spoil: ring(t, "theirs", 1).Sign, cause: "theirs"},
		{rule: "nor one by another secret of that name", spoil: ring(t, "ours", 2).Sign, cause: "does not match"},
		{rule: "nor one of other arguments", spoil: func(e *pawl.Envelope) error {
			err := ours.Sign(e)
			e.Payload = []byte{0xa1, 'x'}
			return err
		}, cause: "does not match"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
				var log logbook
				var walk []string
				w := newWorker(q, worker.Options{
					Verify: ours, Logger: log.logger(), Middleware: []worker.Middleware{naming("m", &walk)},
				})
				worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { walk = append(walk, "task"); return nil })
				e, err := task.Envelope("a")
				require.NoError(t, err)
				require.NoError(t, c.spoil(e))
				require.NoError(t, withid.Enqueue(t.Context(), q, e))
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))

				if c.cause == "" {
					require.Equal(t, []string{"m in", "task", "m out"}, walk)
					requireDone(t, q, e.ID)
					require.Empty(t, log.String())
					return
				}
				require.Empty(t, walk)
				requireDead(t, q, e.ID, pawl.ReasonSignature, 0)
				require.Contains(t, stored(t, q, e.ID).History[0].Error, c.cause)
				for _, text := range []string{"[ERROR]", c.cause, e.ID.String()} {
					require.Contains(t, log.String(), text)
				}
				died := emitted.of(pawl.EventDied)
				require.Len(t, died, 1)
				require.Zero(t, died[0].Took, "nothing ran")
			})
		})
	}
}

// The signature is checked before the payload is decoded: arguments that do not
// decode are no separate reason.
func TestVerifyBeforeDecoding(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		id := enqueue(t, q, "no number")
		w := newWorker(q, worker.Options{Verify: ring(t, "ours", 1)})
		worker.Handle(w, pawl.Define[int]("task"), func(context.Context, *pawl.Job[int]) error { return nil })
		require.NoError(t, w.ProcessOnce(t.Context()))
		requireDead(t, q, id, pawl.ReasonSignature, 0)
	})
}

// A job that was retried and delayed still verifies, and one bad job delays no other.
func TestVerifyAmongOthers(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		ours := ring(t, "ours", 1)
		forged := enqueue(t, q, "forged")
		signed, err := task.Enqueue(t.Context(), ours.Signing(q), "signed")
		require.NoError(t, err)
		r := handleAll(t, q, worker.Options{Verify: ours}, func(job *pawl.Job[string]) error {
			if job.Attempt == 1 {
				return errBroken
			}
			return nil
		})
		require.Equal(t, []time.Duration{0, 5 * time.Second}, r.at)
		requireDone(t, q, signed.ID)
		requireDead(t, q, forged, pawl.ReasonSignature, 0)
	})
}

// A handler that itself finds a bad signature has failed like any other.
func TestHandlerFindsBadSignature(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		id := enqueue(t, q, "a", pawl.MaxRetries(0))
		handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error { return pawl.ErrSignature })
		requireDead(t, q, id, pawl.ReasonExhausted, 1)
	})
}

// Rule: every job of a fetch is verified, also the jobs after a forged one.
func TestVerifyEachOfAFetch(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		var forged []pawl.ID
		for range 4 {
			forged = append(forged, enqueue(t, q, "forged"))
		}
		w := newWorker(q, worker.Options{Verify: ring(t, "ours", 1), Concurrency: len(forged)})
		worker.Handle(w, task, func(context.Context, *pawl.Job[string]) error { return errBroken })
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		for _, id := range forged {
			requireDead(t, q, id, pawl.ReasonSignature, 0)
		}
	})
}
