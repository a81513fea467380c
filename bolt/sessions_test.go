package bolt

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a queue is served while it has one of these: a waiting fetch, the holder of a
// lease, or a worker that declared it, however busy it is. A file that no process has
// open is not served.
func TestStatsShowWhoIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		served := func() map[string]bool {
			t.Helper()
			stats, err := q.Stats(t.Context())
			require.NoError(t, err)
			names := make(map[string]bool)
			for _, one := range stats.Queues {
				names[one.Name] = one.Served
			}
			return names
		}
		add(t, q, func(e *pawl.Envelope) { e.Queue = "a" })
		require.NoError(t, q.Pause(t.Context(), "b"))
		require.Equal(t, map[string]bool{"a": false, "b": false}, served(), "nobody fetches")

		end, endOther := q.Serving([]string{"a", "b"}, nil, nil), q.Serving([]string{"a"}, nil, nil)
		end()
		require.Equal(t, map[string]bool{"a": true, "b": false}, served(), "one of two workers has ended")
		endOther()

		l := fetch(t, q, 1, "a")[0]
		require.Equal(t, map[string]bool{"a": true, "b": false}, served(), "a lease is out")
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		require.Equal(t, map[string]bool{"a": false, "b": false}, served(), "the lease has ended")

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := q.Fetch(ctx, pawl.Request{Queues: []string{"b"}, Max: 1})
			ended <- err
		}()
		synctest.Wait()
		require.Equal(t, map[string]bool{"a": false, "b": true}, served(), "a fetch waits")
		stop()
		require.Error(t, <-ended)
		require.Equal(t, map[string]bool{"a": false, "b": false}, served(), "the fetch has ended")
	})
}
