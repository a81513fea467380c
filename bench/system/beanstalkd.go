package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/beanstalkd/go-beanstalk"
	"golang.org/x/sync/errgroup"
)

// Beanstalkd is beanstalkd with a log that it syncs at every write.
func Beanstalkd() System {
	b := new(beanstalkdServer)
	return System{
		Name:       "beanstalkd",
		Durability: Synced,
		Settings: fmt.Sprintf("%s; a connection for each producer and worker; bulk: %d connections",
			beanstalkdSettings, producers),
		Version: "go-beanstalk " + moduleVersion("github.com/beanstalkd/go-beanstalk"),
		Start:   b.start,
		Open:    b.open,
	}
}

const (
	// The default, 65535, is a byte short of the longest payload.
	beanstalkdLimit = 128 << 10

	// A worker that holds a job for longer loses it to another.
	beanstalkdTTR = 10 * time.Minute
)

// beanstalkdSettings are those of the server.
var beanstalkdSettings = fmt.Sprintf("Unix socket, -b -f 0 -z %d", beanstalkdLimit)

// beanstalkdServer is a server. It has no command that empties it. Its jobs could be deleted one by one,
// a sync for each, or left in a tube that nobody reads, where they would be moved on from log to
// log. So restart starts the program anew on an empty folder, which takes milliseconds.
type beanstalkdServer struct {
	program, socket, dir string
	process              *process
}

func (b *beanstalkdServer) start(ctx context.Context, dir string) (*Server, error) {
	var err error
	if b.program, err = lookup("beanstalkd", "beanstalkd"); err != nil {
		return nil, err
	}
	if b.socket, err = socketPath(dir, "beanstalkd.sock"); err != nil {
		return nil, err
	}
	b.dir = dir
	version, err := output(ctx, b.program, "-v")
	if err != nil {
		return nil, err
	}
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	return &Server{
		Addr:    b.socket,
		Version: version,
		Stop:    func() error { return b.process.stop() },
	}, nil
}

func (b *beanstalkdServer) run(ctx context.Context) error {
	log := filepath.Join(b.dir, "binlog")
	if err := os.RemoveAll(log); err != nil {
		return err
	}
	if err := os.Mkdir(log, 0o700); err != nil {
		return err
	}
	p, err := launch(exec.Command(b.program,
		"-l", "unix:"+b.socket,
		"-b", log, "-f", "0", // 0 ms between two syncs
		"-z", strconv.Itoa(beanstalkdLimit),
	), syscall.SIGTERM, filepath.Join(b.dir, "beanstalkd.log"))
	if err != nil {
		return err
	}
	b.process = p
	return p.await(ctx, func(context.Context) error {
		conn, err := beanstalk.Dial("unix", b.socket)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (b *beanstalkdServer) restart(ctx context.Context) error {
	if err := b.process.stop(); err != nil {
		return err
	}
	return b.run(ctx)
}

func (b *beanstalkdServer) open(ctx context.Context, _ string, server *Server) (Queue, error) {
	if err := b.restart(ctx); err != nil {
		return nil, err
	}
	return &beanstalkdQueue{socket: server.Addr}, nil
}

// beanstalkdQueue has a connection for each producer, as the protocol has one command
// under way on each.
type beanstalkdQueue struct {
	socket string

	mu   sync.Mutex
	idle []*beanstalk.Conn
}

func (q *beanstalkdQueue) Enqueue(ctx context.Context, payload []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	conn, err := q.conn()
	if err != nil {
		return err
	}
	const priority, delay = 0, 0
	if _, err := conn.Put(payload, priority, delay, beanstalkdTTR); err != nil {
		conn.Close()
		return err
	}
	q.mu.Lock()
	q.idle = append(q.idle, conn)
	q.mu.Unlock()
	return nil
}

func (q *beanstalkdQueue) conn() (*beanstalk.Conn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := len(q.idle) - 1; last >= 0 {
		conn := q.idle[last]
		q.idle = q.idle[:last]
		return conn, nil
	}
	return beanstalk.Dial("unix", q.socket)
}

// EnqueueAll is many calls: there is no other command, and each is synced by itself.
func (q *beanstalkdQueue) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	return spread(ctx, payloads, q.Enqueue)
}

func (q *beanstalkdQueue) Work(ctx context.Context, workers int, handle func(payload []byte)) error {
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error { return q.work(ctx, handle) })
	}
	return group.Wait()
}

func (q *beanstalkdQueue) work(ctx context.Context, handle func(payload []byte)) error {
	raw, err := net.Dial("unix", q.socket)
	if err != nil {
		return err
	}
	defer raw.Close()
	conn := beanstalk.NewConn(raw)
	for {
		// Only a wait for a job is broken off. A job that is reserved meanwhile becomes
		// ready again when the connection is closed.
		running := context.AfterFunc(ctx, func() { raw.Close() })
		id, payload, err := conn.Reserve(time.Hour)
		if !running() {
			return nil
		}
		if errors.Is(err, beanstalk.ErrTimeout) {
			continue
		}
		if err != nil {
			return err
		}
		handle(payload)
		if err := conn.Delete(id); err != nil {
			return err
		}
	}
}

func (q *beanstalkdQueue) Close() error {
	var errs []error
	for _, conn := range q.idle {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
