package recurring

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
)

// scheduleAsynq takes the time of an attempt for that of its tick, since a task does not know the latter. The interval
// is that of the other comparisons: with the default of a second, a task may run a second late.
func scheduleAsynq(ctx context.Context, t task, ticks *times) error {
	redis := asynq.RedisClientOpt{Network: "unix", Addr: t.URL}
	server := asynq.NewServer(redis, asynq.Config{Concurrency: workers, LogLevel: asynq.ErrorLevel, TaskCheckInterval: time.Millisecond})
	err := server.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, ok := asynq.GetTaskID(ctx)
		if !ok {
			return errors.New("the task has no ID")
		}
		ticks.add(time.Now(), id)
		return nil
	}))
	if err != nil {
		return err
	}
	defer server.Shutdown()
	scheduler := asynq.NewScheduler(redis, &asynq.SchedulerOpts{LogLevel: asynq.ErrorLevel})
	if _, err := scheduler.Register("@every 1s", asynq.NewTask("tick", nil)); err != nil {
		return err
	}
	if err := scheduler.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	scheduler.Shutdown()
	return nil
}
