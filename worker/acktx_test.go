package worker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

var errRolledBack = errors.New("rolled back")

// A handler that acks its job in the transaction of its effect has both effect and
// ack, or neither: if the transaction commits, its error changes nothing; if it does
// not, its return value decides as usual.
func TestAckTx(t *testing.T) {
	for _, c := range []struct {
		rule    string
		commits bool
		returns error
		check   func(t *testing.T, q finder, id pawl.ID)
		warns   bool
	}{
		{"committed, and nil", true, nil, requireDone, false},
		{"committed, and an error, which is logged", true, errBroken, requireDone, true},
		{"rolled back, and an error: a failed attempt", false, errBroken,
			func(t *testing.T, q finder, id pawl.ID) { requireDead(t, q, id, pawl.ReasonExhausted, 1) }, false},
		{"rolled back, and nil: acked without the effect", false, nil, requireDone, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *bolt.Queue) {
				var log logbook
				bucket := []byte("app")
				w := newWorker(q, worker.Options{Logger: log.logger()})
				worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
					err := q.Update(ctx, func(tx *bbolt.Tx) error {
						b, err := tx.CreateBucketIfNotExists(bucket)
						if err != nil {
							return err
						}
						if err := b.Put([]byte(job.Args), []byte("done")); err != nil {
							return err
						}
						if err := q.AckTx(tx, job.Lease); err != nil || c.commits {
							return err
						}
						return errRolledBack
					})
					if !c.commits {
						assert.ErrorIs(t, err, errRolledBack)
						err = nil
					}
					return errors.Join(err, c.returns)
				})
				id := enqueue(t, q, "a", pawl.MaxRetries(0))
				require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
				c.check(t, q, id)
				require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
					require.Equal(t, c.commits, tx.Bucket(bucket) != nil, "the effect")
					return nil
				}))
				if c.warns {
					require.Contains(t, log.String(), errBroken.Error())
				} else {
					require.Empty(t, log.String())
				}
			})
		})
	}
}

// The transaction of a handler that was given up before it does not commit: the job is
// no longer its own.
func TestAckTxTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		stuck, letGo := gate(t)
		result := make(chan error, 1)
		w := newWorker(q, worker.Options{StuckGrace: 1})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			<-stuck
			err := q.Update(context.Background(), func(tx *bbolt.Tx) error { return q.AckTx(tx, job.Lease) })
			result <- err
			return err
		})
		id := enqueue(t, q, "a", pawl.Timeout(1), pawl.MaxRetries(0))
		require.NoError(t, w.ProcessOnce(t.Context()))
		letGo()
		require.ErrorIs(t, <-result, pawl.ErrLeaseLost)
		requireDead(t, q, id, pawl.ReasonExhausted, 1)
	})
}
