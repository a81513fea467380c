package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
)

// counters returns the data of the app.
func (k *kit) counters() map[string]uint64 {
	k.t.Helper()
	counters, err := k.q.Counters(k.t.Context())
	require.NoError(k.t, err)
	return counters
}

// counted requires the value of a counter.
func (k *kit) counted(name string, want uint64) {
	k.t.Helper()
	require.Equal(k.t, want, k.counters()[name], name)
}

// tableNamed returns a table of workflows.
func tableNamed(name string) *driver.Table {
	for _, table := range space.Tables() {
		if table.String() == name {
			return table
		}
	}
	panic("there is no table " + name)
}

// needsDeath skips a test over a queue that ends with its process.
func needsDeath(t *testing.T) {
	t.Helper()
	if under.Volatile {
		t.Skip("the jobs end with their process")
	}
}

// needsFile skips a test over a queue that is not the file of its path.
func needsFile(t *testing.T) {
	t.Helper()
	if under.ErrDisk == nil {
		t.Skip("the queue is no file")
	}
}
