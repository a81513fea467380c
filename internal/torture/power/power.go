// Package power has the families that simulate power cuts. Package trace records what a
// process does to the folder of a queue. A simulated power cut at an event loses some of the
// changes that are not durable yet. The result is an image, written as files. It must have
// all acknowledged operations, and each operation in progress entirely or not at all. The
// queue must be able to continue from it.
package power

import (
	"context"
	"fmt"

	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/trace"
)

// Power simulates power cuts on a disk that keeps its promises.
var Power = &harness.Family{
	Name:  "power",
	Goals: "R1",
	Method: "simulated power cuts: images from a log of all writes, syncs, and names, in which unsynced data " +
		"survives entirely, not at all, or in pages, sectors, or a torn write; compared with the exact state " +
		"of all rows",
	Unit: "images",
	PR:   25_000, Nightly: 1_000_000, Share: 35,
	Missing: trace.Missing,
	Prepare: harness.Each(func(t *harness.Try) error { return watched(t, "power-try", imageTimeout) }),
}

func init() { harness.Role("power-try", role(powerTry)) }

// flavours take turns by seed.
var flavours = []flavour{plain, concurrent, reopens, large, copies, killed, reopens, inTx, stores, concurrent}

// imagesOfATry is the approximate number of images of a workload.
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

// workload runs the processes of a flavour and returns their story.
func (r *recording) workload(f flavour) (story, error) {
	switch f {
	case concurrent, stores:
		return new(concurrentStory), r.run("power-concurrent", f, 300, 0, 0)
	case killed:
		return r.killed()
	}
	if err := r.run("power-steps", f, 60, 0, 0); err != nil {
		return nil, err
	}
	return newStates(r.log)
}

// killed runs processes on one file and kills all but the last. The next process sees what
// a killed process has not synced, and a power cut may lose it.
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

// lastBegun returns the number of the last step.
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
