package admin

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
)

// openLive opens a queue in a folder of the test, as an app would.
func openLive(t testing.TB) *bolt.Queue {
	t.Helper()
	return openLiveAt(t, filepath.Join(memdir.New(t), "jobs.db"))
}

func openLiveAt(t testing.TB, path string) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// openTest is Open with limits that suit a busy machine.
func openTest(path string) (Admin, error) {
	return open(context.Background(), offline.New(path, nil), nil, testTimeout, func() {})
}

// handlerFor returns a [Handler] that serves everyone, unless opts has a token.
func handlerFor(t testing.TB, a Admin, opts *HandlerOptions) http.Handler {
	t.Helper()
	var o HandlerOptions
	if opts != nil {
		o = *opts
	}
	o.NoAuth = o.Token == ""
	h, err := Handler(a, &o)
	require.NoError(t, err)
	return h
}
