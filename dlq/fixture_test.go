package dlq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
)

var _ dlq.Store = (*memory.Queue)(nil)

// queue is a queue whose dead jobs these tests look after.
type queue interface {
	pawl.Queue
	dlq.Store
	dlq.Target
	Cancel(context.Context, pawl.ID) error
	Retry(context.Context, pawl.ID, bool) error
	Delete(context.Context, pawl.ID) error
}

// each runs a test with queues in memory and with queues in files; open makes one
// more of the sort.
func each(t *testing.T, test func(t *testing.T, open func() queue)) {
	t.Run("memory", func(t *testing.T) { test(t, func() queue { return inMemory(t) }) })
	t.Run("bolt", func(t *testing.T) { test(t, func() queue { return inFile(t) }) })
}

func inMemory(t *testing.T) queue {
	t.Helper()
	q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// makeDead enqueues a job and lets its first attempt be its last.
func makeDead(t *testing.T, q queue, queue, kind string) pawl.ID {
	t.Helper()
	return failDead(t, q, &pawl.Envelope{Kind: kind, Queue: queue}, pawl.ReasonExhausted, "no luck")
}

// failDead enqueues a job and lets one attempt fail for each cause.
func failDead(t *testing.T, q queue, job *pawl.Envelope, reason pawl.Reason, causes ...string) pawl.ID {
	t.Helper()
	require.NoError(t, withid.Enqueue(t.Context(), q, job))
	for i, cause := range causes {
		leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{job.Queue}, Max: 1, Wait: pawl.WaitNot})
		require.NoError(t, err)
		require.Equal(t, job.ID, leases[0].ID)
		if i < len(causes)-1 {
			require.NoError(t, q.Settle(t.Context(), leases[0].Nack(0, errors.New(cause))))
		} else {
			require.NoError(t, q.Settle(t.Context(), leases[0].Abandon(reason, errors.New(cause))))
		}
	}
	return job.ID
}

// deadAgain retries a dead job and makes it dead again.
func deadAgain(t *testing.T, q queue, id pawl.ID) {
	t.Helper()
	require.NoError(t, q.Retry(t.Context(), id, false))
	leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"mail"}, Max: 1, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Equal(t, id, leases[0].ID)
	require.NoError(t, q.Settle(t.Context(), leases[0].Abandon(pawl.ReasonExhausted, errDown)))
}

func list(t *testing.T, r dlq.Reader, f pawl.Filter) (ids []pawl.ID) {
	t.Helper()
	for job, err := range dlq.List(t.Context(), r, f) {
		require.NoError(t, err)
		require.Equal(t, pawl.Dead, job.State)
		ids = append(ids, job.ID)
	}
	return ids
}

func get(t *testing.T, r interface {
	Job(context.Context, pawl.ID) (*pawl.Envelope, error)
}, id pawl.ID) *pawl.Envelope {
	t.Helper()
	e, err := r.Job(t.Context(), id)
	require.NoError(t, err)
	return e
}

// shelf is a store of dead jobs that does as it is told.
type shelf struct {
	queue
	retry  func(pawl.ID) error // what happens in place of a retry
	delete func(pawl.ID) error
}

func (s *shelf) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	hook := s.delete
	if c.Verb == pawl.VerbRetry {
		hook = s.retry
	}
	errs := make([]error, len(ids))
	for i, id := range ids {
		if hook != nil {
			errs[i] = hook(id)
		}
		switch err := errs[i]; {
		case errors.Is(err, pawl.ErrClosed), errors.Is(err, pawl.ErrPoisoned), errors.Is(err, context.Canceled):
			return nil, err
		case err == nil:
			one, err := s.queue.Change(ctx, c, id)
			if err != nil {
				return nil, err
			}
			errs[i] = one[0]
		}
	}
	return errs, nil
}

// tomorrow is later than every death of a test.
func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

// numbered are errors that tell apart, one for each dead job.
func numbered(ids []pawl.ID) map[pawl.ID]error {
	errs := make(map[pawl.ID]error)
	for i, id := range ids {
		errs[id] = fmt.Errorf("error %d", i)
	}
	return errs
}
