package admin

import (
	"context"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
)

// testTimeout bounds what a test waits for: a busy machine takes its time.
const testTimeout = 10 * time.Minute

// The client has the same contract as the others, over the socket of a server and over a handler
// that an app has mounted.
func init() {
	if runtime.GOOS != "windows" {
		implementations = append(implementations, implementation{name: "Dial over Serve", live: true, open: dialServed})
	}
	implementations = append(implementations, implementation{name: "Dial over Handler", live: true, open: dialMounted})
}

func dialServed(t *testing.T, _ string, q *bolt.Queue, _ func() time.Time) Admin {
	s := serveTest(t, q)
	a, err := Dial(context.Background(), s.Addr(), &DialOptions{Timeout: testTimeout})
	require.NoError(t, err)
	return a
}

func dialMounted(t *testing.T, _ string, q *bolt.Queue, _ func() time.Time) Admin {
	s := httptest.NewServer(handlerFor(t, Of(q), &HandlerOptions{Token: "t", Logger: hclog.NewNullLogger(), MaxBody: 8 << 20}))
	t.Cleanup(s.Close)
	a, err := Dial(context.Background(), s.URL, &DialOptions{Token: "t", Timeout: testTimeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// serveTest serves a queue until the end of the test.
func serveTest(t testing.TB, q *bolt.Queue) *Server {
	t.Helper()
	s, err := Serve(q, &Options{Name: "test", Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
