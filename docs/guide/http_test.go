package guide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/metrics"
	"github.com/gopawl/pawl/worker"
)

// run serves HTTP and works on jobs until it receives a signal.
func run(ctx context.Context, listener net.Listener, path string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	// 1. The queue opens first and closes last.
	q, err := bolt.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	// 2. Operators can use jobctl from here on.
	operators, err := admin.Serve(q, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operators.Close()) }()

	// 3. HTTP requests enqueue jobs.
	server := &http.Server{Handler: routes(q)}
	served := make(chan error, 1)
	go func() {
		defer stop() // an app without its server stops
		served <- server.Serve(listener)
	}()
	closed := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		closed <- server.Shutdown(limit) // requests that run may finish, and may enqueue
	})

	// 4. The worker runs jobs, and blocks until ctx ends.
	w := worker.New(q, &worker.Options{Concurrency: 16})
	worker.Handle(w, SendWelcome, sendWelcome)
	err = w.Run(ctx)

	stop() // ctx is still alive if Run returned an error
	err = errors.Join(err, <-closed)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

func sendWelcome(ctx context.Context, job *pawl.Job[Welcome]) error {
	return send(ctx, job.Args.To)
}

func routes(q *bolt.Queue) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signup", func(rw http.ResponseWriter, r *http.Request) {
		to := r.FormValue("email")
		job, err := SendWelcome.Enqueue(r.Context(), q, Welcome{To: to}, pawl.Unique(to))
		switch {
		case errors.Is(err, pawl.ErrInvalid):
			http.Error(rw, "bad address", http.StatusBadRequest)
		case err != nil:
			http.Error(rw, "try again later", http.StatusServiceUnavailable)
		default:
			rw.WriteHeader(http.StatusAccepted) // the job is on the disk
			fmt.Fprintln(rw, job.ID)
		}
	})
	mux.Handle("GET /healthz", metrics.Health(q)) // 503 if the queue was closed, or its disk failed
	return mux
}

// Rule: the app of the page on HTTP enqueues what a request asks for, and stops without an error.
func TestHTTPApp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("admin.Serve needs a Unix socket")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	path := filepath.Join(t.TempDir(), "jobs.db")
	go func() { ended <- run(ctx, listener, path) }()

	base := "http://" + listener.Addr().String()
	answer, err := http.PostForm(base+"/signup", url.Values{"email": {"ada@example.com"}})
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusAccepted, answer.StatusCode, "%s", body)
	answer, err = http.Get(base + "/healthz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)

	http.DefaultClient.CloseIdleConnections()
	stop()
	require.NoError(t, <-ended)
}
