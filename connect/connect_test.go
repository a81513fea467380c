//go:build unix

package connect

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// Rule: a client owns a free file and creates a missing one. Another one uses the socket of the first,
// and moves over when the first closes: it finds every job.
func TestClientMovesOver(t *testing.T) {
	path := newPath(t)
	first := open(t, path)
	second := open(t, path)
	require.NotNil(t, first.current().queue)
	require.Nil(t, second.current().queue)
	ids := []pawl.ID{add(t, first, 1), add(t, second, 2)}
	require.NoError(t, first.Close())
	ids = append(ids, add(t, second, 3))
	require.NotNil(t, second.current().queue)
	for _, id := range ids {
		require.NoError(t, second.Use(t.Context(), func(a admin.Admin) error {
			_, err := a.Job(t.Context(), id)
			return err
		}))
	}
	_, err := note.Enqueue(t.Context(), first, Note{})
	require.ErrorIs(t, err, pawl.ErrClosed)
	require.NoError(t, first.Close())
}

// Rule: a client moves over from an owner that was killed, and opens the file.
func TestClientMovesOverFromAKilledOwner(t *testing.T) {
	path := newPath(t)
	app := start(t, "serve", path)
	c := open(t, path)
	require.Equal(t, app.cmd.Process.Pid, owner(t, c))
	id := add(t, c, 1)
	app.kill(t)
	require.Equal(t, os.Getpid(), owner(t, c))
	require.NoError(t, c.Use(t.Context(), func(a admin.Admin) error {
		_, err := a.Job(t.Context(), id)
		return err
	}))
}

// Rule: one of those who call Elect runs, at a time. A client without Elect gives the file up to it, and
// another one takes over when it ends, by a kill as well.
func TestElect(t *testing.T) {
	path := newPath(t)
	c := open(t, path) // owns the file, and works on nothing
	id := add(t, c, 1)
	first := start(t, "elect", path)
	require.Equal(t, "elected", first.line(t))
	end, err := c.Await(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, pawl.Completed, end.State)
	require.Equal(t, first.cmd.Process.Pid, owner(t, c))

	second := start(t, "elect", path)
	out, err := double.Do(t.Context(), c, 21)
	require.NoError(t, err)
	require.Equal(t, 42, out)
	first.kill(t)
	require.Equal(t, "elected", second.line(t))
	out, err = double.Do(t.Context(), c, 4)
	require.NoError(t, err)
	require.Equal(t, 8, out)
	second.end(t)
	require.Equal(t, os.Getpid(), owner(t, c))
}

// Rule: Elect works in a process that owns the file already, returns what its function returns, and
// refuses a second call meanwhile. Close ends the function and waits for it.
func TestElectOfTheOwner(t *testing.T) {
	c := open(t, newPath(t))
	require.ErrorIs(t, c.Elect(t.Context(), nil), pawl.ErrInvalid)
	require.ErrorIs(t, c.Elect(t.Context(), func(context.Context, *bolt.Queue) error {
		return c.Elect(t.Context(), func(context.Context, *bolt.Queue) error { return nil })
	}), pawl.ErrInvalid)
	require.ErrorIs(t, c.Elect(t.Context(), func(context.Context, *bolt.Queue) error { return os.ErrDeadlineExceeded }), os.ErrDeadlineExceeded)

	runs, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- c.Elect(context.Background(), func(ctx context.Context, q *bolt.Queue) error {
			close(runs)
			return workerOf(q).Run(ctx)
		})
	}()
	<-runs
	require.NoError(t, c.Close())
	require.NoError(t, <-ended)
	require.ErrorIs(t, c.Elect(t.Context(), func(context.Context, *bolt.Queue) error { return nil }), pawl.ErrClosed)
}

// Rule: Elect waits for an owner that does not serve the file, and for one that is stopped, and ends with
// its context.
func TestElectWaits(t *testing.T) {
	for _, role := range []string{"hold", "serve"} {
		path := newPath(t)
		app := start(t, role, path)
		if role == "serve" {
			app.freeze(t)
		}
		c, err := newClient(path, &Options{Logger: quiet, Timeout: time.Millisecond})
		require.NoError(t, err)
		_, err = c.reach(t.Context())
		require.ErrorIs(t, err, bolt.ErrLocked)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		run := func(context.Context, *bolt.Queue) error { return nil }
		go func() { ended <- c.Elect(ctx, run) }()
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		go func() { ended <- c.Elect(t.Context(), run) }()
		app.kill(t)
		require.NoError(t, <-ended)
		require.NoError(t, c.Close())
	}
}

