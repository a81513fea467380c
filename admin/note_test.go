//go:build unix

package admin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// impostor returns a queue whose file no process has open, beside a complete and genuine note
// that leads to the server of another queue.
func impostor(t *testing.T) place {
	t.Helper()
	folder, err := os.MkdirTemp("", "pawl") // so that the socket paths of all tests are short enough
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })
	s := serveTest(t, openLiveAt(t, filepath.Join(folder, "another.db"))) // on the same file system
	q := openLiveAt(t, filepath.Join(folder, "jobs.db"))
	require.NoError(t, q.Close())
	at, err := placeOf(q.Path())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(at.folder, 0o700))
	require.NoError(t, os.Link(strings.TrimPrefix(s.Addr(), "unix://"), at.socket))
	_, err = at.writeNote(Process{PID: 1, Name: "impostor"})
	require.NoError(t, err)
	return at
}

// rewrite replaces a text in the note.
func rewrite(t *testing.T, at place, old, new string) {
	t.Helper()
	b, err := os.ReadFile(at.note)
	require.NoError(t, err)
	require.Contains(t, string(b), old)
	require.NoError(t, os.WriteFile(at.note, []byte(strings.Replace(string(b), old, new, 1)), 0o600))
}

func chown(t *testing.T, path string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only the superuser can give a file to another user")
	}
	require.NoError(t, os.Lchown(path, 65534, 65534))
}

// A note is trusted only if nobody but the owner of the file, this user or the superuser can
// have written it, and if it names a place where a server of this file can be. Otherwise the
// file itself is opened, and the error of a locked file has the reason.
func TestNoteIsBelievedOnlyOfTheOwner(t *testing.T) {
	for _, test := range []struct {
		rule     string
		spoil    func(t *testing.T, at place)
		believed bool
	}{
		{"an honest note", func(*testing.T, place) {}, true},
		{"a note of this user beside another's file", func(t *testing.T, at place) { chown(t, at.file) }, true},
		{"everything of the file's owner", func(t *testing.T, at place) {
			chown(t, at.file)
			chown(t, at.folder)
			chown(t, at.note)
		}, true},
		{"a folder that others can enter", func(t *testing.T, at place) { require.NoError(t, os.Chmod(at.folder, 0o701)) }, false},
		{"a folder of another user", func(t *testing.T, at place) { chown(t, at.folder) }, false},
		{"a link to a folder", func(t *testing.T, at place) {
			require.NoError(t, os.Rename(at.folder, at.folder+"2"))
			require.NoError(t, os.Symlink(at.folder+"2", at.folder))
		}, false},
		{"a note that others can read", func(t *testing.T, at place) { require.NoError(t, os.Chmod(at.note, 0o644)) }, false},
		{"a note of another user", func(t *testing.T, at place) { chown(t, at.note) }, false},
		{"a link to a note", func(t *testing.T, at place) {
			require.NoError(t, os.Rename(at.note, at.note+"2"))
			require.NoError(t, os.Symlink(at.note+"2", at.note))
		}, false},
		{"a pipe", func(t *testing.T, at place) {
			require.NoError(t, os.Remove(at.note))
			require.NoError(t, syscall.Mkfifo(at.note, 0o600))
		}, false},
		{"a folder in place of a note", func(t *testing.T, at place) {
			require.NoError(t, os.Remove(at.note))
			require.NoError(t, os.Mkdir(at.note, 0o700))
		}, false},
		{"no note", func(t *testing.T, at place) { require.NoError(t, os.Remove(at.note)) }, false},
		{"an empty note", func(t *testing.T, at place) { require.NoError(t, os.Truncate(at.note, 0)) }, false},
		{"half a note", func(t *testing.T, at place) { require.NoError(t, os.Truncate(at.note, 30)) }, false},
		{"a note without end", func(t *testing.T, at place) { require.NoError(t, os.Truncate(at.note, 1<<40)) }, false},
		{"another shape", func(t *testing.T, at place) { require.NoError(t, os.WriteFile(at.note, []byte("[1]"), 0o600)) }, false},
		{"a socket elsewhere", func(t *testing.T, at place) { rewrite(t, at, at.socket, "/tmp/socket") }, false},
		{"a socket by a detour", func(t *testing.T, at place) { rewrite(t, at, at.folder, at.folder+"/../"+filepath.Base(at.folder)) }, false},
		{"a relative socket", func(t *testing.T, at place) { rewrite(t, at, at.socket, "socket") }, false},
		{"a network address", func(t *testing.T, at place) { rewrite(t, at, "unix://"+at.socket, "http://127.0.0.1:80") }, false},
		{"a shared folder of the right name for another file", func(t *testing.T, at place) {
			shared := filepath.Join(filepath.Dir(at.folder), "pawl")
			require.NoError(t, os.Mkdir(shared, 0o700))
			require.NoError(t, os.Rename(at.socket, filepath.Join(shared, "0123.socket")))
			rewrite(t, at, at.socket, filepath.Join(shared, "0123.socket"))
		}, false},
		{"a shared folder that others can enter", func(t *testing.T, at place) {
			shared := filepath.Join(filepath.Dir(at.folder), "pawl")
			require.NoError(t, os.Mkdir(shared, 0o755))
			require.NoError(t, os.Rename(at.socket, filepath.Join(shared, at.runtimeName())))
			rewrite(t, at, at.socket, filepath.Join(shared, at.runtimeName()))
		}, false},
		{"a shared folder", func(t *testing.T, at place) {
			shared := filepath.Join(filepath.Dir(at.folder), "pawl")
			require.NoError(t, os.Mkdir(shared, 0o700))
			require.NoError(t, os.Rename(at.socket, filepath.Join(shared, at.runtimeName())))
			rewrite(t, at, at.socket, filepath.Join(shared, at.runtimeName()))
		}, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			at := impostor(t)
			test.spoil(t, at)
			a, err := openTest(at.file)
			require.NoError(t, err)
			defer a.Close()
			stats, err := a.Stats(context.Background())
			require.NoError(t, err)
			require.Equal(t, test.believed, stats.Process != nil)
		})
	}
}

// A socket of a user without rights to the queue's file is not used.
func TestSocketOfAnotherUserIsNotAsked(t *testing.T) {
	s := serveTest(t, openLive(t))
	c, err := newClient(s.Addr(), nil, func(uid int) bool { return uid != os.Geteuid() })
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Stats(context.Background())
	if _, known := peerOf(t, s); !known {
		t.Skip("this system does not tell whose process is at the other end of a socket")
	}
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "has no right")
	err = c.Pause(context.Background(), "a")
	require.ErrorIs(t, err, ErrUnreachable)
	require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, "nothing was sent")
}

func peerOf(t *testing.T, s *Server) (uid int, known bool) {
	t.Helper()
	conn, err := dialSocket(context.Background(), strings.TrimPrefix(s.Addr(), "unix://"), nil)
	require.NoError(t, err)
	defer conn.Close()
	return peerUser(conn)
}
