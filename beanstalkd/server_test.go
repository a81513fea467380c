package beanstalkd_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/internal/transport/transporttest"
)

// shared is the server of this test binary, without a log.
var shared struct {
	*server
	missing error // what is missing if there is none
	names   atomic.Int64
}

func TestMain(m *testing.M) {
	faulty.WorkUntilKilled()
	os.Exit(func() int {
		if shared.server, shared.missing = startServer("", "-z", "4000000"); shared.missing == nil {
			defer shared.stop()
		}
		return m.Run()
	}())
}

// server is a server of a test.
type server struct {
	url   string
	port  string
	pid   int
	input io.Closer
	cmd   *exec.Cmd
}

// serverScript runs the server until its input ends, so that it ends with the test binary even when
// that panics or is killed. It stops the server by its process ID. Its output ends with the server.
const serverScript = `
beanstalkd -l 127.0.0.1 "$@" &
echo $!
exec >/dev/null
cat
kill -9 $! 2>/dev/null
wait
`

// freePort returns a port that nobody listens on.
func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// errEnded says that a server ended as soon as it started, as it does when its port is taken.
var errEnded = errors.New("beanstalkd ended at once")

// startServer starts a server on a port, or on any port with "", and waits until it answers. It tries
// for 60 s.
func startServer(port string, args ...string) (*server, error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		s, err := tryServer(cmp.Or(port, freePort()), deadline, args...)
		if !errors.Is(err, errEnded) || time.Now().After(deadline) {
			return s, err
		}
	}
}

// tryServer is startServer for one try.
func tryServer(port string, deadline time.Time, args ...string) (*server, error) {
	if _, err := exec.LookPath("beanstalkd"); err != nil {
		return nil, errors.New("beanstalkd is missing; on Debian, install the package beanstalkd")
	}
	s := &server{url: "beanstalkd://127.0.0.1:" + port, port: port}
	s.cmd = exec.Command("/bin/sh", append([]string{"-c", serverScript, "sh", "-p", port}, args...)...)
	input, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.input = input
	in := bufio.NewReader(output)
	text, _ := in.ReadString('\n')
	if _, err := fmt.Sscan(text, &s.pid); err != nil {
		s.stop()
		return nil, fmt.Errorf("beanstalkd did not start: %q", text)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	for {
		pid, err := ask("127.0.0.1:"+port, "pid")
		if err == nil && pid == s.pid { // and not somebody else's server
			return s, nil
		}
		select {
		case <-ended:
			s.stop()
			return nil, fmt.Errorf("%w: port %s", errEnded, port)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.stop()
			return nil, fmt.Errorf("beanstalkd did not start: %w", err)
		}
	}
}

// ask returns a figure of the server at an address.
func ask(address, name string) (n int, err error) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(nc, "stats\r\n"); err != nil {
		return 0, err
	}
	for in := bufio.NewScanner(nc); in.Scan(); {
		if text, ok := strings.CutPrefix(in.Text(), name+": "); ok {
			_, err := fmt.Sscan(text, &n)
			return n, err
		}
	}
	return 0, fmt.Errorf("the server at %s does not report its %s", address, name)
}

// Rule: a test never takes somebody else's server for its own. It starts its server on another port.
func TestPortTaken(t *testing.T) {
	url(t)
	_, err := tryServer(shared.port, time.Now().Add(time.Minute))
	require.ErrorIs(t, err, errEnded)
}

// stop kills the server. Nothing of it runs afterwards.
func (s *server) stop() {
	if s.pid > 0 {
		if p, err := os.FindProcess(s.pid); err == nil {
			_ = p.Kill()
		}
	}
	_ = s.input.Close()
	_ = s.cmd.Wait()
}

// url returns the place of the server of this test binary.
func url(t testing.TB) string {
	t.Helper()
	missing := ""
	if shared.missing != nil {
		missing = shared.missing.Error()
	}
	need.Server(t, missing)
	return shared.url
}

// newPrefix returns the prefix of tubes that no other test has.
func newPrefix() string { return fmt.Sprintf("t%d", shared.names.Add(1)) }

// open opens a queue, by default with tubes of its own, and closes it with the test.
func open(t testing.TB, where string, o beanstalkd.Options) *beanstalkd.Queue {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = newPrefix()
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	o.Timeout = cmp.Or(o.Timeout, transporttest.Timeout)
	q, err := beanstalkd.Open(context.Background(), where, &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// deadBody returns the body of the first job of a tube that is buried.
func deadBody(t testing.TB, tube string) string {
	t.Helper()
	nc, err := net.Dial("tcp", strings.TrimPrefix(url(t), "beanstalkd://"))
	require.NoError(t, err)
	defer nc.Close()
	_, err = io.WriteString(nc, "use "+tube+"\r\npeek-buried\r\n")
	require.NoError(t, err)
	in := bufio.NewReader(nc)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	var number, size int
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	_, err = fmt.Sscanf(line, "FOUND %d %d", &number, &size)
	require.NoError(t, err)
	body := make([]byte, size)
	_, err = io.ReadFull(in, body)
	require.NoError(t, err)
	return string(body)
}

// putRaw stores a body in a tube, as any client of the server can.
func putRaw(t testing.TB, tube, body string) {
	t.Helper()
	nc, err := net.Dial("tcp", strings.TrimPrefix(url(t), "beanstalkd://"))
	require.NoError(t, err)
	defer nc.Close()
	_, err = fmt.Fprintf(nc, "use %s\r\nput 0 0 5 %d\r\n%s\r\n", tube, len(body), body)
	require.NoError(t, err)
	in := bufio.NewReader(nc)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "INSERTED")
}

// waiting returns how many connections wait for a job.
func waiting(t testing.TB) int {
	t.Helper()
	n, err := ask(strings.TrimPrefix(url(t), "beanstalkd://"), "current-waiting")
	require.NoError(t, err)
	return n
}