// Rule: Await survives a change of the owner, and so do events.
func TestWaitsSurviveAChangeOfTheOwner(t *testing.T) {
	path := newPath(t)
	app := start(t, "serve", path)
	c := open(t, path)
	id := add(t, c, 1)
	events := make(chan admin.Event)
	listening, stop := context.WithCancel(t.Context())
	defer stop()
	listened := make(chan error, 1)
	go func() {
		for e, err := range c.Events(listening) {
			if err != nil {
				listened <- err
				return
			}
			select {
			case events <- e:
			case <-listening.Done():
			}
		}
	}()
	for listens := false; !listens; { // until it listens
		select {
		case <-events:
			listens = true
		default:
			add(t, c, 1)
		}
	}
	ended := make(chan error, 1)
	go func() {
		e, err := c.Await(t.Context(), id)
		if err == nil && e.State != pawl.Completed {
			err = fs.ErrInvalid
		}
		ended <- err
	}()
	app.kill(t)
	require.Equal(t, os.Getpid(), owner(t, c))
	done := make(chan error, 1)
	working, end := context.WithCancel(t.Context())
	go func() {
		done <- c.Elect(working, func(ctx context.Context, q *bolt.Queue) error { return workerOf(q).Run(ctx) })
	}()
	require.NoError(t, <-ended)
	for moved := false; !moved; { // until the events of this owner come
		select {
		case e := <-events:
			moved = e.Missed > 0
		default:
			add(t, c, 2)
		}
	}
	stop()
	require.ErrorIs(t, <-listened, context.Canceled)
	end()
	require.NoError(t, <-done)
}

// Rule: an owner that cannot be used gives an error that says why, in the given time: one that does not serve
// the file, one that is stopped, and one whose socket others can reach.
func TestOwnersThatCannotBeUsed(t *testing.T) {
	short := &Options{Logger: quiet, Timeout: time.Millisecond}
	path := newPath(t)
	app := start(t, "hold", path)
	_, err := Open(t.Context(), path, short)
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.ErrorIs(t, err, admin.ErrNotLive)
	app.kill(t)

	app = start(t, "serve", path)
	app.freeze(t)
	_, err = Open(t.Context(), path, short)
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.ErrorIs(t, err, admin.ErrUnreachable)
	app.signal(t, syscall.SIGCONT)

	require.NoError(t, os.Chmod(path+".admin", 0o755))
	_, err = Open(t.Context(), path, short)
	require.ErrorIs(t, err, bolt.ErrLocked)
	require.ErrorIs(t, err, admin.ErrDistrusted)
}

// Rule: a socket that a killed owner left is replaced, and a note that leads nowhere is no owner.
func TestStaleSocket(t *testing.T) {
	path := newPath(t)
	start(t, "serve", path).kill(t)
	require.FileExists(t, filepath.Join(path+".admin", "socket"))
	c := open(t, path)
	require.Equal(t, os.Getpid(), owner(t, c))
	require.Equal(t, os.Getpid(), owner(t, open(t, path)))
}

// Rule: a bad path gives the error of bolt.Open, and bad options say what is wrong. Nothing is created.
func TestBadPaths(t *testing.T) {
	folder := filepath.Dir(newPath(t))
	_, err := Open(t.Context(), "", nil)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = Open(t.Context(), folder, nil)
	require.ErrorIs(t, err, bolt.ErrNotQueue)
	_, err = Open(t.Context(), filepath.Join(folder, "missing", "jobs.db"), nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Open(t.Context(), filepath.Join(folder, "jobs.db"), &Options{Timeout: -1})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	c := open(t, filepath.Join(folder, "jobs.db"))
	link := filepath.Join(folder, "link.db")
	require.NoError(t, os.Symlink(c.path, link))
	_, err = Open(t.Context(), link, nil)
	require.ErrorIs(t, err, bolt.ErrInsecure)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 3) // the file, the folder of its socket, and the link
}

// Rule: a client of a file that was replaced under its owner gets the owner's error, and the new file is
// not taken for the old one.
func TestReplacedFile(t *testing.T) {
	path := newPath(t)
	app := start(t, "serve", path)
	c := open(t, path)
	add(t, c, 1)
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err := note.Enqueue(t.Context(), c, Note{N: 2})
	require.ErrorIs(t, err, bolt.ErrReplaced)
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	app.kill(t)
	_, err = note.Enqueue(t.Context(), c, Note{N: 3})
	require.ErrorIs(t, err, bolt.ErrNotQueue)
}
