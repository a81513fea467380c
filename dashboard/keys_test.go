package dashboard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: the page of a key names the first jobs that it blocks, and says how many there are.
func TestKeyNamesBlockedJobs(t *testing.T) {
	k := newKit(t)
	blocked := func() string {
		_, list, found := strings.Cut(k.page("key?queue=sync&name=tenant/42"), "<h2>Blocked jobs</h2>")
		require.True(t, found)
		return list
	}
	require.Contains(t, blocked(), "No job of the key is blocked.")
	var ids []pawl.ID
	for range pawl.MaxHolders + 2 {
		ids = append(ids, k.enqueue("sync", pawl.Key("tenant/42")))
	}
	list := blocked()
	require.NotContains(t, list, k.member.String(), "it may run")
	require.Contains(t, list, "10 of 12")
	for i, id := range ids {
		require.Equal(t, i < pawl.MaxHolders, strings.Contains(list, id.String()), i)
	}
}
