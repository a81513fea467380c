package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// A listener receives everything that happened before the queue was closed.
func TestListenHearsAllBeforeTheEnd(t *testing.T) {
	f := newFixture(t, nil)
	s := &suiteTest{Of(f.q), f, true}
	events := hear(t.Context(), s)
	s.until(t, events)
	ids := f.many(100, pawl.Envelope{Kind: "many"})
	require.NoError(t, f.q.Close())
	require.ErrorIs(t, <-events.ended, pawl.ErrClosed)
	close(events.received)
	var received []pawl.ID
	for e := range events.received {
		if e.Job.Kind == "many" {
			received = append(received, e.Job.ID)
		}
	}
	require.Equal(t, ids, received)
}
