package dashboard

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// empty returns a dashboard over an empty queue.
func empty(t *testing.T) (*bolt.Queue, *Dashboard) {
	t.Helper()
	q, err := bolt.Open(filepath.Join(t.TempDir(), "app.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	d, err := New(admin.Of(q), &Options{Authorize: everything, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	return q, d
}

// Rule: a stream says at most once a second that the queue has changed, says nothing while it has not, and
// ends with the dashboard.
func TestStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, d := empty(t)
		w := httptest.NewRecorder()
		ended := make(chan struct{})
		go func() {
			d.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/events", nil))
			close(ended)
		}()
		time.Sleep(2500 * time.Millisecond) // virtual
		for range 5 {
			_, err := sendMail.Enqueue(t.Context(), q, mail{})
			require.NoError(t, err)
		}
		time.Sleep(3 * time.Second)
		_, err := sendMail.Enqueue(t.Context(), q, mail{})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, d.Close())
		<-ended
		require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
		require.Equal(t, "retry: 5000\n\ndata: changed\n\ndata: changed\n\n", w.Body.String())
		require.NoError(t, q.Close())
	})
}

// Rule: a stream says at once that the queue has changed since its page was read.
func TestStreamsMissNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, d := empty(t)
		read := func(path string) string {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // virtual
			defer cancel()
			w := httptest.NewRecorder()
			d.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/"+path, nil).WithContext(ctx))
			return w.Body.String()
		}
		read("queues") // begins to count
		synctest.Wait()
		_, news, _ := strings.Cut(read("queues"), `data-news="`)
		news, _, _ = strings.Cut(news, `"`)
		require.Equal(t, "retry: 5000\n\n", read("events?since="+news))
		_, err := sendMail.Enqueue(t.Context(), q, mail{})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, "retry: 5000\n\ndata: changed\n\n", read("events?since="+news))
		require.NoError(t, d.Close())
		require.NoError(t, q.Close())
	})
}

// Rule: the overview counts what happened since somebody looks, and stops when nobody does.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, d := empty(t)
		d.watch.touch()
		synctest.Wait()
		for range 30 {
			_, err := sendMail.Enqueue(t.Context(), q, mail{})
			require.NoError(t, err)
		}
		time.Sleep(10 * time.Second)
		f := d.watch.flow()
		require.Equal(t, 30, f.Enqueued)
		require.InDelta(t, 3, f.PerSecond(f.Enqueued), 0.01)
		time.Sleep(idle)
		synctest.Wait()
		require.Nil(t, d.watch.flow())
		d.watch.touch()
		synctest.Wait()
		require.Zero(t, d.watch.flow().Enqueued)
		require.NoError(t, d.Close())
		require.NoError(t, q.Close())
	})
}

// openStalled opens n streams whose clients read the status and then nothing.
func openStalled(t testing.TB, d *Dashboard, n int) (server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(d)
	address := server.Listener.Addr().String()
	host := strings.Replace(address, "127.0.0.1", "localhost", 1)
	for range n {
		var dialer net.Dialer
		c, err := dialer.DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = c.Write([]byte("GET /events HTTP/1.1\r\nHost: " + host + "\r\n\r\n"))
		require.NoError(t, err)
		line, err := bufio.NewReader(c).ReadString('\n') // the last thing that it reads
		require.NoError(t, err)
		require.Contains(t, line, "200 OK")
	}
	return server
}

// Rule: no more than a bounded number of pages update themselves, and clients that read nothing keep
// neither the queue nor other pages waiting.
func TestStalledStreams(t *testing.T) {
	q, d := empty(t)
	server := openStalled(t, d, maxStreams)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		server.Close()
		require.NoError(t, q.Close())
	})
	answer, err := http.Get(server.URL + "/events")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	for range 50 {
		_, err := sendMail.Enqueue(t.Context(), q, mail{})
		require.NoError(t, err)
	}
	answer, err = http.Get(server.URL + "/queues")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}
