// Package ticks kills processes that fire schedules, and requires that each tick got exactly one decision.
package ticks

import (
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/workflow"
)

// plan is a schedule and what the judge knows about it. Its ticks are the multiples of a period since
// 1970.
type plan struct {
	name    string
	period  time.Duration
	allowed []schedule.Decision // decisions that its ticks may have
	define  func(name string) schedule.Definition
}

var (
	kind = pawl.Define[string]("tick")
	flow = workflow.Define("tick-run", func(*workflow.Run, string) (string, error) { return "", nil })
)

// kept makes every job stay in the queue after its end.
var kept = schedule.With(pawl.Retain(10_000*time.Hour), pawl.MaxRetries(2))

// plans are all schedules. The first one fires every tick, unless it is paused.
var plans = []plan{
	{"every", time.Second, []schedule.Decision{schedule.Fired, schedule.Paused}, func(name string) schedule.Definition {
		return schedule.Job(name, "@every 1s", kind, "x", kept, schedule.Overlap(schedule.Allow), schedule.CatchUp(schedule.MaxCatchUp))
	}},
	{"latest", time.Second, []schedule.Decision{schedule.Fired, schedule.Skipped, schedule.Missed, schedule.Paused}, func(name string) schedule.Definition {
		return schedule.Job(name, "* * * * * *", kind, "x", kept)
	}},
	{"buffer", 2 * time.Second, []schedule.Decision{schedule.Buffered, schedule.Fired, schedule.Skipped, schedule.Missed, schedule.Paused}, func(name string) schedule.Definition {
		return schedule.Job(name, "@every 2s", kind, "x", kept, schedule.Overlap(schedule.Buffer), schedule.BufferLimit(3), schedule.CatchUp(4))
	}},
	{"spread", 3 * time.Second, []schedule.Decision{schedule.Fired, schedule.Missed, schedule.Paused}, func(name string) schedule.Definition {
		return schedule.Job(name, "*/3 * * * * *", kind, "x", kept, schedule.Overlap(schedule.Allow), schedule.CatchUp(5), schedule.Spread(time.Second))
	}},
	{"runs", 5 * time.Second, []schedule.Decision{schedule.Fired, schedule.Missed, schedule.Paused}, func(name string) schedule.Definition {
		return schedule.Flow(name, "@every 5s", flow, "x", schedule.Overlap(schedule.Allow), schedule.CatchUp(5))
	}},
}
