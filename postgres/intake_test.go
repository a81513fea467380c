package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: a group has at most 4 096 calls and 32 MiB of payloads, but for a single call that has more.
// No call is left behind, and none is lost at a close.
func TestGroupsAreBounded(t *testing.T) {
	in := intake{signal: make(chan struct{}, 1)}
	for range groupCalls + 1 {
		in.put(new(call))
	}
	for range 2 {
		in.put(&call{bytes: groupBytes/2 + 1})
	}
	in.put(&call{bytes: 2 * groupBytes})
	in.close()
	var sizes []int
	for closed := false; !closed; {
		<-in.signal
		var calls []*call
		calls, _, closed = in.take()
		sizes = append(sizes, len(calls))
	}
	require.Equal(t, []int{groupCalls, 2, 1, 1}, sizes)
}
