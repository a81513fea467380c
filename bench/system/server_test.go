package system

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gopawl/pawl/internal/need"
)

// limit ends a test that waits in vain. On a busy machine, what takes milliseconds may take seconds.
const limit = time.Minute

// startServer starts the server of a system for a test, and sees that its end is orderly.
func startServer(t *testing.T, s System) *Server {
	t.Helper()
	dir := t.TempDir()
	// The test's folder is closed to other users, and PostgreSQL runs as one under root.
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	server, err := s.Start(t.Context(), dir)
	if errors.Is(err, ErrAbsent) {
		need.Server(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return server
}

// testServer passes jobs through the queue of a system, from its start to its end.
func testServer(t *testing.T, s System) {
	server := startServer(t, s)
	t.Logf("%s: %s, %s", s.Name, s.Version, server.Version)
	if server.Version == "" || server.Addr == "" {
		t.Errorf("the server is %+v", server)
	}

	random := rand.NewChaCha8([32]byte{1})
	numbers := rand.New(random)
	payloads := make([][]byte, 200)
	missing := make(map[string]bool)
	for i := range payloads {
		// One is empty; the others are too long to be the same by chance.
		if i > 0 {
			payloads[i] = make([]byte, 16+numbers.IntN(5000-16+1))
			random.Read(payloads[i])
		} else {
			payloads[i] = []byte{}
		}
		missing[string(payloads[i])] = true
	}

	q := openServer(t, s, server)
	var group sync.WaitGroup
	for _, payload := range payloads[:50] {
		group.Go(func() {
			if err := q.Enqueue(t.Context(), payload); err != nil {
				t.Errorf("Enqueue: %v", err)
			}
		})
	}
	group.Wait()
	if err := q.EnqueueAll(t.Context(), payloads[50:]); err != nil {
		t.Fatalf("EnqueueAll: %v", err)
	}

	var mu sync.Mutex
	all := make(chan struct{})
	end := workServer(t, q, func(payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		if !missing[string(payload)] {
			t.Errorf("a payload of %d bytes came twice, or changed", len(payload))
			return
		}
		delete(missing, string(payload))
		if len(missing) == 0 {
			close(all)
		}
	})
	select {
	case <-all:
	case <-time.After(limit):
		t.Error("not all jobs came")
	}
	end()

	// A job that was left undone would come first in a queue that is opened without being
	// emptied, and it must not be there after Open.
	left := openServer(t, s, server)
	if err := left.Enqueue(t.Context(), []byte("left")); err != nil {
		t.Fatal(err)
	}
	if err := left.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}

	q = openServer(t, s, server)
	came := make(chan string, 10)
	end = workServer(t, q, func(payload []byte) { came <- string(payload) })
	if err := q.Enqueue(t.Context(), []byte("new")); err != nil {
		t.Fatal(err)
	}
	select {
	case payload := <-came:
		if payload != "new" {
			t.Errorf("a queue that was just opened has the job %q", payload)
		}
	case <-time.After(limit):
		t.Error("the job did not come")
	}
	end()
	if len(came) != 0 {
		t.Errorf("one more job came: %q", <-came)
	}
	if err := q.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func openServer(t *testing.T, s System, server *Server) Queue {
	t.Helper()
	q, err := s.Open(t.Context(), t.TempDir(), server)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return q
}

// workServer runs 16 workers until the function that it returns is called.
func workServer(t *testing.T, q Queue, handle func([]byte)) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- q.Work(ctx, 16, handle) }()
	return func() {
		t.Helper()
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Work: %v", err)
			}
		case <-time.After(limit):
			t.Error("Work goes on after the end of its context")
		}
	}
}

// TestServersSideBySide has the two Redis servers of asynq, and a Stop of each.
func TestServersSideBySide(t *testing.T) {
	for _, s := range []System{Asynq(), AsynqEverySec()} {
		server := startServer(t, s)
		q := openServer(t, s, server)
		t.Cleanup(func() { q.Close() })
		if err := q.Enqueue(t.Context(), []byte(s.Name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerEnds has a program that fails to start, and one that ended before Stop.
func TestServerEnds(t *testing.T) {
	b := new(beanstalkdServer)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "beanstalkd.sock"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := b.start(t.Context(), dir) // its socket is a folder
	if errors.Is(err, ErrAbsent) {
		need.Server(t, err.Error())
	}
	if err == nil {
		t.Fatal("start succeeded without a socket")
	}
	t.Log(err)

	server, err := b.start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.process.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-b.process.done
	if err := server.Stop(); err == nil {
		t.Error("Stop succeeded on a server that was killed")
	}
}

func TestLookupAbsent(t *testing.T) {
	if _, err := lookup("no-such-server", "nothing"); !errors.Is(err, ErrAbsent) {
		t.Errorf("lookup: %v", err)
	}
}
