package workflow

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a run that was started here, and has not ended since, is known to be open without a read. A run is not taken
// for an open one after its end, or if it is unknown whether it has ended.
func TestHubKnowsWhichRunsAreOpen(t *testing.T) {
	h := &hub{running: make(map[pawl.ID]*execution), waiting: make(waiters), watching: make(waiters)}
	run := func(n int) pawl.ID { return pawl.ID{byte(n), byte(n >> 8), 1} }
	open := func(id pawl.ID, started moment) bool {
		_, open, leave := h.await(id, started)
		leave()
		return open
	}
	h.ended(run(0), ending{})
	before := h.now()
	require.True(t, open(run(1), before))
	require.False(t, open(run(1), 0), "nobody knows when it was started")
	require.True(t, open(run(0), before), "only ends behind the moment count")

	h.ended(run(1), ending{})
	require.False(t, open(run(1), before))
	for n := range recentEnds - 1 {
		h.ended(run(100+n), ending{})
		require.False(t, open(run(1), before))
		require.True(t, open(run(2), before))
	}
	h.ended(run(3), ending{})
	require.False(t, open(run(2), before), "the hub remembers no more ends")
	require.True(t, open(run(2), h.now()))
	require.Empty(t, h.waiting)

	h.shared = true
	require.False(t, open(run(2), h.now()), "it may end elsewhere")
}
