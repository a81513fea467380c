package beanstalkd_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
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
	"github.com/gopawl/pawl/internal/process"
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
	if err := flag.Set("test.parallel", "16"); err != nil { // tests wait for servers, so there may be more than processors
		panic(err)
	}
	os.Exit(func() int {
		if shared.server, shared.missing = startServer("", "-z", "4000000"); shared.missing == nil {
			defer shared.Stop()
		}
		return m.Run()
	}())
}

// server is a server of a test.
type server struct {
	*process.Server
	url  string
	port string
}

// startServer starts a server on a port, or on any port with "", and waits until it answers.
func startServer(port string, args ...string) (*server, error) {
	if _, err := exec.LookPath("beanstalkd"); err != nil {
		return nil, errors.New("beanstalkd is missing; on Debian, install the package beanstalkd")
	}
	return process.OnPort(port, func(port string) (*server, error) { return startOn(port, args...) })
}

// startOn is startServer for one try.
func startOn(port string, args ...string) (*server, error) {
	s, err := process.Start(os.DevNull, func(pid int) bool {
		answered, err := ask("127.0.0.1:"+port, "pid")
		return err == nil && answered == pid
	}, append([]string{"beanstalkd", "-l", "127.0.0.1", "-p", port}, args...)...)
	return &server{Server: s, url: "beanstalkd://127.0.0.1:" + port, port: port}, err
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
	_, err := startOn(shared.port)
	require.ErrorIs(t, err, process.ErrEnded)
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
