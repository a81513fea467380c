package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// A listener that is slow keeps the oldest events that fit, and learns with the next one how
// many it missed.
func TestRingCountsWhatIsMissed(t *testing.T) {
	r := newRing()
	job := &pawl.Envelope{Kind: "a"}
	for range ringSize + 7 {
		r.put(pawl.Event{Type: pawl.EventEnqueued, Job: job})
	}
	job.Kind = "changed by whoever enqueued it"
	events := r.take()
	require.Len(t, events, ringSize)
	for _, e := range events {
		require.Zero(t, e.Missed)
		require.Equal(t, "a", e.Job.Kind)
	}
	require.Empty(t, r.take())
	r.put(pawl.Event{Type: pawl.EventDied, Job: job})
	r.put(pawl.Event{Type: pawl.EventDied, Job: job})
	events = r.take()
	require.Equal(t, []int64{7, 0}, []int64{events[0].Missed, events[1].Missed})
	require.Len(t, r.bell, 1, "one sign is enough for whoever takes all")
}

// What happened before a queue was closed is heard before the end.
func TestListenHearsAllBeforeTheEnd(t *testing.T) {
	f := newFixture(t, nil)
	s := &suiteTest{Of(f.q), f, true}
	events := hear(t.Context(), s)
	s.until(t, events)
	ids := f.many(100, pawl.Envelope{Kind: "many"})
	require.NoError(t, f.q.Close())
	require.ErrorIs(t, <-events.ended, pawl.ErrClosed)
	close(events.heard)
	var heard []pawl.ID
	for e := range events.heard {
		if e.Job.Kind == "many" {
			heard = append(heard, e.Job.ID)
		}
	}
	require.Equal(t, ids, heard)
}
