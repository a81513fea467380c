package servicebus_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/internal/process"
	"github.com/gopawl/pawl/internal/transport/transporttest"
	"github.com/gopawl/pawl/servicebus"
)

// shared is the stand-in of this test binary, which keeps messages in memory.
var shared struct {
	*standIn
	missing error // what is missing if there is none
	names   atomic.Int64
}

func TestMain(m *testing.M) {
	faulty.WorkUntilKilled()
	if err := flag.Set("test.parallel", "16"); err != nil { // tests wait for servers, so there may be more than processors
		panic(err)
	}
	os.Exit(func() int {
		if shared.standIn, shared.missing = startStandIn("", ""); shared.missing == nil {
			defer shared.stop()
		}
		return m.Run()
	}())
}

// standIn is a process of testdata/standin.py, which stands in for Service Bus. It ends with the test binary, even when
// that is killed, since it ends with its input.
type standIn struct {
	port    string
	virtual string // the port of brokers in virtual time
	cmd     *exec.Cmd
	input   io.Closer
}

// python returns a Python that has the package proton.
func python() (string, error) {
	for _, name := range []string{"python3", "/usr/bin/python3"} { // another may be first in the path
		if exec.Command(name, "-c", "import proton").Run() == nil {
			return name, nil
		}
	}
	return "", errors.New("Python with Qpid Proton is missing, which runs the stand-in for Service Bus; on Debian, install the package python3-qpid-proton")
}

// startStandIn starts a stand-in on a port, or on any port with "", and waits until it listens. It keeps the
// messages in a file, unless that is "".
func startStandIn(port, journal string) (*standIn, error) {
	name, err := python()
	if err != nil {
		return nil, err
	}
	return process.OnPort(port, func(port string) (*standIn, error) {
		s := &standIn{port: port}
		return s, s.start(name, journal)
	})
}

func (s *standIn) start(python, journal string) error {
	s.cmd = exec.Command(python, "testdata/standin.py", s.port, journal)
	s.cmd.Stderr = os.Stderr
	input, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	output, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.input = input
	line, err := bufio.NewReader(output).ReadString('\n')
	if _, scanned := fmt.Sscanf(line, "ready %s\n", &s.virtual); scanned != nil {
		s.stop()
		return fmt.Errorf("%w: the stand-in on port %s: %q, %w", process.ErrEnded, s.port, line, err)
	}
	return nil
}

// stop kills the stand-in.
func (s *standIn) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.input.Close()
	_ = s.cmd.Wait()
}

// place is the connection string of the server at an address.
func place(address string) string {
	return "Endpoint=sb://" + address + ";SharedAccessKeyName=app;SharedAccessKey=" + secret + ";UseDevelopmentEmulator=true"
}

// secret is a key that no error and no log may contain.
const secret = "c2VjcmV0LW9mLXRoZS1hcHA="

// here is the place of the stand-in of this test binary.
func here(t testing.TB) string {
	t.Helper()
	missing := ""
	if shared.missing != nil {
		missing = shared.missing.Error()
	}
	need.Server(t, missing)
	return place("127.0.0.1:" + shared.port)
}

// newPrefix returns the prefix of Service Bus queues that no other test has. Its parts are settings of the stand-in.
func newPrefix(parts ...string) string {
	return strings.Join(append([]string{fmt.Sprintf("t%d", shared.names.Add(1))}, parts...), ".")
}

// open opens a queue, by default with Service Bus queues of its own, and closes it with the test.
func open(t testing.TB, where string, o servicebus.Options) *servicebus.Queue {
	t.Helper()
	if o.Prefix == "" {
		o.Prefix = newPrefix()
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	o.Timeout = cmp.Or(o.Timeout, transporttest.Timeout)
	q, err := servicebus.Open(context.Background(), where, &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// locking returns options with which leases have a length, for Service Bus queues of their own.
func locking(length time.Duration) servicebus.Options {
	lock := min(length+2*time.Second, length*5/4)
	return servicebus.Options{Lock: lock, Prefix: newPrefix(fmt.Sprintf("lock%d", lock.Milliseconds()))}
}

// Rule: each row of the table of nack and abandon, what is refused, and a drain.
func TestTable(t *testing.T) {
	t.Parallel()
	here(t)
	transporttest.Run(t, transporttest.Engine{
		Name:    "servicebus",
		Crashes: true,
		Misses:  time.Second, // as a fetch that does not wait takes for proof
		New: func(t *testing.T, o transporttest.Options) func() transporttest.Queue {
			with := locking(o.Lease)
			with.Timeout = transporttest.Timeout
			with.MaxCrashes, with.OnEvent, with.Collector = o.MaxCrashes, o.OnEvent, o.Collector
			return func() transporttest.Queue { return open(t, here(t), with) }
		},
	})
}
