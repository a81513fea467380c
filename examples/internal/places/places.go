// Package places has the places where the tests of examples keep queues: files, and databases of a
// PostgreSQL server.
package places

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/cluster"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/need"
)

// server is the server of the test binary, which the first test that needs it starts.
var server struct {
	*cluster.Cluster
	databases atomic.Int64
}

// Main runs the tests, and then ends the server. A test binary has its result as the exit code.
func Main(m *testing.M) (code int) {
	defer func() {
		if server.Cluster != nil {
			server.Close()
			_ = os.RemoveAll(filepath.Dir(server.Folder))
		}
	}()
	return m.Run()
}

// Each runs a test over each engine. Fresh returns a place that has nothing yet.
func Each(t *testing.T, test func(t *testing.T, fresh func() (place string))) {
	t.Run("file", func(t *testing.T) {
		folder, n := memdir.New(t), 0
		test(t, func() string {
			n++
			return filepath.Join(folder, fmt.Sprintf("%d.db", n))
		})
	})
	t.Run("server", func(t *testing.T) {
		need.Server(t, cluster.Missing())
		if server.Cluster == nil {
			start(t)
		}
		test(t, func() string { return newDatabase(t) })
	})
}

// IsServer reports whether a place is a database.
func IsServer(place string) bool { return strings.Contains(place, "://") }

func start(t *testing.T) {
	t.Helper()
	folder, err := os.MkdirTemp("", "pawl-places-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(folder, 0o711)) // the server has a user of its own
	// Tests kill programs and not the server, so it need not sync.
	server.Cluster, err = cluster.New(context.Background(), filepath.Join(folder, "server"), "fsync=off", "full_page_writes=off", "max_connections=200")
	require.NoError(t, err)
	require.NoError(t, server.Start(t.Context()))
}

// newDatabase returns the URL of a new database.
func newDatabase(t *testing.T) (url string) {
	t.Helper()
	name := fmt.Sprint("place_", server.databases.Add(1))
	conn, err := pgx.Connect(t.Context(), server.URL())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	require.NoError(t, conn.Close(context.Background()))
	return strings.Replace(server.URL(), "/postgres?", "/"+name+"?", 1)
}
