package cluster

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/need"
)

// passable returns a folder below which the user of a server can work.
func passable(t *testing.T) string {
	t.Helper()
	need.Server(t, Missing())
	folder, err := os.MkdirTemp("", "pawl-cluster-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o711))
	return folder
}

// query returns the answer to a statement.
func (c *Cluster) query(t *testing.T, sql string) string {
	t.Helper()
	out, err := c.command(t.Context(), filepath.Join(c.programs, "psql"), "-qAtX", "-d", c.URL(), "-c", sql).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// Rule: a server that was killed starts again with what it acknowledged. A standby follows it, and
// takes its place when it is promoted. Close leaves nothing.
func TestCluster(t *testing.T) {
	folder := passable(t)
	c, err := New(t.Context(), filepath.Join(folder, "one"), "synchronous_standby_names=two")
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Start(t.Context()))
	c.query(t, "SET synchronous_commit = local; CREATE TABLE t (n int)")
	for n, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGQUIT} {
		c.Kill(signal)
		require.NoError(t, c.Start(t.Context()))
		c.query(t, "SET synchronous_commit = local; INSERT INTO t VALUES (1)")
		require.Equal(t, string(rune('1'+n))+"\n", c.query(t, "SELECT count(*) FROM t"))
	}
	s, err := c.Standby(t.Context(), filepath.Join(folder, "two"), "two")
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Start(t.Context()))
	c.query(t, "INSERT INTO t VALUES (1)") // waits for the standby
	c.Kill(syscall.SIGKILL)
	require.NoError(t, s.Promote(t.Context()))
	s.query(t, "INSERT INTO t VALUES (1)")
	require.Equal(t, "4\n", s.query(t, "SELECT count(*) FROM t"))
	c.Close()
	s.Close()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}
