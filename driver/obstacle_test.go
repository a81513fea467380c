package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: the error about a group or a key that is not there names what is missing, and matches ErrNotFound.
func TestAbsent(t *testing.T) {
	group := driver.NoGroup("rows.csv")
	require.ErrorIs(t, group, pawl.ErrNotFound)
	require.EqualError(t, group, `group "rows.csv": no such group`)

	key := driver.NoKey("sync", "ada")
	require.ErrorIs(t, key, pawl.ErrNotFound)
	require.EqualError(t, key, `key "ada" of queue "sync": no such key: none of its jobs is ready or leased, or the queue has no limits per key`)
}
