package redis_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	client "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/need"
	"github.com/gopawl/pawl/internal/process"
	"github.com/gopawl/pawl/redis"
)

// shared is the server of this test binary, without a log on disk.
var shared struct {
	*server
	missing error // what is missing if there is none
	names   atomic.Int64
}

func TestMain(m *testing.M) {
	client.SetLogger(quiet{}) // it reports each failure to connect
	faulty.WorkUntilKilled()
	if err := flag.Set("test.parallel", "16"); err != nil { // tests wait for servers, so there may be more than processors
		panic(err)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "redis")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if shared.server, shared.missing = startServer(dir); shared.missing == nil {
			defer shared.Stop()
		}
		return m.Run()
	}())
}

// quiet is a logger of the client without output.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// server is a server of a test, on a Unix socket in a folder.
type server struct {
	*process.Server
	url string
}

// startServer starts a server on the data in a folder, and waits until it answers.
func startServer(dir string, args ...string) (*server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, errors.New("redis-server is missing; on Debian, install the package redis-server")
	}
	socket := filepath.Join(dir, "s")
	_ = os.Remove(socket) // of a server that was killed
	s, err := process.Start(filepath.Join(dir, "log"), func(int) bool { return answers(socket) },
		append([]string{"redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", ""}, args...)...)
	return &server{Server: s, url: "unix://" + socket}, err
}

// answers reports whether the server on a socket answers, with its data loaded.
func answers(socket string) bool {
	nc, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(nc, "PING\r\n"); err != nil {
		return false
	}
	line, _ := bufio.NewReader(nc).ReadString('\n')
	return line == "+PONG\r\n"
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

// newName returns the name of a queue that no other test has.
func newName() string { return fmt.Sprintf("t%d", shared.names.Add(1)) }

// connect returns a client of a server.
func connect(t testing.TB, where string) *client.Client {
	t.Helper()
	o, err := client.ParseURL(where)
	require.NoError(t, err)
	c := client.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// open opens a queue, by default with a new name, and closes it with the test.
func open(t testing.TB, where string, o redis.Options) *redis.Queue {
	t.Helper()
	if o.Name == "" {
		o.Name = newName()
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	q, err := redis.Open(t.Context(), where, &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}
