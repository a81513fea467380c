package workflow

import (
	"context"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The end of a step does not have to be durable immediately. It must be durable before anything else takes effect:
// another step, a signal that is taken, a published value, a child or its cancel, the end of the run. Each of these
// writes contains the backlog, or waits for it; see ready. So the end of a step waits in the backlog, and the last step
// of a run has no commit of its own. After a crash before that write, the step runs again, as after any crash between
// the effect and the checkpoint.

const (
	// longestHold is how long the end of a step waits for another write: a few times as long as a commit takes. Code
	// that computes for longer needs one more commit, which is cheap in comparison.
	longestHold = 5 * time.Millisecond

	// holdAgain is how long the ends of steps wait for another write after one has failed.
	holdAgain = time.Second

	// mostHeld limits the bytes of the backlog if the result of a step is to wait in it.
	mostHeld = 64 << 10
)

// hold leaves the end of a step to the next write. It writes the end now if the run stops, if the result is large, or
// if the step could not run again after a crash: because it begins at most once, or because its scope makes no more
// calls.
func (c *call) hold(o *stepOptions) error {
	x := c.x
	if o.once || len(c.e.Result) > mostHeld {
		return x.save(c.e)
	}
	var j journal
	j.add(x.run, c.e)
	if x.holdBack(c, &j) {
		return nil
	}
	return x.save(c.e)
}

// holdBack adds the end of a step to the backlog, unless it has to be written now. It holds the lock, so a mutation that
// cancels the run or abandons the scope either makes it return false, or writes the end, see [heldEnds].
func (x *execution) holdBack(c *call, j *journal) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped != nil || x.cancelling || c.mute() || x.backlog.bytes+len(c.e.Result) > mostHeld {
		return false
	}
	first := !x.backlog.holds()
	x.queueEntry(j, c.e)
	x.backlog.held = x.backlog.waiting
	if first { // otherwise the timer of the first end is running
		x.holdOn(longestHold)
	}
	return true
}

// holdOn writes the waiting ends of steps after a time. If a write is in progress, that time begins at the end of the
// write. The caller holds the lock.
func (x *execution) holdOn(wait time.Duration) {
	switch {
	case x.left || x.writes > 0 || !x.backlog.holds():
	case x.holding == nil:
		x.holding = time.AfterFunc(wait, x.flush)
	default:
		x.holding.Reset(wait)
	}
}

// holds reports whether the end of a step waits.
func (b *backlog) holds() bool { return b.held > b.base }

// flush writes the ends of steps that have waited for longestHold, unless another write is in progress. If flush fails,
// the next write contains them, or flush runs again.
func (x *execution) flush() {
	x.mu.Lock()
	if !x.backlog.holds() || x.writes > 0 {
		x.mu.Unlock()
		return
	}
	c, ctx := &checkpoint{x.lease, x.take()}, x.writing()
	x.writes++
	x.mu.Unlock()
	again := holdAgain
	defer func() { x.endWrite(again) }()
	if x.engine.queue.Mutate(ctx, c, c.journal.bytes) == nil {
		again = longestHold
	}
}

// letGo writes the ends of steps that are still unwritten after the function has returned, for example because the
// worker stops.
func (x *execution) letGo() {
	x.mu.Lock()
	waits := x.backlog.holds()
	x.left = true
	if x.holding != nil {
		x.holding.Stop()
	}
	x.stopAlarm()
	x.mu.Unlock()
	if waits && !driver.Settled(x.lease) {
		_ = x.save()
	}
}

// mutate makes the queue carry out a mutation that writes the backlog, or makes it void. Meanwhile, no timer runs for
// the waiting ends of steps.
func (x *execution) mutate(ctx context.Context, m driver.Mutation, bytes int) error {
	x.mu.Lock()
	x.writes++
	if x.holding != nil {
		x.holding.Stop()
	}
	x.mu.Unlock()
	defer x.endWrite(longestHold) // even if it was refused: a refusal is not a failed write
	return x.engine.queue.Mutate(ctx, m, bytes)
}

// endWrite records the end of a write. What still waits is written after a time.
func (x *execution) endWrite(wait time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.writes--
	x.holdOn(wait)
}

// heldEnds are executions of this process whose runs a mutation cancels. The mutation writes the ends of steps that
// these executions hold back. Otherwise a crash after the mutation would lose these ends permanently: a cancelled run
// does not repeat the steps, so it would not undo them.
//
// A run that becomes active after Check, and has not read that it is cancelled, must not hold anything back either. So
// each caller of a mutation that cancels runs must call done once the mutation is durable or refused, and the runs have
// been notified.
type heldEnds struct {
	hub  *hub
	all  []*execution
	runs []pawl.ID // accumulated, because Check may run more than once
}

// again begins a Check, which may run more than once.
func (h *heldEnds) again() { h.all = nil }

// add is called in Check. It records what a run to be cancelled holds back. Later steps of the run write their ends
// themselves. An execution that has lost its lease writes nothing.
func (h *heldEnds) add(hub *hub, ops driver.Ops, run pawl.ID) {
	h.hub, h.runs = hub, append(h.runs, run)
	x := hub.cancels(run)
	if x == nil || x.dry {
		return
	}
	x.mu.Lock()
	x.cancelling = true
	holds, lease := x.backlog.holds(), x.lease
	x.mu.Unlock()
	if holds && ops.Hold(lease) == nil {
		h.all = append(h.all, x)
	}
}

// done ends what add began.
func (h *heldEnds) done() {
	if h.hub != nil {
		h.hub.cancelsEnd(h.runs)
	}
}

func (h *heldEnds) apply(r rows) error {
	for _, x := range h.all {
		if err := x.applyBacklog(r); err != nil {
			return err
		}
	}
	return nil
}
