package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/core"
)

// Rule: a group has at most 4 096 calls and 32 MiB of payloads, or a single call that has more. No
// call is forgotten, and none is lost at a close.
func TestGroupsAreBounded(t *testing.T) {
	in := newIntake()
	for range groupCalls + 1 {
		require.NoError(t, in.Put(&call{Call: core.Call{Jobs: 1}}))
	}
	for range 2 {
		require.NoError(t, in.Put(&call{Call: core.Call{Jobs: 1, Bytes: groupBytes/2 + 1}}))
	}
	require.NoError(t, in.Put(&call{Call: core.Call{Jobs: 1, Bytes: 2 * groupBytes}}))
	in.Close()
	var sizes []int
	for closed := false; !closed; {
		<-in.Signal
		var calls []*call
		calls, _, closed = in.Take()
		sizes = append(sizes, len(calls))
	}
	require.Equal(t, []int{groupCalls, 2, 1, 1}, sizes)
}
