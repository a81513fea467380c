package recurring

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/robfig/cron/v3"
)

type riverTick struct{}

func (riverTick) Kind() string { return "tick" }

func scheduleRiver(ctx context.Context, t task, ticks *times) error {
	pool, err := pgxpool.New(ctx, t.URL)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return err
	}
	client, err := riverClient(pool, ticks)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return client.Stop(context.WithoutCancel(ctx))
}

func riverClient(pool *pgxpool.Pool, ticks *times) (*river.Client[pgx.Tx], error) {
	each, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(eachSecond)
	if err != nil {
		return nil, err
	}
	kinds := river.NewWorkers()
	river.AddWorker(kinds, river.WorkFunc(func(_ context.Context, job *river.Job[riverTick]) error {
		ticks.add(job.ScheduledAt, strconv.FormatInt(job.ID, 10))
		return nil
	}))
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger:  errorsOnly(),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers: kinds,
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(each, func() (river.JobArgs, *river.InsertOpts) {
			return riverTick{}, nil
		}, nil)},
	})
}
