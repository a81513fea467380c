package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/engine"
)

// opened is what the test's own engine was asked to open.
var opened string

var errOpened = errors.New("opened")

func init() {
	engine.Register("test", func(_ context.Context, where string) (engine.Queue, error) {
		opened = where
		return nil, errOpened
	})
	engine.RegisterPath("paths", func(_ context.Context, where string) (engine.Queue, error) {
		opened = where
		return nil, errOpened
	})
}

// Rule: a path opens a file, with or without its scheme.
func TestOpenFile(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct{ where, file string }{
		{filepath.Join(folder, "a.db"), "a.db"},
		{"file:" + filepath.Join(folder, "b.db"), "b.db"},
		{"file://" + filepath.Join(folder, "c.db"), "c.db"},
		{"FILE:" + filepath.Join(folder, "e.db"), "e.db"},
		{folder + "/test:d.db", "test:d.db"},
	} {
		q, err := engine.Open(t.Context(), c.where)
		require.NoError(t, err)
		_, err = pawl.Define[int]("k").Enqueue(t.Context(), q, 1)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(folder, c.file), filepath.Clean(q.(*bolt.Queue).Path()))
		require.NoError(t, q.Close())
	}
}

// Rule: an engine whose places are paths gets the path, with or without slashes before it.
func TestOpenPath(t *testing.T) {
	for where, want := range map[string]string{
		"paths:app.db": "app.db", "PATHS:/srv/app.db": "/srv/app.db", "paths:///srv/app.db": "/srv/app.db", "paths:a=b c": "a=b c",
	} {
		_, err := engine.Open(t.Context(), where)
		require.ErrorIs(t, err, errOpened)
		require.Equal(t, want, opened)
	}
	_, err := engine.Open(t.Context(), "paths:")
	require.ErrorContains(t, err, "it is empty")
}

// Rule: a URL goes to the engine of its scheme, which is in lower case.
func TestOpenByScheme(t *testing.T) {
	for where, want := range map[string]string{"test://user:secret@host/db": "test://user:secret@host/db", "TEST://X": "test://X"} {
		_, err := engine.Open(t.Context(), where)
		require.ErrorIs(t, err, errOpened)
		require.Equal(t, want, opened)
	}
}

// Rule: a place that no engine can open is refused by an error that says why and has no password.
func TestOpenRefused(t *testing.T) {
	opened = ""
	for where, want := range map[string]string{
		"":                        "it is empty",
		"host=db password=secret": "it is a list of words",
		"Endpoint=sb://h/;SharedAccessKey=secret": "put servicebus: in front",
		"file:":                         "it is empty",
		"postgres://app:hunter2@db/app": `the program has no engine for postgres:, only for file, paths, test; is the import of one forgotten, such as _ "github.com/gopawl/pawl/postgres"?`,
		"postgresql:app:hunter2@db/app": "the program has no engine for postgresql:",
		"redis+tls://:hunter2@db/0":     "the program has no engine for redis+tls:",
		"test:app:hunter2@db":           "test: is followed by //",
		"test:/hunter2":                 "test: is followed by //",
	} {
		q, err := engine.Open(t.Context(), where)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
		require.Nil(t, q)
	}
	require.Empty(t, opened)
}

// Rule: a file that cannot be opened gives no queue.
func TestOpenFails(t *testing.T) {
	q, err := engine.Open(t.Context(), filepath.Join(t.TempDir(), "none", "jobs.db"))
	require.Error(t, err)
	require.Nil(t, q)
}

// Rule: a second engine of a scheme is a mistake of the program.
func TestRegisterTwice(t *testing.T) {
	require.Panics(t, func() { engine.Register(engine.File, nil) })
}
