package memory_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
)

// Rule: a call whose context ends while it waits for a mutation is not accepted.
func TestContextEndsBesideAMutation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		rest, done := make(chan struct{}), make(chan error)
		go func() {
			done <- q.Mutate(t.Context(), mutation{check: func(driver.Ops) error { <-rest; return nil }}, 0)
		}()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := q.Enqueue(ctx, &pawl.Envelope{Kind: "k"})
		require.ErrorIs(t, err, pawl.ErrNotAccepted)
		_, err = q.Stats(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		close(rest)
		require.NoError(t, <-done)
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Empty(t, stats.Queues)

		require.NoError(t, q.Close())
		require.NoError(t, q.Close())
		<-q.Done()
		require.ErrorIs(t, q.Mutate(t.Context(), mutation{}, 0), pawl.ErrClosed)
		require.ErrorIs(t, q.ViewRows(t.Context(), func(driver.Reader) error { return nil }), pawl.ErrClosed)
	})
}

// Rule: rows are copies. Whoever changes a key or a value after Put changes nothing in the queue, and
// what a reader has seen stays.
func TestRowsAreCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		table := driver.NewSpace("test").Table("rows")
		key, value := []byte("key"), []byte("value")
		put := func(w driver.Writer) error { return w.Put(table, key, value) }
		require.NoError(t, q.Mutate(t.Context(), mutation{apply: put}, 0))
		key[0], value[0] = 'x', 'x'
		require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error {
			before, err := r.Get(table, []byte("key"))
			require.NoError(t, err)
			require.Equal(t, "value", string(before))
			remove := func(w driver.Writer) error { return w.Delete(table, []byte("key")) }
			require.NoError(t, q.Mutate(t.Context(), mutation{apply: remove}, 0), "a view does not hold up the queue")
			again, err := r.Get(table, []byte("key"))
			require.NoError(t, err)
			require.Equal(t, before, again)
			return nil
		}))
	})
}
