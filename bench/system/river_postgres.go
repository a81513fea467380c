package system

import (
	"context"
	"fmt"
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
		Settings: fmt.Sprintf("%s; pool of %d connections, FetchCooldown %v, FetchPollInterval %v; bulk: InsertManyFast",
			postgresSettings, riverPool, riverCooldown, riverPoll),
		Version: moduleVersion("github.com/riverqueue/river"),
		Service: postgresService,
		Start:   startPostgres,
		Open:    openRiver,
		Join:    joinRiver,
	}
}

const (
	// A connection for each producer, and those of River itself. The commits that are
	// under way at the same time share a sync. PostgreSQL has 100 by default.
	riverPool = producers + 16

	// These are the intervals of River's own benchmark. Its default is to fetch every
	// 100 ms at most, which bounds what so many workers can do.
	riverCooldown = 2 * time.Millisecond
	riverPoll     = 20 * time.Millisecond
)

func openRiver(ctx context.Context, dir string, server *Server) (Queue, error) {
	pool, err := pgxpool.New(ctx, postgresConfig(server))
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	if err := startOver(ctx, pool, "TRUNCATE river_job"); err != nil {
		return nil, err
	}
	return joinRiver(ctx, dir, server)
}

// joinRiver opens the queue with the jobs that it has.
func joinRiver(ctx context.Context, _ string, server *Server) (Queue, error) {
	config, err := pgxpool.ParseConfig(postgresConfig(server))
	if err != nil {
		return nil, err
	}
	config.MaxConns = riverPool
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
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
