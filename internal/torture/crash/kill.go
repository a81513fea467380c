// Package crash has the families that kill processes.
package crash

import (
	"context"
	"path/filepath"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// Kill kills a process at work, again and again on the same file.
var Kill = &harness.Family{
	Name:  "kill",
	Goals: "R2",
	Method: "SIGKILL of a working process, from its first instruction on; then every invariant and the state of " +
		"every job, with keys that have limits, orders, and turns, and with a pool",
	Unit: "cycles",
	PR:   500, Nightly: 20_000, Share: 20,
	Prepare: harness.Each(kill),
}

func init() { harness.Role("kill-work", work) }

// cycles is the number of processes for one file.
const cycles = 5

// kill lets a few processes work on one file, one after another, and kills each.
func kill(t *harness.Try) error {
	path := filepath.Join(t.Dir, "jobs.db")
	var o oracle.Oracle
	for range cycles {
		lines, _, err := t.KillWithin(40*time.Millisecond, 4, "kill-work", path, t.Rand.Uint64())
		if err != nil {
			return err
		}
		if err := after(t.Ctx, path, &o, lines); err != nil {
			return err
		}
		t.Count(1)
	}
	return oracle.Reopen(t.Ctx, path, oracle.Options(), func(q *bolt.Queue, _ map[pawl.ID]oracle.Known) error {
		return oracle.Drain(t.Ctx, q)
	})
}

// after opens the file of a killed process and compares it with the story.
func after(ctx context.Context, path string, o *oracle.Oracle, lines []string) error {
	for _, line := range lines {
		if err := o.Hear(line); err != nil {
			return err
		}
	}
	return oracle.Reopen(ctx, path, oracle.Options(), func(_ *bolt.Queue, found map[pawl.ID]oracle.Known) error {
		err := o.Explain(found)
		o.Adopt(found)
		return err
	})
}

// work is the role of a process that is killed.
func work(args harness.Args) error {
	q, err := bolt.Open(args[0], oracle.Options())
	if err != nil {
		return err
	}
	harness.Emit(harness.Up)
	w := oracle.Workload{Seed: args.Uint(1), Producers: 2, Consumers: 2, Batch: 4}
	return w.Run(context.Background(), q, harness.Emit)
}
