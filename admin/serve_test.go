//go:build unix

package admin

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// modeOf returns the mode of a file without following a link.
func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode()
}

// Only their owner can use the folder, the socket and the note, whatever the umask, and the note
// identifies the server.
func TestServeIsForTheOwnerAlone(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o777} {
		q := openLive(t)
		old := syscall.Umask(umask)
		s, err := Serve(q, &Options{Name: "billing", Logger: hclog.NewNullLogger()})
		syscall.Umask(old)
		require.NoError(t, err)
		folder := q.Path() + ".admin"
		require.Equal(t, fs.ModeDir|0o700, modeOf(t, folder))
		require.Equal(t, fs.ModeSocket|0o600, modeOf(t, filepath.Join(folder, "socket")))
		require.Equal(t, fs.FileMode(0o600), modeOf(t, filepath.Join(folder, "server.json")))

		b, err := os.ReadFile(filepath.Join(folder, "server.json"))
		require.NoError(t, err)
		var n noteBody
		require.NoError(t, json.Unmarshal(b, &n))
		require.Equal(t, "billing", n.Name)
		require.Equal(t, os.Getpid(), n.PID)
		require.Equal(t, s.Addr(), n.Address)
		require.WithinDuration(t, time.Now(), n.Started.Time, time.Minute)

		a, err := openTest(q.Path())
		require.NoError(t, err)
		stats, err := a.Stats(context.Background())
		require.NoError(t, err)
		require.Equal(t, n.PID, stats.Process.PID)
		require.Equal(t, "billing", stats.Process.Name)
		require.NoError(t, a.Close())

		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "a second time")
		require.NoDirExists(t, folder)
	}
}

// The leftovers of a killed app, even half a note, are replaced without a question; until then
// the file itself is opened.
func TestKilledAppIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	app := startApp(t, "serve", path)
	a, err := openTest(path)
	require.NoError(t, err)
	stats, err := a.Stats(context.Background())
	require.NoError(t, err)
	require.Equal(t, app.cmd.Process.Pid, stats.Process.PID)

	app.killHard(t)
	_, err = a.Stats(context.Background())
	require.ErrorIs(t, err, ErrUnreachable)
	require.NoError(t, a.Close())
	require.FileExists(t, path+".admin/server.json")

	a, err = openTest(path)
	require.NoError(t, err)
	stats, err = a.Stats(context.Background())
	require.NoError(t, err)
	require.Nil(t, stats.Process, "the file itself")
	require.NoError(t, a.Close())

	require.NoError(t, os.WriteFile(path+".admin/server.json.new", []byte(`{"addr`), 0o600))
	serveTest(t, openLiveAt(t, path))
	a, err = openTest(path)
	require.NoError(t, err)
	stats, err = a.Stats(context.Background())
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), stats.Process.PID)
	require.NoError(t, a.Close())
	require.NoFileExists(t, path+".admin/server.json.new")
}

// Two apps with two files in one folder do not interfere.
func TestTwoAppsSideBySide(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.db", "b.db"} {
		q := openLiveAt(t, filepath.Join(folder, name))
		require.NoError(t, withid.Enqueue(context.Background(), q, &pawl.Envelope{Kind: name}))
		serveTest(t, q)
	}
	for _, name := range []string{"a.db", "b.db"} {
		a, err := openTest(filepath.Join(folder, name))
		require.NoError(t, err)
		page, err := a.List(context.Background(), Query{})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
		require.Equal(t, name, page.Jobs[0].Job.Kind)
		require.NoError(t, a.Close())
	}
}

// A process serves a file only once at a time, and again after that.
func TestServeOnceAtATime(t *testing.T) {
	q := openLive(t)
	s := serveTest(t, q)
	_, err := Serve(q, nil)
	require.ErrorContains(t, err, "already")
	a, err := Dial(context.Background(), s.Addr(), nil)
	require.NoError(t, err, "the first one goes on")
	require.NoError(t, a.Close())
	require.NoError(t, s.Close())
	serveTest(t, q)
}

