package recurring

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
)

var (
	pawlTick = pawl.Define[struct{}]("tick")
	pawlCall = pawl.Define[struct{}]("call")
)

// queue is one that its owner closes.
type queue interface {
	pawl.Queue
	io.Closer
}

func scheduleBolt(ctx context.Context, t task, ticks *times) error {
	q, err := openBolt(t)
	if err != nil {
		return err
	}
	return schedulePawl(ctx, q, ticks)
}

func schedulePostgres(ctx context.Context, t task, ticks *times) error {
	q, err := openPostgres(ctx, t)
	if err != nil {
		return err
	}
	return schedulePawl(ctx, q, ticks)
}

func rateBolt(ctx context.Context, t task, starts *times) error {
	q, err := openBolt(t)
	if err != nil {
		return err
	}
	return ratePawl(ctx, q, t, starts)
}

func ratePostgres(ctx context.Context, t task, starts *times) error {
	q, err := openPostgres(ctx, t)
	if err != nil {
		return err
	}
	return ratePawl(ctx, q, t, starts)
}

func openBolt(t task) (queue, error) {
	return bolt.Open(filepath.Join(t.Dir, "jobs.db"), &bolt.Options{Logger: logger(), Limits: t.limits()})
}

func openPostgres(ctx context.Context, t task) (queue, error) {
	return postgres.Open(ctx, t.URL, &postgres.Options{Logger: logger(), Limits: t.limits()})
}

func (t task) limits() map[string]pawl.Limits {
	if t.Load == nil {
		return nil
	}
	return map[string]pawl.Limits{pawl.DefaultQueue: {Rate: pawl.Rate{Starts: t.Load.Starts, Per: t.Load.Per}}}
}

func schedulePawl(ctx context.Context, q queue, ticks *times) error {
	s, err := schedule.Open(q, &schedule.Options{Logger: logger()})
	if err != nil {
		return errors.Join(err, q.Close())
	}
	w := worker.New(q, &worker.Options{Concurrency: workers, Logger: logger()})
	worker.Handle(w, pawlTick, func(_ context.Context, job *pawl.Job[struct{}]) error {
		if tick, ok := schedule.TickOf(job.Envelope); ok {
			ticks.add(tick.Nominal, job.ID.String())
		}
		return nil
	})
	err = s.Sync(ctx, schedule.Job("each second", eachSecond, pawlTick, struct{}{}, schedule.CatchUp(100), schedule.Overlap(schedule.Allow)))
	if err == nil {
		err = w.Run(ctx)
	}
	s.Close()
	return errors.Join(err, q.Close())
}

func ratePawl(ctx context.Context, q queue, t task, starts *times) error {
	w := worker.New(q, &worker.Options{Concurrency: workers, Logger: logger()})
	worker.Handle(w, pawlCall, func(_ context.Context, job *pawl.Job[struct{}]) error {
		starts.add(time.Now(), job.ID.String())
		return nil
	})
	var err error
	for i := 0; t.Loads && i < t.Load.Jobs && err == nil; i++ {
		_, err = pawlCall.Enqueue(ctx, q, struct{}{})
	}
	if err == nil {
		err = w.Run(ctx)
	}
	return errors.Join(err, q.Close())
}

func pawlTimes(expression string, zone *time.Location) (func(time.Time) time.Time, error) {
	s, err := schedule.Parse(expression)
	if err != nil {
		return nil, err
	}
	return func(t time.Time) time.Time { return s.Next(t, zone) }, nil
}

func logger() pawl.Logger { return hclog.New(&hclog.LoggerOptions{Level: hclog.Error}) }
