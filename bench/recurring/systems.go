package recurring

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/gopawl/pawl/bench/system"
)

// contender is a system that has schedules.
type contender struct {
	name   string
	server func(ctx context.Context, dir string) (*system.Server, string, error) // nil if it needs none

	// schedule has a job run each second, and rate runs jobs with a limit; nil if there are no limits of rates. They
	// work until ctx ends, and add a time for each attempt.
	schedule  func(ctx context.Context, t task, ticks *times) error
	rate      func(ctx context.Context, t task, starts *times) error
	processes int // that share the rate

	// times returns the times of an expression of cron with five fields.
	times func(expression string, zone *time.Location) (next func(time.Time) time.Time, err error)
}

func contenders() []contender {
	return []contender{
		{name: "pawl", schedule: scheduleBolt, rate: rateBolt, processes: 1, times: pawlTimes},
		{name: "pawl-postgres", server: system.StartPostgres, schedule: schedulePostgres, rate: ratePostgres, processes: 2, times: pawlTimes},
		{name: "dbos", server: system.StartPostgres, schedule: scheduleDBOS, rate: rateDBOS, processes: 2, times: cronTimes},
		{name: "river", server: system.StartPostgres, schedule: scheduleRiver, times: cronTimes},
		{name: "asynq", server: system.StartRedis, schedule: scheduleAsynq, times: cronTimes},
	}
}

// cronTimes are those of the library that DBOS and asynq parse expressions with, and that River's documentation
// proposes.
func cronTimes(expression string, zone *time.Location) (func(time.Time) time.Time, error) {
	s, err := cron.ParseStandard(expression)
	if err != nil {
		return nil, err
	}
	return func(t time.Time) time.Time { return s.Next(t.In(zone)) }, nil
}

// eachSecond is the schedule for the libraries that parse six fields.
const eachSecond = "* * * * * *"

// workers is how many jobs run at once.
const workers = 16

// errorsOnly is a log of what goes wrong.
func errorsOnly() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}
