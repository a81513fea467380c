package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// inPool makes a client declare that the queues a and b share a pool of one job.
func inPool(o *postgres.Options) {
	in := pawl.Limits{Pool: pawl.Pool{Name: "p", Running: 1}}
	o.Limits = map[string]pawl.Limits{"a": in, "b": in}
}

// takeTurns has two clients, each of which fetches from its own queue, run n jobs one after another in a pool of one
// job. Each job ends when both of them wait for room. It returns the queues of the jobs, in order, and how long the
// longest turn took.
func takeTurns(t *testing.T, schema string, n int, clients ...*postgres.Queue) (order string, longest time.Duration) {
	t.Helper()
	type given struct {
		l  *pawl.Lease
		by *postgres.Queue
	}
	queues, leases := []string{"a", "b"}, make(chan given, n)
	ctx, stop := context.WithCancel(patient(t))
	for i, queue := range queues {
		batch := make([]*pawl.Envelope, n)
		for k := range batch {
			batch[k] = &pawl.Envelope{Kind: "k", Queue: queue}
		}
		require.NoError(t, withid.Enqueue(t.Context(), clients[i], batch...))
	}
	done := make(chan struct{}, len(queues))
	defer func() {
		stop()
		for range queues {
			<-done
		}
	}()
	for i, queue := range queues {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				some, err := clients[i].Fetch(ctx, pawl.Request{Queues: []string{queue}, Max: 4})
				if err != nil {
					return
				}
				for _, l := range some {
					leases <- given{l, clients[i]}
				}
			}
		}()
	}
	for range n {
		began := time.Now()
		select {
		case g := <-leases:
			order += g.l.Queue
			wait := "SELECT count(*) FROM " + schema + ".limits WHERE pool_until > 0"
			require.Eventually(t, func() bool { return count(t, wait) == len(clients) }, time.Minute, time.Millisecond, "both wait")
			require.NoError(t, g.by.Settle(t.Context(), g.l.Ack()))
			longest = max(longest, time.Since(began))
		case <-ctx.Done():
			t.Fatalf("no more jobs start after %q", order)
		}
	}
	return order, longest
}

// Rule: the queues of a pool take turns across processes, although the process that ends a lease itself has a fetch
// that waits. The end of a lease notifies the other process: 40 turns do not take as long as that many looks of a fetch
// that waits.
func TestPoolOverProcesses(t *testing.T) {
	for range 10 {
		schema := newSchema(t)
		began := time.Now()
		order, longest := takeTurns(t, schema, 40, open(t, schema, seldom, inPool), open(t, schema, seldom, inPool))
		require.Less(t, time.Since(began), 45*time.Second)
		if longest > time.Second {
			continue // the machine stalled, perhaps for longer than a queue says that it waits
		}
		for i := 2; i < len(order); i++ { // the second fetch of one queue may wait before the first one of the other
			require.NotEqual(t, order[i-1], order[i], "turns %s", order)
		}
		return
	}
	t.Fatal("the machine stalls in each try")
}

// Rule: a pool that no queue has leaves no row.
func TestPoolsThatAreGone(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, inPool)
	require.EqualValues(t, 1, count(t, "SELECT count(*) FROM "+schema+".pool"))
	for _, queue := range []string{"a", "b"} {
		require.NoError(t, q.SetLimits(t.Context(), queue, &pawl.Limits{}))
	}
	require.NoError(t, q.SetLimits(t.Context(), "c", &pawl.Limits{Pool: pawl.Pool{Name: "q", Running: 1}}))
	require.EqualValues(t, 1, count(t, "SELECT count(*) FROM "+schema+".pool"))
	require.EqualValues(t, 1, count(t, "SELECT count(*) FROM "+schema+".pool WHERE name = 'q'"))
}
