package memory_test

import (
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/memory"
)

// lazyError is an error whose text is computed when it is read.
type lazyError func() string

func (e lazyError) Error() string { return e() }

// Rule: the text of a cause is read before the queue is locked. It may call the queue, and a
// panic in it settles nothing.
func TestCauseIsReadBeforeTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer func() { require.NoError(t, q.Close()) }()
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "a"}, &pawl.Envelope{Kind: "b"}, &pawl.Envelope{Kind: "c"}))
		l, err := q.Fetch(t.Context(), pawl.Request{Max: 3})
		require.NoError(t, err)
		require.Panics(t, func() {
			_ = q.Settle(t.Context(), l[0].Ack(), l[1].Nack(0, lazyError(func() string { panic("broken") })))
		})
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counts{Leased: 3}, stats.Queues[0].Counts)
		require.NoError(t, q.Settle(t.Context(), l[2].Nack(0, lazyError(func() string {
			_, err := q.Stats(t.Context())
			require.NoError(t, err)
			return "broken"
		}))))
	})
}
