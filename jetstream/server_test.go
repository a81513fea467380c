package jetstream_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/transport/transporttest"
	"github.com/gopawl/pawl/jetstream"
)

func TestMain(m *testing.M) {
	faulty.WorkUntilKilled()
	if err := flag.Set("test.parallel", "16"); err != nil { // tests wait for leases, so there may be more than processors
		panic(err)
	}
	if os.Getenv(serveIn) != "" {
		serveUntilKilled()
		return
	}
	os.Exit(m.Run())
}

// startServer starts a server in this process that keeps its files in a folder. It listens on a port, on any
// port with -1, and on none with 0.
func startServer(folder string, port int) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, DontListen: port == 0, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true,
		SyncAlways: true, MaxPayload: 4 << 20,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		s.Shutdown()
		return nil, errors.New("the server did not start")
	}
	return s, nil
}

// servers are those of a folder each. A server runs while somebody uses it.
var servers struct {
	sync.Mutex
	by map[string]*running
}

type running struct {
	*server.Server
	users int
}

// use returns the server of a folder, which runs until release is called. Nobody else can connect to it.
func use(t testing.TB, folder string) (s *server.Server, release func()) {
	t.Helper()
	servers.Lock()
	defer servers.Unlock()
	one := servers.by[folder]
	if one == nil {
		s, err := startServer(folder, 0)
		if err != nil {
			t.Fatal(err)
		}
		if servers.by == nil {
			servers.by = make(map[string]*running)
		}
		one = &running{Server: s}
		servers.by[folder] = one
	}
	one.users++
	return one.Server, sync.OnceFunc(func() {
		servers.Lock()
		defer servers.Unlock()
		if one.users--; one.users == 0 {
			delete(servers.by, folder)
			one.Shutdown()
			one.WaitForShutdown()
		}
	})
}

// client is a queue whose server ends with its last client.
type client struct {
	*jetstream.Queue
	release func()
}

func (c *client) Close() error {
	defer c.release()
	return c.Queue.Close()
}

// connect opens a queue on the server of a folder. The caller closes it.
func connect(t testing.TB, folder string, o jetstream.Options) *client {
	t.Helper()
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	o.Timeout = cmp.Or(o.Timeout, transporttest.Timeout)
	s, release := use(t, folder)
	o.NATS = append(o.NATS, nats.InProcessServer(s))
	q, err := jetstream.Open(context.Background(), "nats://in-process", &o)
	if err != nil {
		release()
		t.Fatal(err)
	}
	return &client{q, release}
}

// open is connect for a queue that ends with the test.
func open(t testing.TB, folder string, o jetstream.Options) *client {
	t.Helper()
	q := connect(t, folder, o)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// freePort returns a port that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
