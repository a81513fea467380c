package metrics_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/metrics"
)

// openSource is a source that knows whether it is open, and how its last commit ended.
type openSource struct {
	source
	done   chan struct{}
	reason error
	at     time.Time
	failed error
}

func (s *openSource) Done() <-chan struct{}          { return s.done }
func (s *openSource) Err() error                     { return s.reason }
func (s *openSource) LastCommit() (time.Time, error) { return s.at, s.failed }

type runner bool

func (r runner) Running() bool { return bool(r) }

func requireAnswer(t *testing.T, h http.Handler, code int, body string) {
	t.Helper()
	w := get(h, http.MethodGet)
	require.Equal(t, code, w.Code)
	require.Equal(t, body+"\n", w.Body.String())
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
}

// Rule: a process is healthy as long as a restart would not help, and ready when it can take jobs in
// and run them.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &openSource{done: make(chan struct{})}
		health, idle := metrics.Health(q), metrics.Ready(q)
		requireAnswer(t, health, 200, "healthy")
		requireAnswer(t, idle, 200, "ready")
		requireAnswer(t, metrics.Ready(q, runner(true), runner(true)), 200, "ready")
		requireAnswer(t, metrics.Ready(q, runner(true), runner(false)), 503, "not ready: worker 2 of 2 is not running")

		q.at, q.failed = time.Now(), errors.New("no space left on device")
		requireAnswer(t, health, 200, "healthy")
		requireAnswer(t, idle, 503, "not ready: the last commit failed: no space left on device")
		time.Sleep(10 * time.Second)
		requireAnswer(t, idle, 200, "ready")
		q.failed = nil

		q.err = errors.New("no connection")
		requireAnswer(t, health, 200, "healthy")
		requireAnswer(t, idle, 503, "not ready: no connection")
		q.err = nil

		close(q.done)
		requireAnswer(t, health, 503, "not healthy: the queue was closed")
		q.reason = errors.New("the sync failed")
		requireAnswer(t, health, 503, "not healthy: the sync failed")
		requireAnswer(t, idle, 503, "not ready: the sync failed")
		require.Equal(t, http.StatusMethodNotAllowed, get(health, http.MethodPost).Code)
	})
}

// Rule: a queue that does not say whether it is open is healthy while it can be read.
func TestHealthOfAQueueWithoutDone(t *testing.T) {
	requireAnswer(t, metrics.Health(source{}), 200, "healthy")
	requireAnswer(t, metrics.Ready(source{}), 200, "ready")
	closed := source{err: errors.New("queue is closed")}
	requireAnswer(t, metrics.Health(closed), 503, "not healthy: queue is closed")
	requireAnswer(t, metrics.Ready(closed), 503, "not ready: queue is closed")
}
