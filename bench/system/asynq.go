package system

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Asynq is asynq on a Redis that syncs every change before it answers.
func Asynq() System {
	return asynqSystem("asynq", "always", Synced)
}

// AsynqEverySec is asynq on a Redis as Redis advises to run it: up to a second of changes
// is lost in a crash of the machine.
func AsynqEverySec() System {
	return asynqSystem("asynq-everysec", "everysec", "synced every second")
}

const (
	// The default of one second would be the latency of a job that comes to an idle
	// queue. The option was added for those who want less (hibiken/asynq#506). Its
	// documentation warns of the load on Redis, which has nothing else to do when the
	// queue is empty, the only time it is asked so often.
	asynqCheck = time.Millisecond

	// The default of ten for each processor makes producers wait for a connection. The
	// more of them are under way, the more commands Redis syncs at once.
	asynqPool = producers + 36
)

func asynqSystem(name, appendfsync, durability string) System {
	return System{
		Name:       name,
		Durability: durability,
		Settings: fmt.Sprintf("Redis on a Unix socket, appendonly yes, appendfsync %s, no snapshots; "+
			"PoolSize %d, TaskCheckInterval %v; bulk: %d goroutines", appendfsync, asynqPool, asynqCheck, producers),
		Version: moduleVersion("github.com/hibiken/asynq"),
		Start: func(ctx context.Context, dir string) (*Server, error) {
			return startRedis(ctx, dir, appendfsync)
		},
		Open: openAsynq,
	}
}

func startRedis(ctx context.Context, dir, appendfsync string) (*Server, error) {
	program, err := lookup("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	socket, err := socketPath(dir, "redis.sock")
	if err != nil {
		return nil, err
	}
	p, err := launch(exec.Command(program,
		"--port", "0", "--unixsocket", socket, "--unixsocketperm", "700",
		"--dir", dir,
		"--appendonly", "yes", "--appendfsync", appendfsync,
		// The log has every job; snapshots beside it would only be load.
		"--save", "",
	), syscall.SIGTERM, filepath.Join(dir, "redis.log"))
	if err != nil {
		return nil, err
	}
	client := redisClient(socket)
	defer client.Close()
	if err := p.await(ctx, func(ctx context.Context) error { return client.Ping(ctx).Err() }); err != nil {
		return nil, err
	}
	version, err := redisInfo(ctx, client, "server", "redis_version")
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	usage := func(ctx context.Context) (Usage, error) { return redisUsage(ctx, socket) }
	return &Server{Addr: socket, Version: "Redis " + version, Stop: p.stop, Usage: usage}, nil
}

// redisUsage is the processor time of the server without that of its children, which rewrite the log. Redis does not
// count the bytes of its log: their number falls when it is rewritten.
func redisUsage(ctx context.Context, socket string) (u Usage, err error) {
	client := redisClient(socket)
	defer client.Close()
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		text, err := redisInfo(ctx, client, "cpu", field)
		if err != nil {
			return u, err
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return u, err
		}
		u.CPU += time.Duration(seconds * float64(time.Second))
	}
	return u, nil
}

// StartRedis starts a server that syncs every change, with its data in a folder, and returns its Unix socket.
func StartRedis(ctx context.Context, dir string) (*Server, string, error) {
	server, err := startRedis(ctx, dir, "always")
	if err != nil {
		return nil, "", err
	}
	return server, server.Addr, nil
}

func redisClient(socket string) *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: asynqPool})
}

// redisInfo is one field of what Redis tells about itself.
func redisInfo(ctx context.Context, client *redis.Client, section, field string) (string, error) {
	info, err := client.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(info, "\n"+field+":")
	if !found {
		return "", fmt.Errorf("redis does not tell its %s", field)
	}
	value, _, _ := strings.Cut(rest, "\r\n")
	return value, nil
}

func openAsynq(ctx context.Context, _ string, server *Server) (Queue, error) {
	client := redisClient(server.Addr)
	if err := emptyRedis(ctx, client); err != nil {
		client.Close()
		return nil, err
	}
	return &asynqQueue{redis: client, client: asynq.NewClientFromRedisClient(client)}, nil
}

// emptyRedis leaves no key and a short log, so that a measurement does not pay for the
// log of the one before.
func emptyRedis(ctx context.Context, client *redis.Client) error {
	if err := client.FlushAll(ctx).Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	asked := false
	for {
		running, err := redisInfo(ctx, client, "persistence", "aof_rewrite_in_progress")
		if err != nil {
			return err
		}
		if running == "0" && asked {
			return nil
		}
		if running == "0" {
			// Redis may be rewriting on its own account; the log is short only after a
			// rewrite that began on the empty database.
			if err := client.BgRewriteAOF(ctx).Err(); err != nil {
				return err
			}
			asked = true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// asynqTask is the type of every task.
const asynqTask = "blob"

type asynqQueue struct {
	redis  *redis.Client
	client *asynq.Client
}

func (q *asynqQueue) Enqueue(ctx context.Context, payload []byte) error {
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask(asynqTask, payload))
	return err
}

// EnqueueAll is many calls: asynq has no other way.
func (q *asynqQueue) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	return spread(ctx, payloads, q.Enqueue)
}

func (q *asynqQueue) Work(ctx context.Context, workers int, handle func(payload []byte)) error {
	server := asynq.NewServerFromRedisClient(q.redis, asynq.Config{
		Concurrency:       workers,
		TaskCheckInterval: asynqCheck,
		LogLevel:          asynq.ErrorLevel,
	})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		handle(task.Payload())
		return nil
	}))
	if err != nil {
		return err
	}
	<-ctx.Done()
	server.Shutdown()
	return nil
}

func (q *asynqQueue) Close() error { return q.redis.Close() }
