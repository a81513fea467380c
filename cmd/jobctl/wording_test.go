package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// onWrite calls a function at each write.
type onWrite func()

func (fn onWrite) Write(b []byte) (int, error) {
	fn()
	return len(b), nil
}

// Rule: interrupting an endless command prints nothing.
func TestInterruptOfAnEndlessCommandSaysNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	q := serveApp(t)
	for _, line := range []string{"--db app.db watch", "--db app.db -o jsonl watch", "--db app.db -o jsonl stats --watch 1h"} {
		ctx, interrupt := context.WithCancel(t.Context())
		var stderr bytes.Buffer
		code := make(chan int, 1)
		go func() { code <- runIn(ctx, words(line), nil, onWrite(interrupt), &stderr) }()
		for ctx.Err() == nil && len(code) == 0 { // until it prints one of them
			_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
			require.NoError(t, err)
		}
		require.Equal(t, exitInterrupted, <-code, line)
		require.Empty(t, stderr.String(), line)
	}
}

// Rule: an error names flags of jobctl, and not settings of the library.
func TestErrorsNameFlags(t *testing.T) {
	err := fmt.Errorf("%w: everybody may write to the file app.db; chmod o-w it, or set Options.Insecure", bolt.ErrInsecure)
	got := asOfToday(t.Context(), nil, false, func(*app) error { return err })
	require.Contains(t, got.stderr, "or add --insecure")
	require.NotContains(t, got.stderr, "Options.")

	build(t, everyState)
	require.Equal(t, exitOK, jobctl(t, words("--db app.db export --to jobs.jsonl")...).code)
	got = jobctl(t, words("--db app.db import --keep-ids jobs.jsonl")...)
	require.NotEqual(t, exitOK, got.code)
	require.Contains(t, got.stderr, "--skip-existing")
	require.NotContains(t, got.stderr, "SkipExisting")
}

// Rule: an address that answers and is no endpoint gives another error than an address that does
// not answer.
func TestWrongPathOfAnAddress(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	got := jobctl(t, "--addr", server.URL, "stats")
	require.Equal(t, exitLocked, got.code)
	require.Contains(t, got.stderr, "answered 404 Not Found, but is not a pawl endpoint; check the path")
}