// If the path of the socket would be too long, the socket is elsewhere, and other processes find
// it even with other settings.
func TestLongPathIsServedElsewhere(t *testing.T) {
	for _, variable := range []string{"XDG_RUNTIME_DIR", "TMPDIR"} {
		t.Run(variable, func(t *testing.T) {
			deep := filepath.Join(t.TempDir(), strings.Repeat("deep", 30))
			short, err := os.MkdirTemp("/tmp", "pawl")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(short)) })
			require.NoError(t, os.Mkdir(deep, 0o700))
			t.Setenv("XDG_RUNTIME_DIR", "")
			t.Setenv(variable, short)

			q := openLiveAt(t, filepath.Join(deep, "jobs.db"))
			s := serveTest(t, q)
			socket := strings.TrimPrefix(s.Addr(), "unix://")
			require.LessOrEqual(t, len(socket), maxSocketPath)
			require.True(t, strings.HasPrefix(socket, short), socket)
			require.Equal(t, fs.ModeDir|0o700, modeOf(t, filepath.Dir(socket)))
			require.Equal(t, fs.ModeSocket|0o600, modeOf(t, socket))

			t.Setenv(variable, "/nowhere")
			a, err := openTest(q.Path())
			require.NoError(t, err)
			stats, err := a.Stats(context.Background())
			require.NoError(t, err)
			require.NotNil(t, stats.Process)
			require.NoError(t, a.Close())
			require.NoError(t, s.Close())
			require.NoFileExists(t, socket)
			require.NoDirExists(t, q.Path()+".admin")
		})
	}
}

// A file that is opened through a link is served under its own name.
func TestLinkedFileIsServedUnderItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	link := filepath.Join(t.TempDir(), "link.db")
	serveTest(t, openLiveAt(t, path))
	require.NoError(t, os.Symlink(path, link))
	a, err := openTest(link)
	require.NoError(t, err)
	stats, err := a.Stats(context.Background())
	require.NoError(t, err)
	require.NotNil(t, stats.Process)
	require.NoError(t, a.Close())
}

// A folder of another user is refused, with the remedy; this user's folder that was opened to
// others is closed to them.
func TestFolderHasToBeOurs(t *testing.T) {
	for _, test := range []struct {
		rule    string
		prepare func(t *testing.T, folder string)
		text    string // of the error; "" means that it is served
	}{
		{"an empty folder", func(t *testing.T, folder string) { require.NoError(t, os.Mkdir(folder, 0o700)) }, ""},
		{"a folder that everybody may enter", func(t *testing.T, folder string) {
			require.NoError(t, os.Mkdir(folder, 0o777))
			require.NoError(t, os.Chmod(folder, 0o777))
		}, ""},
		{"a link to a folder", func(t *testing.T, folder string) { require.NoError(t, os.Symlink(t.TempDir(), folder)) }, "is no folder"},
		{"a link that leads nowhere", func(t *testing.T, folder string) { require.NoError(t, os.Symlink("nowhere", folder)) }, "is no folder"},
		{"a file", func(t *testing.T, folder string) { require.NoError(t, os.WriteFile(folder, nil, 0o600)) }, "is no folder"},
		{"a folder of another user", func(t *testing.T, folder string) {
			if os.Getuid() != 0 {
				t.Skip("only the superuser can give a folder to another user")
			}
			require.NoError(t, os.Mkdir(folder, 0o700))
			require.NoError(t, os.Chown(folder, 65534, 65534))
		}, "belongs to user 65534"},
		{"a folder in place of the socket", func(t *testing.T, folder string) {
			require.NoError(t, os.MkdirAll(filepath.Join(folder, "socket", "x"), 0o700))
		}, "replace what a killed app left"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			q := openLiveAt(t, filepath.Join(openFolder(t), "jobs.db")) // its socket is beside it
			test.prepare(t, q.Path()+".admin")
			s, err := Serve(q, &Options{Logger: hclog.NewNullLogger()})
			if test.text != "" {
				require.ErrorContains(t, err, test.text)
				require.ErrorContains(t, err, q.Path())
				return
			}
			require.NoError(t, err)
			defer s.Close()
			require.Equal(t, fs.ModeDir|0o700, modeOf(t, q.Path()+".admin"))
		})
	}
}

// A folder that this user cannot write to is reported, with the remedy.
func TestFolderThatCannotBeMade(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("needs a user who is not the superuser, who can write to any folder")
	}
	q := openLive(t)
	require.NoError(t, os.Chmod(filepath.Dir(q.Path()), 0o500))
	defer func() { require.NoError(t, os.Chmod(filepath.Dir(q.Path()), 0o700)) }()
	_, err := Serve(q, nil)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "admin.Handler")
}
