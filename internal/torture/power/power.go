// Package power has the families that cut the power. A process works on a queue while all
// that it does to its folder is written down (package trace). Then the power is cut, on
// paper, at many moments: of what was not yet durable at that moment some is lost. Each
// such image is laid out as files, and must hold all that was acknowledged until then,
// whole, and of what was under way all or nothing; and the queue must go on from there.
package power

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/trace"
)

// Power cuts the power of a system whose disk keeps what it promised.
var Power = &harness.Family{
	Name:  "power",
	Goals: "R1",
	Method: "simulated power cuts: images from a log of all writes, syncs, and names, in which unsynced data " +
		"survives entirely, not at all, or in pages, sectors, or a torn write; compared with the exact state " +
		"of all rows",
	Unit: "images",
	PR:   25_000, Nightly: 1_000_000, Share: 30,
	Missing: trace.Missing,
	Prepare: harness.Each(func(t *harness.Try) error { return watched(t, "power-try", patience) }),
}

func init() { harness.Role("power-try", role(powerTry)) }

// flavours take turns by seed.
var flavours = []flavour{plain, crowd, reopens, large, copies, killed, reopens, inTx, stores, crowd}

// imagesOfATry is about how many images a workload gives.
const imagesOfATry = 1250

func powerTry(t *tried) error {
	f := flavours[t.seed%uint64(len(flavours))]
	r, err := newRecording(context.Background(), t.dir, t.rand)
	if err != nil {
		return err
	}
	s, err := r.workload(f)
	if err != nil {
		return fmt.Errorf("workload %s: %w", f, err)
	}
	if err := t.cut(r, s, 0, 1, imagesOfATry); err != nil {
		return fmt.Errorf("workload %s: %w", f, err)
	}
	return nil
}

// workload has the processes of a flavour run, and returns their story.
func (r *recording) workload(f flavour) (story, error) {
	switch f {
	case crowd, stores:
		return new(crowdStory), r.run("power-crowd", f, 300, 0, 0)
	case killed:
		return r.killed()
	}
	if err := r.run("power-steps", f, 60, 0, 0); err != nil {
		return nil, err
	}
	return newStates(r.log)
}

// killed has processes work on one file, each but the last of which is killed. What a
// killed process has not synced is shown to the next one all the same, and may be lost when
// the power goes.
func (r *recording) killed() (story, error) {
	for range 3 {
		if err := r.run("power-steps", killed, 1000, r.lastBegun(), 1+r.rand.IntN(90)); err != nil {
			return nil, err
		}
	}
	if err := r.run("power-steps", killed, 10, r.lastBegun(), 0); err != nil {
		return nil, err
	}
	return newStates(r.log)
}

// lastBegun is the number of the last step.
func (r *recording) lastBegun() int {
	last := 0
	for _, line := range r.log.Story(len(r.log.Events)) {
		var n int
		if _, err := fmt.Sscanf(line, "begin %d", &n); err == nil {
			last = n
		}
	}
	return last
}
