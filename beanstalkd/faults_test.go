package beanstalkd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/worker"
)

// The environment of a process that works until it is killed.
const (
	workOn = "PAWL_TEST_WORK_ON" // the place of the queue
	doneIn = "PAWL_TEST_DONE_IN" // the file that gets a line for each run
)

var number = pawl.Define[int]("number", pawl.Backoff(pawl.Fixed(time.Second)))

func faultOptions() *beanstalkd.Options {
	return &beanstalkd.Options{Prefix: "faults", Lease: 2 * time.Second, MaxCrashes: beanstalkd.NoMaxCrashes,
		Timeout: 5 * time.Second, Logger: hclog.NewNullLogger()}
}

// newRecorder returns a worker that appends the numbers of its jobs to a file.
func newRecorder(q pawl.Queue, path string) (*worker.Worker, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	w := worker.New(q, &worker.Options{Concurrency: 8, Logger: hclog.NewNullLogger()})
	worker.Handle(w, number, func(_ context.Context, j *pawl.Job[int]) error {
		_, err := fmt.Fprintln(f, j.Args)
		return err
	})
	return w, nil
}

// workUntilKilled is the process that works. It ends with its parent.
func workUntilKilled() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		q, err := beanstalkd.Open(context.Background(), os.Getenv(workOn), faultOptions())
		if err != nil {
			time.Sleep(5 * time.Millisecond) // the server is away
			continue
		}
		w, err := newRecorder(q, os.Getenv(doneIn))
		if err == nil {
			err = w.Run(context.Background())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child starts a process that works, and returns how to kill it.
func child(t *testing.T, where, path string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workOn+"="+where, doneIn+"="+path)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return func() {
		_ = cmd.Process.Kill()
		_ = input.Close()
		_ = cmd.Wait()
	}
}

// proxy forwards connections to a server, and cuts them.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	open     map[net.Conn]bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, open: make(map[net.Conn]bool)}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.open[in], p.open[out] = true, true
			p.mu.Unlock()
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					p.close(in, out)
				}()
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); p.cut() })
	return p
}

func (p *proxy) close(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.open, c)
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}

// faultJobs is how many jobs the test of faults enqueues: 2 000, or as many as the environment says.
func faultJobs(t *testing.T) int {
	text := os.Getenv("PAWL_FAULT_JOBS")
	if text == "" {
		return 2000
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// Rule: over a server with -b and -f0, no job is lost whose Enqueue returned nil, although workers
// are killed, the server is killed and restarted, and connections are cut.
func TestNothingIsLost(t *testing.T) {
	url(t)
	port, folder := "", t.TempDir()
	start := func() *server {
		s, err := startServer(port, "-b", folder, "-f0")
		require.NoError(t, err)
		return s
	}
	server := start()
	port = server.port // also after a restart
	defer func() { server.stop() }()
	p := newProxy(t, "127.0.0.1:"+port)
	where, path := "beanstalkd://"+p.listener.Addr().String(), filepath.Join(t.TempDir(), "done")
	kills := []func(){child(t, where, path), child(t, where, path)}
	defer func() {
		for _, kill := range kills {
			kill()
		}
	}()
	q, err := beanstalkd.Open(t.Context(), where, faultOptions())
	require.NoError(t, err)
	defer q.Close()

	jobs := faultJobs(t)
	var next, accepted, unknown, away atomic.Int64
	var producers sync.WaitGroup
	acknowledged := make([]atomic.Bool, jobs)
	tick := make(chan struct{}, jobs)
	for range 16 {
		producers.Go(func() {
			for n := int(next.Add(1)) - 1; n < jobs; n = int(next.Add(1)) - 1 {
				for {
					_, err := number.Enqueue(t.Context(), q, n)
					if errors.Is(err, beanstalkd.ErrUnavailable) { // nothing is stored
						away.Add(1)
						time.Sleep(time.Millisecond)
						continue
					}
					if errors.Is(err, pawl.ErrUnknownOutcome) {
						unknown.Add(1)
					} else if err != nil {
						t.Errorf("enqueue: %v", err)
					} else {
						acknowledged[n].Store(true)
						accepted.Add(1)
					}
					break
				}
				tick <- struct{}{}
			}
		})
	}
	const faults = 12
	for n := range jobs {
		<-tick
		if n%(jobs/faults) != jobs/faults/2 {
			continue
		}
		switch fault := n / (jobs / faults); fault % 3 {
		case 0:
			kills[fault%2]()
			kills[fault%2] = child(t, where, path)
		case 1:
			p.cut()
		case 2:
			server.stop()
			server = start()
		}
	}
	producers.Wait()

	last := open(t, server.url, *faultOptions())
	w, err := newRecorder(last, path)
	require.NoError(t, err)
	require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
	runs := make(map[int]int)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		require.NoError(t, err)
		runs[n]++
	}
	lost, again := 0, 0
	for n := range acknowledged {
		if acknowledged[n].Load() && runs[n] == 0 {
			lost++
		}
		again += max(0, runs[n]-1)
	}
	t.Logf("%d jobs acknowledged, %d with an unknown outcome, %d refused while the server was away; lost %d, run again %d",
		accepted.Load(), unknown.Load(), away.Load(), lost, again)
	require.Zero(t, lost)
	require.Greater(t, accepted.Load(), int64(jobs/2))
	stats, err := last.Stats(t.Context())
	require.NoError(t, err)
	for _, row := range stats.Queues {
		require.Zero(t, row.Counts)
	}
}
