package recurring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

func openDBOS(ctx context.Context, t task) (dbos.Context, error) {
	return dbos.NewContext(ctx, dbos.Config{
		AppName: "bench", DatabaseURL: t.URL, Logger: errorsOnly(), ApplicationVersion: "1",
		ExecutorID: fmt.Sprint("executor-", t.Loads), SchedulerPollingInterval: time.Second,
	})
}

// scheduleDBOS has missed ticks made up for.
func scheduleDBOS(ctx context.Context, t task, ticks *times) error {
	d, err := openDBOS(context.WithoutCancel(ctx), t)
	if err != nil {
		return err
	}
	tick := func(c dbos.Context, in dbos.ScheduledWorkflowInput) (any, error) {
		id, err := dbos.GetWorkflowID(c)
		if err == nil {
			ticks.add(in.ScheduledTime, id)
		}
		return nil, err
	}
	dbos.RegisterWorkflow(d, tick, dbos.WithWorkflowName("tick"))
	if err = dbos.Launch(d); err == nil {
		err = dbos.ApplySchedules(d, []dbos.ScheduleSpec{{
			ScheduleName: "each second", Schedule: eachSecond, WorkflowName: "tick", AutomaticBackfill: true,
		}})
	}
	return untilDone(ctx, d, err)
}

func rateDBOS(ctx context.Context, t task, starts *times) error {
	d, err := openDBOS(context.WithoutCancel(ctx), t)
	if err != nil {
		return err
	}
	call := func(c dbos.Context, _ int) (int, error) {
		id, err := dbos.GetWorkflowID(c)
		if err == nil {
			starts.add(time.Now(), id)
		}
		return 0, err
	}
	dbos.RegisterWorkflow(d, call, dbos.WithWorkflowName("call"))
	err = dbos.Launch(d)
	var calls dbos.Queue
	if err == nil {
		calls, err = dbos.RegisterQueue(d, "calls", dbos.WithWorkerConcurrency(workers),
			dbos.WithRateLimiter(&dbos.RateLimiter{Limit: t.Load.Starts, Period: t.Load.Per}))
	}
	for i := 0; t.Loads && i < t.Load.Jobs && err == nil; i++ {
		_, err = dbos.RunWorkflow(d, call, i, dbos.WithQueue(calls))
	}
	return untilDone(ctx, d, err)
}

// untilDone waits for the end of ctx, unless there is an error.
func untilDone(ctx context.Context, d dbos.Context, err error) error {
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, dbos.Shutdown(d, 10*time.Second))
}
