package worker_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
)

// Rule: while a worker runs, arguments of the kinds that it handles are checked by their types, under former
// names too; not before it starts and not after it stops.
func TestTypesOfARunningWorker(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		kind := pawl.Define[struct{ Count int }]("counted", pawl.Alias("numbered"))
		w := worker.New(q, nil)
		worker.Handle(w, kind, func(context.Context, *pawl.Job[struct{ Count int }]) error { return nil })
		fits, err := driver.EncodePayload(map[string]any{"Count": 1})
		require.NoError(t, err)
		misfit, err := driver.EncodePayload(map[string]any{"Count": "one"})
		require.NoError(t, err)
		check := func(known bool) {
			t.Helper()
			for _, name := range []string{"counted", "numbered"} {
				has, err := driver.CheckType(q, name, fits)
				require.NoError(t, err)
				require.Equal(t, known, has)
				if _, err = driver.CheckType(q, name, misfit); known {
					require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
					require.ErrorContains(t, err, "Count: ")
				}
			}
			has, err := driver.CheckType(q, "another", misfit)
			require.NoError(t, err)
			require.False(t, has)
		}
		check(false)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		check(true)
		stop()
		require.NoError(t, <-ended)
		check(false)
	})
}
