package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// RiverPostgres is River on PostgreSQL.
func RiverPostgres() System {
	return System{
		Name:       "river-postgres",
		Durability: Synced,
		Settings: fmt.Sprintf("PostgreSQL on a Unix socket, fsync and synchronous_commit on, shared_buffers %s, max_wal_size %s; "+
			"pool of %d connections, FetchCooldown %v, FetchPollInterval %v; bulk: InsertManyFast",
			postgresBuffers, postgresWAL, riverPool, riverCooldown, riverPoll),
		Version: moduleVersion("github.com/riverqueue/river"),
		Start:   startPostgres,
		Open:    openRiver,
	}
}

const (
	// PostgreSQL's manual has a quarter of the memory for a machine that serves nothing
	// else; this is room for every job of a measurement. The default is 128MB.
	postgresBuffers = "512MB"

	// The manual has a larger log for many writes, so that checkpoints are rare. Open
	// does one before each measurement.
	postgresWAL        = "4GB"
	postgresCheckpoint = "30min"

	// A connection for each producer, and those of River itself. The commits that are
	// under way at the same time share a sync. PostgreSQL has 100 by default.
	riverPool = producers + 16

	// These are the intervals of River's own benchmark. Its default is to fetch every
	// 100 ms at most, which bounds what so many workers can do.
	riverCooldown = 2 * time.Millisecond
	riverPoll     = 20 * time.Millisecond

	// Everybody who can get at the socket is this user.
	postgresUser = "bench"
)

func startPostgres(ctx context.Context, dir string) (*Server, error) {
	const hint = "postgresql"
	program, err := lookup("postgres", hint)
	if err != nil {
		return nil, err
	}
	// initdb must be of the same release, and lies beside what PATH has a link to.
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return nil, err
	}
	initdb := filepath.Join(filepath.Dir(program), "initdb")
	if _, err := os.Stat(initdb); err != nil {
		return nil, absent("initdb", "apt-get install "+hint)
	}
	version, err := output(ctx, program, "--version")
	if err != nil {
		return nil, err
	}

	home, err := filepath.Abs(filepath.Join(dir, "postgres"))
	if err != nil {
		return nil, err
	}
	socket, err := socketPath(home, ".s.PGSQL.5432")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(home, "data")
	initialize := exec.CommandContext(ctx, initdb, "-D", data, "-U", postgresUser, "-A", "trust", "-E", "UTF8", "--locale=C")
	serve := exec.Command(program, "-D", data,
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+home,
		"-c", "fsync=on", "-c", "synchronous_commit=on",
		"-c", "shared_buffers="+postgresBuffers,
		"-c", "max_wal_size="+postgresWAL, "-c", "checkpoint_timeout="+postgresCheckpoint,
	)
	if err := unprivileged(home, initialize, serve); err != nil {
		return nil, err
	}
	if out, err := initialize.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	// The immediate end: its data is thrown away.
	p, err := launch(serve, syscall.SIGQUIT, filepath.Join(dir, "postgres.log"))
	if err != nil {
		return nil, err
	}

	server := &Server{Addr: socket, Version: version, Stop: p.stop}
	err = p.await(ctx, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, postgresConfig(server))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return nil, err
	}
	if err := migrateRiver(ctx, server); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return server, nil
}

// postgresConfig is how to connect: pgx wants the folder of the socket.
func postgresConfig(server *Server) string {
	return fmt.Sprintf("host='%s' user=%s dbname=postgres", filepath.Dir(server.Addr), postgresUser)
}

func migrateRiver(ctx context.Context, server *Server) error {
	pool, err := pgxpool.New(ctx, postgresConfig(server))
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func openRiver(ctx context.Context, _ string, server *Server) (Queue, error) {
	config, err := pgxpool.ParseConfig(postgresConfig(server))
	if err != nil {
		return nil, err
	}
	config.MaxConns = riverPool
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	// The checkpoint keeps the writes of the measurement before out of this one.
	for _, command := range []string{"TRUNCATE river_job", "CHECKPOINT"} {
		if _, err := pool.Exec(ctx, command); err != nil {
			pool.Close()
			return nil, err
		}
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown: riverCooldown, // of inserts: at most so many notifications
		Logger:        errorsOnly(),
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &riverPostgres{pool: pool, client: client}, nil
}

// riverPostgresArgs are the arguments of each job. River stores JSON, with bytes as base64.
type riverPostgresArgs struct {
	Payload []byte `json:"payload"`
}

func (riverPostgresArgs) Kind() string { return "blob" }

type riverPostgres struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func (q *riverPostgres) Enqueue(ctx context.Context, payload []byte) error {
	_, err := q.client.Insert(ctx, riverPostgresArgs{payload}, nil)
	return err
}

func (q *riverPostgres) EnqueueAll(ctx context.Context, payloads [][]byte) error {
	jobs := make([]river.InsertManyParams, len(payloads))
	for i, payload := range payloads {
		jobs[i].Args = riverPostgresArgs{payload}
	}
	// Fast is by COPY, for those who do not ask for the rows.
	_, err := q.client.InsertManyFast(ctx, jobs)
	return err
}

func (q *riverPostgres) Work(ctx context.Context, workers int, handle func(payload []byte)) error {
	kinds := river.NewWorkers()
	river.AddWorker(kinds, river.WorkFunc(func(_ context.Context, job *river.Job[riverPostgresArgs]) error {
		handle(job.Args.Payload)
		return nil
	}))
	client, err := river.NewClient(riverpgxv5.New(q.pool), &river.Config{
		FetchCooldown:     riverCooldown,
		FetchPollInterval: riverPoll,
		Logger:            errorsOnly(),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           kinds,
	})
	if err != nil {
		return err
	}
	// The end of the context of Start is the end of the jobs as well; Stop lets them
	// finish, and waits until they are marked as done, which River does in batches.
	ctxJobs := context.WithoutCancel(ctx)
	if err := client.Start(ctxJobs); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(ctxJobs)
}

func (q *riverPostgres) Close() error {
	q.pool.Close()
	return nil
}
