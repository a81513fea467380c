package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl/driver"
)

// A step has no entry before it ends. So if an attempt takes a long time, the run notes it as the progress of its job,
// which the worker stores within a second. So an operator can see what a run is working on, no matter which process
// runs it. A short step writes nothing more.

const (
	// longStep is how long an attempt runs before the run notes it.
	longStep = time.Second

	// mostSteps is how many steps a note names.
	mostSteps = 3
)

// work is an attempt of a step in progress.
type work struct {
	step  string
	began time.Time // by the clock of the queue, as the beginning of a lease
	long  bool      // it has run for longStep
}

// working begins an attempt of a step. The returned function ends it.
func (x *execution) working(step string) (ended func()) {
	w := &work{step: step, began: x.engine.now()}
	x.mu.Lock()
	x.atWork = append(x.atWork, w)
	x.mu.Unlock()
	long := time.AfterFunc(longStep, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if w.long = slices.Contains(x.atWork, w); w.long {
			x.noteWork()
		}
	})
	return func() {
		long.Stop()
		x.mu.Lock()
		defer x.mu.Unlock()
		x.atWork = slices.DeleteFunc(x.atWork, func(other *work) bool { return other == w })
		if w.long {
			x.noteWork()
		}
	}
}

// noteWork notes the steps that take a long time, each with its beginning. If there are none, it notes how many calls the
// run has made. The caller holds the lock.
func (x *execution) noteWork() {
	if x.stopped != nil || x.lease == nil {
		return // nobody would store it
	}
	var steps []string
	more := 0
	for _, w := range x.atWork { // in the order in which they began
		switch {
		case !w.long:
		case len(steps) == mostSteps:
			more++
		default:
			steps = append(steps, fmt.Sprintf("%s since %s", w.step, w.began.UTC().Format(time.RFC3339)))
		}
	}
	if more > 0 {
		steps = append(steps, fmt.Sprintf("and %d more", more))
	}
	done := int64(0)
	if len(steps) == 0 {
		done = int64(x.made)
	}
	driver.Note(x.lease, done, 0, strings.Join(steps, ", "), x.engine.now())
}
