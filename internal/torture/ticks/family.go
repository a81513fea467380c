package ticks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/schedule"
)

// Schedule kills a process that fires schedules, again and again on the same file.
var Schedule = &harness.Family{
	Name:  "schedule",
	Goals: "R2 R9",
	Method: "SIGKILL of a process that fires schedules of some seconds while its clock steps, the machine sleeps, and " +
		"operators pause and trigger; then each tick, computed apart, has one decision and each decision its job",
	Unit: "kills",
	PR:   100, Nightly: 10_000, Share: 10,
	Prepare: harness.Each(kill),
}

func init() { harness.Role("schedule-life", life) }

// kills is the number of kills for one file.
const kills = 4

// kill lets a few processes fire the schedules of one file, one after another, and kills each.
func kill(t *harness.Try) error {
	path := filepath.Join(t.Dir, "jobs.db")
	clock, err := OpenClock(filepath.Join(t.Dir, "clock"))
	if err != nil {
		return err
	}
	defer clock.Close()
	var l Ledger
	for range kills {
		lines, _, err := t.KillWithin(60*time.Millisecond, 4, "schedule-life", path, filepath.Join(t.Dir, "clock"), t.Rand.Uint64())
		if err != nil {
			return err
		}
		for _, line := range lines {
			if err := l.Hear(line); err != nil {
				return err
			}
		}
		if err := judgeFile(t.Ctx, path, clock, &l, nil); err != nil {
			return err
		}
		if err := clock.Move(Off(t.Rand)); err != nil {
			return err
		}
		t.Count(1)
	}
	if err := clock.Move(ToTheEnd); err != nil {
		return err
	}
	return judgeFile(t.Ctx, path, clock, &l, CatchUp)
}

// ToTheEnd is how far the clock goes before the last life of a story.
const ToTheEnd = 20 * time.Second

// judgeFile opens the file of a killed process, calls use, and judges the file.
func judgeFile(ctx context.Context, path string, clock *Clock, l *Ledger, use func(context.Context, Queue) error) error {
	q, err := bolt.Open(path, options(clock))
	if err != nil {
		return fmt.Errorf("cannot open the file afterwards: %w", err)
	}
	if use != nil {
		err = use(ctx, q)
	}
	return errors.Join(err, l.Judge(ctx, q), q.Check(ctx), q.Close())
}

func options(clock *Clock) *bolt.Options {
	return &bolt.Options{Now: clock.Now, Logger: hclog.NewNullLogger()}
}

// CatchUp resumes all schedules, and lets a scheduler decide every tick up to now.
func CatchUp(ctx context.Context, q Queue) error {
	s, err := schedule.Open(q, &schedule.Options{Logger: hclog.NewNullLogger()})
	if err != nil {
		return err
	}
	defer s.Close()
	l := &Life{Queue: q, Rand: rand.New(rand.NewPCG(1, 1))}
	if err := l.sync(ctx, s, true); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	for _, p := range plans {
		if err := s.Resume(ctx, p.name, schedule.CatchUpPaused); err != nil {
			return err
		}
		for {
			info, err := s.Get(ctx, p.name)
			if err != nil {
				return err
			}
			if info.Due.After(q.Now()) {
				break
			}
			select {
			case <-limit.Done():
				return fmt.Errorf("schedule %s: its tick of %v is not decided at %v: %w", p.name, info.Due, q.Now(), limit.Err())
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}

// catchUpLimit is how long a scheduler may take for all due ticks.
const catchUpLimit = 2 * time.Minute

// life is the role of a process that is killed.
func life(args harness.Args) error {
	clock, err := OpenClock(args[1])
	if err != nil {
		return err
	}
	q, err := bolt.Open(args[0], options(clock))
	if err != nil {
		return err
	}
	harness.Emit(harness.Up)
	l := &Life{Queue: q, Clock: clock, Rand: rand.New(rand.NewPCG(args.Uint(2), 0)), Emit: harness.Emit}
	return l.Run(context.Background())
}
