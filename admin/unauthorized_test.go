//go:build unix

package admin

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
)

// startUnauthorized starts a process of another user that continuously tries to reach a socket.
func startUnauthorized(t *testing.T, folder, socket string) *intruder {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only the superuser can start a process of another user")
	}
	mine, err := os.Executable()
	require.NoError(t, err)
	binary := filepath.Join(folder, "stranger") // others cannot enter the folder of the test binary
	from, err := os.Open(mine)
	require.NoError(t, err)
	defer from.Close()
	to, err := os.OpenFile(binary, os.O_WRONLY|os.O_CREATE, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	require.NoError(t, os.Chmod(binary, 0o755))
	i := &intruder{startChild(t, &syscall.Credential{Uid: 65534, Gid: 65534}, binary, "intrude", socket), make(chan bool, 1)}
	go func() { i.busy <- i.lines.Scan() }()
	return i
}

// intruder is a process of another user.
type intruder struct {
	*child
	busy chan bool // has a value when the process has tried enough, or is gone
}

// result waits until the process has tried enough, ends it, and returns what it did.
func (c *intruder) result(t *testing.T) (tries, connected, answered int) {
	t.Helper()
	require.True(t, <-c.busy, "the process is gone")
	c.end(t)
	_, err := fmt.Sscan(c.line(t), &tries, &connected, &answered)
	require.NoError(t, err)
	return tries, connected, answered
}

// openFolder returns a folder that everyone can enter.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "pawl-admin-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	require.NoError(t, os.Chmod(folder, 0o755))
	return folder
}

// Another user never connects, in a thousand starts and stops and at least as many attempts,
// whatever the umask of the app.
func TestUnauthorizedClientNeverConnects(t *testing.T) {
	folder := openFolder(t)
	q := openLiveAt(t, filepath.Join(folder, "jobs.db"))
	unauthorized := startUnauthorized(t, folder, q.Path()+".admin/socket")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for n := 0; n < 1000 || len(unauthorized.busy) == 0; n++ {
		s, err := Serve(q, &Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	tries, connected, _ := unauthorized.result(t)
	require.GreaterOrEqual(t, tries, 1000)
	require.Zero(t, connected)
	t.Logf("%d tries", tries)
}

// If the folder of the socket was opened to another user, the server still does not answer that
// user, if the system identifies the user; it answers this user.
func TestUnauthorizedClientIsNeverAnswered(t *testing.T) {
	folder := openFolder(t)
	s := serveTest(t, openLiveAt(t, filepath.Join(folder, "jobs.db")))
	if _, known := peerOf(t, s); !known {
		t.Skip("this system does not tell whose process is at the other end of a socket")
	}
	require.NoError(t, os.Chmod(s.place.folder, 0o755))
	require.NoError(t, os.Chmod(s.place.socket, 0o666))
	unauthorized := startUnauthorized(t, folder, s.place.socket)
	c, err := Dial(context.Background(), s.Addr(), nil)
	require.NoError(t, err)
	defer c.Close()
	for range 1000 {
		_, err := c.Stats(context.Background())
		require.NoError(t, err)
	}
	tries, connected, answered := unauthorized.result(t)
	require.Positive(t, connected)
	require.Zero(t, answered)
	t.Logf("%d tries, %d connected, none answered", tries, connected)
}
