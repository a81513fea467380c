package bolt

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: a listener receives what OnEvent receives, from Listen until stop, whether there are
// other listeners or not.
func TestListen(t *testing.T) {
	for _, options := range []bool{false, true} {
		var first, second, onEvent eventLog
		o := quiet()
		if options {
			o.OnEvent = onEvent.event
		}
		q := openAt(t, t.TempDir()+"/jobs.db", o)
		cycle := func() {
			add(t, q, nil)
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
		}
		whole := []string{"enqueued", "fetched", "succeeded"}
		cycle()
		stopFirst := q.Listen(first.event)
		cycle()
		require.Equal(t, whole, first.take())
		stopSecond := q.Listen(second.event)
		cycle()
		require.Equal(t, whole, first.take())
		require.Equal(t, whole, second.take())
		stopFirst()
		stopFirst()
		cycle()
		require.Empty(t, first.take())
		require.Equal(t, whole, second.take())
		stopSecond()
		cycle()
		require.Empty(t, second.take())
		require.Equal(t, options, q.scheduler.observer.Listened(), "events cost nothing again")
		again := q.Listen(first.event)
		require.NoError(t, q.Close())
		again()
		if options {
			require.Len(t, onEvent.take(), 5*len(whole))
		}
	}
}

// Rule: a panic in a listener harms neither the queue nor other listeners, and is logged.
func TestListenToOneThatPanics(t *testing.T) {
	var log lockedBuffer
	q := openTest(t, &Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	var after eventLog
	defer q.Listen(func(pawl.Event) { panic("boom") })()
	defer q.Listen(after.event)()
	add(t, q, nil)
	require.Equal(t, []string{"enqueued"}, after.take())
	require.Equal(t, 1, strings.Count(log.String(), "a listener for events panicked"))
}

// Rule: stop waits for a call in progress, and there are no calls after it.
func TestListenStopWaits(t *testing.T) {
	q := openTest(t, nil)
	entered, leave := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(leave) })
	defer goOn()
	calls := 0
	stop := q.Listen(func(pawl.Event) { calls++; close(entered); <-leave })
	stored := started(func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) })
	<-entered
	stopped := started(func() error { stop(); return nil })
	stacks := make([]byte, 1<<20)
	for !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "sync.(*RWMutex).Lock(") {
		require.Empty(t, stopped, "it returned while fn runs")
		runtime.Gosched()
	}
	goOn()
	<-stopped
	require.NoError(t, <-stored)
	add(t, q, nil)
	require.Equal(t, 1, calls)
}

// Rule: listeners come and go during traffic, and none is called after its stop.
func TestListenBesideTraffic(t *testing.T) {
	q := openTest(t, nil)
	_, end := startTraffic(t, q)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				over := false // protected by stop, or the race detector reports it
				received := make(chan struct{}, 1)
				stop := q.Listen(func(pawl.Event) {
					if over {
						t.Error("called after stop")
					}
					select {
					case received <- struct{}{}:
					default:
					}
				})
				<-received
				stop()
				over = true
			}
		})
	}
	all.Wait()
	end()
}
