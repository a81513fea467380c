package beanstalkd_test

import (
	"bufio"
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
)

// shared is the server of this test binary, without a log.
var shared struct {
	*server
	missing error // what is missing if there is none
	names   atomic.Int64
}

func TestMain(m *testing.M) {
	if os.Getenv(workOn) != "" {
		workUntilKilled()
		return
	}
	os.Exit(func() int {
		if shared.server, shared.missing = startServer(freePort(), "-z", "4000000"); shared.missing == nil {
			defer shared.stop()
		}
		return m.Run()
	}())
}

// server is a server of a test.
type server struct {
	url   string
	pid   int
	input io.Closer
	cmd   *exec.Cmd
}

// serverScript runs the server until its input ends, so that it ends with the test binary even when
// that panics or is killed. It stops the server by its process ID.
const serverScript = `
beanstalkd -l 127.0.0.1 "$@" &
echo $!
cat >/dev/null
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

// startServer starts a server and waits until it accepts connections.
func startServer(port string, args ...string) (*server, error) {
	if _, err := exec.LookPath("beanstalkd"); err != nil {
		return nil, errors.New("beanstalkd is missing; on Debian, install the package beanstalkd")
	}
	s := &server{url: "beanstalkd://127.0.0.1:" + port}
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
	text, _ := bufio.NewReader(output).ReadString('\n')
	if _, err := fmt.Sscan(text, &s.pid); err != nil {
		s.stop()
		return nil, fmt.Errorf("beanstalkd did not start: %q", text)
	}
	for tries := 0; ; tries++ {
		nc, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			return s, nc.Close()
		}
		if tries == 1000 {
			s.stop()
			return nil, fmt.Errorf("beanstalkd did not start: %w", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
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
func waiting(t testing.TB) (n int) {
	t.Helper()
	nc, err := net.Dial("tcp", strings.TrimPrefix(url(t), "beanstalkd://"))
	require.NoError(t, err)
	defer nc.Close()
	_, err = io.WriteString(nc, "stats\r\n")
	require.NoError(t, err)
	for in := bufio.NewScanner(nc); in.Scan(); {
		if text, ok := strings.CutPrefix(in.Text(), "current-waiting: "); ok {
			_, err := fmt.Sscan(text, &n)
			require.NoError(t, err)
			return n
		}
	}
	t.Fatal("the server does not tell who waits")
	return 0
}
