//go:build unix

package admin

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: DialFile reaches the app that serves a file, and nothing else. AwaitEnd returns when that app is
// killed.
func TestAwaitEndOfAKilledApp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	_, err := DialFile(t.Context(), path, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	app := startApp(t, "serve", path)
	a, err := DialFile(t.Context(), path, nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- AwaitEnd(t.Context(), a) }()
	app.killHard(t)
	require.NoError(t, <-ended)
	require.NoError(t, AwaitEnd(t.Context(), a), "it has ended already")
	_, err = DialFile(t.Context(), path, nil)
	require.ErrorIs(t, err, ErrUnreachable)
	app = startApp(t, "hold", path)
	_, err = DialFile(t.Context(), path, nil)
	require.ErrorIs(t, err, ErrUnreachable, "the note of the killed app is there still")
	app.killHard(t)
	require.NoError(t, a.Close())
}

// Rule: an app gets to know each process that waits for its file, for as long as it waits. The wait ends
// with its context, and with the server.
func TestCandidates(t *testing.T) {
	q := openLive(t)
	_, err := DialFile(t.Context(), q.Path(), nil)
	require.ErrorIs(t, err, ErrNotLive)
	waiting, gone := make(chan struct{}, 2), make(chan struct{}, 2)
	s, err := Serve(q, &Options{Logger: hclog.NewNullLogger(), Candidate: func(ctx context.Context) {
		context.AfterFunc(ctx, func() { gone <- struct{}{} })
		waiting <- struct{}{}
	}})
	require.NoError(t, err)
	a, err := DialFile(t.Context(), q.Path(), nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- AwaitEnd(ctx, a) }()
	<-waiting
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	<-gone
	go func() { ended <- AwaitEnd(t.Context(), a) }()
	<-waiting
	require.NoError(t, s.Close())
	require.NoError(t, <-ended)
	<-gone
	require.NoError(t, a.Close())
}

// Rule: AwaitEnd does not wait where it would not get to know the end: for the queue of this process, and
// for an app of an older build, or one that too many wait for.
func TestAwaitEndRefuses(t *testing.T) {
	require.ErrorIs(t, AwaitEnd(t.Context(), Of(openLive(t))), pawl.ErrUnsupported)
	for answer, is := range map[string]error{
		`{"error":{"code":"no_such_path","message":"there is none"}}`: pawl.ErrUnsupported,
		`{"error":{"code":"busy","message":"too many"}}`:              ErrBusy,
		`{"error":{"code":"denied","message":"not you"}}`:             ErrDenied,
	} {
		err := AwaitEnd(t.Context(), hostile(t, with("1", http.StatusNotFound, answer)))
		require.True(t, errors.Is(err, is), "%s: %v", answer, err)
	}
}
