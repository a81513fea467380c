package admin

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// takeAll returns everything that waits for a listener.
func (r *subscription) takeAll() (all []Event) {
	taken := make([]Event, handful)
	for n := r.take(taken); n > 0; n = r.take(taken) {
		all = append(all, taken[:n]...)
	}
	return all
}

// putMany emits that many events.
func (a *broadcaster) putMany(n int, e pawl.Event) {
	for range n {
		a.put(e)
	}
}

// missed returns how many events were lost before each of these.
func missed(events []Event) (all []int64) {
	for _, e := range events {
		all = append(all, e.Missed)
	}
	return all
}

// A slow listener keeps the oldest events that fit, and the next event says how many it missed.
// A fast listener misses nothing.
func TestRingCountsWhatIsMissed(t *testing.T) {
	a := &broadcaster{q: openLive(t)}
	r, other := a.subscribe(), a.subscribe()
	defer r.unsubscribe()
	defer other.unsubscribe()
	job := &pawl.Envelope{Kind: "a"}
	for i := range bufferSize + 7 {
		if i == bufferSize/2 {
			require.Len(t, other.takeAll(), bufferSize/2)
		}
		a.put(pawl.Event{Type: pawl.EventEnqueued, Job: job})
	}
	job.Kind = "changed by whoever enqueued it"
	events := r.takeAll()
	require.Len(t, events, bufferSize)
	for _, e := range events {
		require.Zero(t, e.Missed)
		require.Equal(t, "a", e.Job.Kind)
	}
	require.Empty(t, r.takeAll())
	a.putMany(2, pawl.Event{Type: pawl.EventDied, Job: job})
	require.Equal(t, []int64{7, 0}, missed(r.takeAll()))
	require.Len(t, r.ready, 1, "one sign is enough for whoever takes all")
	rest := other.takeAll()
	require.Len(t, rest, bufferSize/2+7+2)
	for _, e := range rest {
		require.Zero(t, e.Missed)
	}
}

// A full subscription has room again as soon as its listener has taken events; what arrived in
// between is counted before the next event.
func TestRingHasRoomWhereSomeWereTaken(t *testing.T) {
	a := &broadcaster{q: openLive(t)}
	r := a.subscribe()
	defer r.unsubscribe()
	a.putMany(bufferSize+5, pawl.Event{Type: pawl.EventReaped})
	require.Equal(t, handful, r.take(make([]Event, handful)))
	a.putMany(handful+3, pawl.Event{Type: pawl.EventReaped})
	events := r.takeAll()
	require.Len(t, events, bufferSize)
	for i, e := range events {
		want := int64(0)
		if i == bufferSize-handful {
			want = 5
		}
		require.Equal(t, want, e.Missed)
	}
	a.put(pawl.Event{Type: pawl.EventReaped})
	require.Equal(t, []int64{3}, missed(r.takeAll()))
}

// A stalled listener costs the queue neither memory nor a call: a full subscription that nobody
// reads for a second drops its events, and receives no more. It counts all of them as missed.
func TestStalledListenerHoldsNothing(t *testing.T) {
	q := openLive(t)
	synctest.Test(t, func(t *testing.T) {
		a := &broadcaster{q: q}
		r := a.subscribe()
		defer r.unsubscribe()
		e := pawl.Event{Type: pawl.EventReaped}

		a.putMany(bufferSize-1, e)
		<-time.After(2 * hold)
		synctest.Wait()
		require.Len(t, a.open, 1, "it has room")
		require.Len(t, r.events, bufferSize-1)

		a.putMany(3, e)
		require.Empty(t, a.open)
		<-time.After(hold - 1)
		synctest.Wait()
		require.Len(t, r.events, bufferSize, "it may only have been slow")
		<-time.After(1)
		synctest.Wait()
		require.Nil(t, r.events)

		a.putMany(10, e)
		require.Empty(t, r.takeAll())
		a.put(e)
		require.Equal(t, []int64{bufferSize + 2 + 10}, missed(r.takeAll()))

		a.putMany(bufferSize, e)
		<-time.After(hold / 2)
		require.Len(t, r.takeAll(), bufferSize)
		a.putMany(bufferSize, e)
		<-time.After(hold - 1)
		synctest.Wait()
		require.Len(t, r.takeAll(), bufferSize, "its second began when it became full again")

		a.putMany(bufferSize+5, e)
		r.take(make([]Event, handful))
		a.putMany(handful, e) // the first of them reports the five
		<-time.After(hold)
		synctest.Wait()
		require.Empty(t, r.takeAll())
		a.put(e)
		require.Equal(t, []int64{5 + bufferSize}, missed(r.takeAll()))
	})
}

// However many subscribers there are, each receives every event once while it is subscribed;
// others that come and go take nothing from it.
func TestSubscribersComeAndGo(t *testing.T) {
	q := openLive(t)
	a := &broadcaster{q: q}
	end := make(chan struct{})
	var others, listeners sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
					a.subscribe().unsubscribe()
				}
			}
		})
	}
	for i := range 4 {
		listeners.Go(func() {
			for round := range 10 {
				r, kind := a.subscribe(), fmt.Sprint(i, " ", round)
				for range 3 {
					if err := withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: kind}); err != nil {
						t.Error(err)
					}
				}
				received := 0
				for _, e := range r.takeAll() { // the event came before Enqueue returned
					if e.Job.Kind == kind {
						received++
					}
				}
				r.unsubscribe()
				if received != 3 {
					t.Errorf("3 jobs were enqueued, and %d heard of", received)
				}
			}
		})
	}
	listeners.Wait()
	close(end)
	others.Wait()
	require.Empty(t, a.open)
	require.Zero(t, a.size)
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "unheard"}))
	before := a.sent
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "unheard"}))
	require.Equal(t, before, a.sent, "the queue tells nobody when nobody listens")
}
