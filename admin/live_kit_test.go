package admin

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
)

// openLive opens a queue in a folder of the test, as an app would.
func openLive(t testing.TB) *bolt.Queue {
	t.Helper()
	return openLiveAt(t, filepath.Join(t.TempDir(), "jobs.db"))
}

func openLiveAt(t testing.TB, path string) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// openTest is Open with all the patience that a busy machine needs.
func openTest(path string) (Admin, error) {
	return open(context.Background(), path, nil, time.Minute, func() {})
}
