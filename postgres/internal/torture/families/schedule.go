package families

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/internal/cluster"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/ticks"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/postgres/internal/torture/scene"
)

// Schedule kills processes that fire the same schedules.
var Schedule = &harness.Family{
	Name:  "pg-schedule",
	Goals: "R2 R9",
	Method: "SIGKILL of one of two processes that fire the same schedules on one server, while their " +
		"clock steps, and later of the other one; then each tick, computed apart, has one decision and each decision its job",
	Unit: "kills",
	PR:   12, Nightly: 2_000, Share: 15, Parallel: 1,
	Missing: cluster.Missing,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		c, err := newCluster(env)
		if err != nil {
			return nil, err
		}
		return func(t *harness.Try) error { return fireTogether(t, c.URL()) }, nil
	},
}

func init() { harness.Role("pg-schedule-life", fireUntilKilled) }

const (
	rounds      = 3                      // on one schema
	firing      = 2                      // processes at a time
	longestLife = 300 * time.Millisecond // at most, once both processes are up
)

// fireTogether lets processes fire the schedules of one schema, and kills one after the other, some times.
func fireTogether(t *harness.Try, url string) error {
	clock, err := ticks.OpenClock(clockOf(t))
	if err != nil {
		return err
	}
	defer clock.Close()
	schema := fmt.Sprintf("schedules_%d", t.Seed)
	var l ticks.Ledger
	for range rounds {
		if err := round(t, url, schema, &l); err != nil {
			return err
		}
		if err := judgeSchema(t.Ctx, url, schema, clock, &l, nil); err != nil {
			return err
		}
		if err := clock.Move(ticks.Off(t.Rand)); err != nil {
			return err
		}
		t.Count(firing)
	}
	if err := clock.Move(ticks.ToTheEnd); err != nil {
		return err
	}
	return judgeSchema(t.Ctx, url, schema, clock, &l, ticks.CatchUp)
}

// clockOf is the path of the clock of a try.
func clockOf(t *harness.Try) string { return filepath.Join(t.Dir, "clock") }

// round lets some processes live, and takes in what they report.
func round(t *harness.Try, url, schema string, l *ticks.Ledger) error {
	lives := make([]*harness.Child, firing)
	for n := range lives {
		c, err := harness.Start(t.Ctx, nil, "pg-schedule-life", url, schema, clockOf(t), t.Rand.Uint64(), fmt.Sprint("process ", n))
		if err != nil {
			return err
		}
		defer c.Kill()
		lives[n] = c
	}
	for _, c := range lives {
		if _, err := c.Line(); err != nil {
			return err
		}
	}
	var ended sync.WaitGroup
	lines, errs := make([][]string, firing), make([]error, firing)
	for n, c := range lives {
		after := time.Duration(t.Rand.Int64N(int64(longestLife)))
		ended.Go(func() { lines[n], errs[n] = c.KillAfter(after) })
	}
	ended.Wait()
	for n := range lives {
		for _, line := range lines[n] {
			errs = append(errs, l.Hear(line))
		}
	}
	return errors.Join(errs...)
}

// judgeSchema lets use do something when no process is alive, and judges.
func judgeSchema(ctx context.Context, url, schema string, clock *ticks.Clock, l *ticks.Ledger, use func(context.Context, ticks.Queue) error) error {
	if err := scene.Alone(ctx, url); err != nil {
		return err
	}
	q, err := openSchedules(ctx, url, schema, "judge", clock)
	if err != nil {
		return err
	}
	if use != nil {
		err = use(ctx, q)
	}
	return errors.Join(err, l.Judge(ctx, q), q.Close())
}

// openSchedules opens the queue as an owner, who takes back the leases of a process that was killed. Leases
// are longer than any step of the clock.
func openSchedules(ctx context.Context, url, schema, owner string, clock *ticks.Clock) (*postgres.Queue, error) {
	return postgres.Open(ctx, url, &postgres.Options{
		Schema: schema, Owner: owner, Lease: time.Hour, Timeout: time.Minute, Now: clock.Now, Logger: hclog.NewNullLogger(),
	})
}

// fireUntilKilled is the role of a process.
func fireUntilKilled(args harness.Args) error {
	clock, err := ticks.OpenClock(args[2])
	if err != nil {
		return err
	}
	q, err := openSchedules(context.Background(), args[0], args[1], args[4], clock)
	if err != nil {
		return err
	}
	harness.Emit(harness.Up)
	l := &ticks.Life{Queue: q, Clock: clock, Rand: rand.New(rand.NewPCG(args.Uint(3), 0)), Emit: harness.Emit}
	return l.Run(context.Background())
}
