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

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
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

// Rule: a stream says immediately that the queue has changed since its page was read.
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
		_, news, _ := strings.Cut(read("queues"), `data-news="`)
		news, _, _ = strings.Cut(news, `"`)
		require.Equal(t, "retry: 5000\n\n", read("events?since="+news))
		_, err := sendMail.Enqueue(t.Context(), q, mail{})
		require.NoError(t, err)
		require.Equal(t, "retry: 5000\n\ndata: changed\n\n", read("events?since="+news))
		require.NoError(t, d.Close())
		require.NoError(t, q.Close())
	})
}

// Rule: the overview draws the last hour, and has the rates of the last five minutes, including the current minute. It
// has them even if no page was open before.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, d := empty(t)
		add := func(jobs int) {
			for range jobs {
				_, err := sendMail.Enqueue(t.Context(), q, mail{})
				require.NoError(t, err)
			}
		}
		overview := func() string {
			w := httptest.NewRecorder()
			d.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/", nil))
			return w.Body.String()
		}
		add(99)
		time.Sleep(10 * time.Minute) // virtual
		add(135)
		time.Sleep(4*time.Minute + 30*time.Second)
		require.Contains(t, overview(), "<dt>Enqueued</dt><dd>0.5 / s</dd>") // in 270 s
		require.Contains(t, overview(), "Chart: 234 enqueued")
		time.Sleep(time.Minute)
		require.Contains(t, overview(), "<dt>Enqueued</dt><dd>0.0 / s</dd>")
		require.NoError(t, d.Close())
		require.NoError(t, q.Close())
	})
}

// scripted is a queue of another process, which answers with the next statistics.
type scripted struct {
	admin.Admin
	looks int
	stats []admin.Stats
}

func (a *scripted) Stats(context.Context) (admin.Stats, error) {
	a.looks++
	return a.stats[min(a.looks, len(a.stats))-1], nil
}

// Rule: however many streams there are, the queue is read once a second, and only what an operator can see counts as a
// change: counts and transitions, not the size of the file.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(size int64, ready int, totals driver.Totals) admin.Stats {
			return admin.Stats{Totals: &totals, Stats: pawl.Stats{Storage: pawl.Storage{Size: size}, Queues: []pawl.QueueStats{{Name: "q", Counts: pawl.Counts{Ready: ready}}}}}
		}
		a := &scripted{stats: []admin.Stats{of(1, 1, driver.Totals{Changes: 9}), of(2, 1, driver.Totals{Changes: 9}), of(2, 2, driver.Totals{Changes: 9}),
			of(2, 2, driver.Totals{Changes: 11, Succeeded: 2}), of(2, 2, driver.Totals{Changes: 1, Succeeded: 1}), {}}}
		w := &watcher{admin: a}
		for i, want := range []uint64{1, 1, 2, 3, 4, 5} {
			for range 200 {
				version, _ := w.look(t.Context())
				require.Equal(t, want, version)
			}
			require.Equal(t, i+1, a.looks)
			time.Sleep(beat) // virtual
		}
	})
}

// Rule: a read that finds the same limits finds no change, even if an operator has set them.
func TestLooksAtLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(running, declared int) admin.Stats {
			one := pawl.QueueStats{Name: "q", Limits: pawl.Limits{Running: running}}
			if declared > 0 {
				one.Declared = &pawl.Limits{Running: declared}
			}
			return admin.Stats{Stats: pawl.Stats{Queues: []pawl.QueueStats{one}}}
		}
		w := &watcher{admin: &scripted{stats: []admin.Stats{of(2, 4), of(2, 4), of(2, 8), of(2, 0), of(2, 0), of(2, 8)}}}
		for _, want := range []uint64{1, 1, 2, 3, 3, 4} {
			version, _ := w.look(t.Context())
			require.Equal(t, want, version)
			time.Sleep(beat) // virtual
		}
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
