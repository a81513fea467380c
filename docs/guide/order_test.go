package guide

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

func ordered(path string) (*bolt.Queue, error) {
	q, err := bolt.Open(path, &bolt.Options{Limits: map[string]pawl.Limits{"deliveries": {InOrder: pawl.OrderHold}}})
	if err != nil {
		return nil, err
	}
	return q, pawl.Require(q, pawl.LimitKeys|pawl.OrderedKeys)
}

func release(ctx context.Context, q *bolt.Queue, queue, key string) error {
	k, err := q.Key(ctx, queue, key)
	if err != nil || !k.Held {
		return err
	}
	errs, err := q.Change(ctx, pawl.Change{Verb: pawl.VerbReleaseKey}, k.Head)
	return errors.Join(append(errs, err)...)
}

// Rule: a dead job holds its key until the program of the page releases it.
func TestOrderedKeyIsReleased(t *testing.T) {
	q, err := ordered(filepath.Join(t.TempDir(), "jobs.db"))
	require.NoError(t, err)
	defer q.Close()
	w := worker.New(q, &worker.Options{Queues: []string{"deliveries"}, Logger: hclog.NewNullLogger()})
	var ran []string
	worker.Handle(w, Sync, func(_ context.Context, job *pawl.Job[SyncArgs]) error {
		ran = append(ran, job.Args.Folder)
		if len(ran) == 1 {
			return pawl.Permanent(errors.New("it is gone"))
		}
		return nil
	})
	for _, folder := range []string{"first", "second"} {
		_, err := Sync.Enqueue(t.Context(), q, SyncArgs{folder}, pawl.OnQueue("deliveries"), pawl.Key("ada"))
		require.NoError(t, err)
	}
	require.NoError(t, w.ProcessOnce(t.Context()))
	require.ErrorIs(t, w.ProcessOnce(t.Context()), pawl.ErrEmpty)
	require.NoError(t, release(t.Context(), q, "deliveries", "ada"))
	require.NoError(t, w.ProcessOnce(t.Context()))
	require.Equal(t, []string{"first", "second"}, ran)
}
