package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"riverqueue.com/riverui"
)

// peer is a dashboard over a queue.
type peer struct {
	handler        http.Handler
	resume         func() // a queue that was paused
	enqueueReports func() // 100
	stop           func()
}

// openAsynq starts Redis with the tasks, a worker that runs one, and a scheduler.
func openAsynq(folder string) peer {
	socket := filepath.Join(folder, "redis.sock")
	program := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "")
	must(0, program.Start())
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	ctx := context.Background()
	for client.Ping(ctx).Err() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	at := asynq.RedisClientOpt{Network: "unix", Addr: socket}
	tasks := asynq.NewClient(at)
	done := make(chan struct{})
	for part := range 50 {
		go func() {
			for n := part; n < *jobs/10; n += 50 {
				must(tasks.Enqueue(asynq.NewTask("mail.send", []byte(`{"to":"bob"}`)), asynq.Queue("email")))
			}
			done <- struct{}{}
		}()
	}
	for range 50 {
		<-done
	}
	must(tasks.Enqueue(asynq.NewTask("held", nil), asynq.Queue("sync"), asynq.Timeout(time.Hour)))
	running := make(chan struct{})
	worker := asynq.NewServer(at, asynq.Config{Queues: map[string]int{"sync": 1}, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Millisecond})
	must(0, worker.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		close(running)
		<-ctx.Done()
		return ctx.Err()
	})))
	<-running
	schedules := asynq.NewScheduler(at, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	must(schedules.Register("30 2 * * *", asynq.NewTask("mail.send", nil)))
	must(0, schedules.Start())
	inspector := asynq.NewInspector(at)
	return peer{
		handler: asynqmon.New(asynqmon.Options{RedisConnOpt: at}),
		resume:  func() { _ = inspector.UnpauseQueue("email") },
		stop: func() {
			schedules.Shutdown()
			worker.Shutdown()
			_ = program.Process.Signal(syscall.SIGTERM)
			_ = program.Wait()
		},
	}
}

// openRiver starts PostgreSQL with the jobs, of which one runs.
func openRiver(folder string) peer {
	home := filepath.Join(folder, "postgres")
	must(0, os.Mkdir(home, 0o700))
	binary := filepath.Dir(must(filepath.EvalSymlinks(must(exec.LookPath("postgres")))))
	initialize := exec.Command(filepath.Join(binary, "initdb"), "-D", filepath.Join(home, "data"), "-U", "postgres", "-A", "trust")
	serve := exec.Command(filepath.Join(binary, "postgres"), "-D", filepath.Join(home, "data"), "-c", "listen_addresses=", "-c", "unix_socket_directories="+home)
	if os.Geteuid() == 0 { // the server does not run as root
		u := must(user.Lookup("nobody"))
		uid, gid := must(strconv.Atoi(u.Uid)), must(strconv.Atoi(u.Gid))
		must(0, os.Chmod(folder, 0o711))
		must(0, os.Chown(home, uid, gid))
		for _, c := range []*exec.Cmd{initialize, serve} {
			c.Dir, c.SysProcAttr = home, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		}
	}
	must(initialize.CombinedOutput())
	must(0, serve.Start())
	ctx := context.Background()
	pool := must(pgxpool.New(ctx, "postgres://postgres@/postgres?host="+home))
	for pool.Ping(ctx) != nil {
		time.Sleep(20 * time.Millisecond)
	}
	driver := riverpgxv5.New(pool)
	must(must(rivermigrate.New(driver, nil)).Migrate(ctx, rivermigrate.DirectionUp, nil))
	for _, statement := range []string{
		`INSERT INTO river_queue (name, created_at, updated_at) VALUES ('email', now(), now()), ('sync', now(), now())`,
		`INSERT INTO river_job (state, attempt, max_attempts, args, kind, queue, finalized_at, attempted_at, attempted_by, errors)
		SELECT 'discarded', 4, 4, '{"to":"bob"}', 'mail.send', 'email', now(), now(), '{a}', ARRAY['{"at":"2026-11-28T00:00:00Z","attempt":4,"error":"connection refused","trace":""}'::jsonb]
		FROM generate_series(1, ` + strconv.Itoa(*jobs/10*7) + `)`,
		`INSERT INTO river_job (state, max_attempts, args, kind, queue) SELECT 'available', 4, '{"to":"bob"}', 'mail.send', 'email' FROM generate_series(1, ` + strconv.Itoa(*jobs/10*3) + `)`,
		`INSERT INTO river_job (state, attempt, max_attempts, args, kind, queue, attempted_at, attempted_by) VALUES ('running', 1, 4, '{}', 'held', 'sync', now(), '{a}')`,
		`ANALYZE`,
	} {
		must(pool.Exec(ctx, statement))
	}
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	client := must(river.NewClient(driver, &river.Config{Logger: logger}))
	ui := must(riverui.NewHandler(&riverui.HandlerOpts{Endpoints: riverui.NewEndpoints(client, nil), Logger: logger}))
	must(0, ui.Start(ctx))
	return peer{
		handler: ui,
		resume:  func() { must(0, client.QueueResume(ctx, "email", nil)) },
		enqueueReports: func() {
			must(pool.Exec(ctx, `INSERT INTO river_job (state, max_attempts, args, kind, queue) SELECT 'available', 4, '{}', 'report', 'email' FROM generate_series(1, 100)`))
		},
		stop: func() {
			pool.Close()
			_ = serve.Process.Signal(syscall.SIGQUIT)
			_ = serve.Wait()
		},
	}
}
