package postgres_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// breakConnections ends all connections to the server but its own.
const breakConnections = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`

// Rule: when connections break, also during a commit, each call takes effect once: what was
// acknowledged is stored, and nothing is stored twice.
func TestConnectionsBreak(t *testing.T) {
	const callers = 8
	each, breaks := race.Fewer(60), race.Fewer(24)
	schema := newSchema(t)
	q := open(t, schema)
	var acknowledged atomic.Int32
	progress := make(chan struct{}, callers*each)
	var breaker, wg sync.WaitGroup
	breaker.Go(func() { // during the calls, and so rarely that they end
		for range breaks {
			for range callers * each / breaks {
				<-progress
			}
			execute(t, breakConnections)
		}
	})
	for range callers {
		wg.Go(func() {
			for range each {
				if err := withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}); err != nil {
					t.Errorf("enqueue: %v", err)
				} else {
					acknowledged.Add(1)
				}
				progress <- struct{}{}
			}
		})
	}
	wg.Wait()
	breaker.Wait()
	require.EqualValues(t, callers*each, acknowledged.Load())
	var ids []pawl.ID
	for len(ids) < callers*each {
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 100, Wait: pawl.WaitNot})
		require.NoError(t, err, "after %d jobs", len(ids))
		for _, l := range leases {
			require.NoError(t, q.Settle(t.Context(), l.Ack()))
			ids = append(ids, l.ID)
		}
	}
	require.Len(t, ids, callers*each)
	_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitFinished})
	require.ErrorIs(t, err, pawl.ErrEmpty)
}

// Rule: a client opens its connection again when it needs it, also for jobs that become
// due.
func TestConnectionBreaksWhileIdle(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll)
	e := &pawl.Envelope{Kind: "k", Delay: 50 * time.Millisecond}
	require.NoError(t, withid.Enqueue(t.Context(), q, e))
	execute(t, breakConnections)
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.Equal(t, e.ID, leases[0].ID)
}
