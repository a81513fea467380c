package ticks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/schedule"
)

// Queue is a queue that stores schedules.
type Queue interface {
	pawl.Queue
	schedule.Store

	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]
}

// The lines that a process reports.
const (
	triggerLine = "trigger" // after a trigger was acknowledged
	oddLine     = "odd"     // for an error that no kill explains
)

// Limits of one life. The histories of schedules keep all entries of a story of some lives.
const (
	furthest  = 15 * time.Second     // how far its clock moves ahead
	triggers  = 4                    // how many triggers it makes
	pauseOfOp = 2 * time.Millisecond // longest pause between two operations
)

// Off returns how far a clock moves while no process runs: the machine is off, or the clock is
// set.
func Off(r *rand.Rand) time.Duration {
	return time.Duration(r.Int64N(int64(25*time.Second))) - 10*time.Second
}

// Life is a process that fires schedules, and that moves its clock, until it is killed.
type Life struct {
	Queue Queue
	Clock *Clock
	Rand  *rand.Rand
	Emit  func(words ...any)

	// Expected reports whether an error of an operation is not a fault of the queue. It may be
	// nil.
	Expected func(error) bool

	ahead     time.Duration
	triggered int
}

// Run runs the life until ctx ends.
func (l *Life) Run(ctx context.Context) error {
	s, err := schedule.Open(l.Queue, &schedule.Options{Logger: hclog.NewNullLogger(), Poll: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	defer s.Close()
	l.report(l.sync(ctx, s, true))
	for ctx.Err() == nil {
		l.report(l.step(ctx, s))
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(l.Rand.Int64N(int64(pauseOfOp)))): // otherwise the scheduler hardly runs
		}
	}
	return nil
}

// report reports an error that nothing explains.
func (l *Life) report(err error) {
	if err == nil || errors.Is(err, context.Canceled) || l.Expected != nil && l.Expected(err) {
		return
	}
	l.Emit(oddLine, fmt.Sprintf("%q", err))
}

// step does one operation.
func (l *Life) step(ctx context.Context, s *schedule.Scheduler) error {
	name := plans[l.Rand.IntN(len(plans))].name
	switch l.Rand.IntN(16) {
	case 0:
		if l.triggered++; l.triggered > triggers {
			return nil
		}
		id, err := s.Trigger(ctx, name)
		if err == nil {
			l.Emit(triggerLine, name, id)
		}
		return ignore(err, pawl.ErrNotFound, pawl.ErrConflict) // a run of that time exists
	case 1:
		return ignore(s.Pause(ctx, name, "for a test"), pawl.ErrNotFound)
	case 2, 3:
		after := []schedule.AfterPause{schedule.SkipPaused, schedule.CatchUpPaused}[l.Rand.IntN(2)]
		return ignore(s.Resume(ctx, name, after), pawl.ErrNotFound)
	case 4:
		return l.sync(ctx, s, false)
	case 5, 6, 7, 8:
		return l.work(ctx)
	}
	step := time.Duration(1 + l.Rand.Int64N(int64(4*time.Second)))
	if l.Rand.IntN(5) == 0 {
		step = -step / 2
	}
	if l.ahead += step; l.ahead > furthest {
		l.ahead -= step
		return nil
	}
	return l.Clock.Move(step)
}

// sync defines all schedules, or some of them.
func (l *Life) sync(ctx context.Context, s *schedule.Scheduler, all bool) error {
	var defs []schedule.Definition
	for i := range plans {
		if all || l.Rand.IntN(4) > 0 {
			defs = append(defs, plans[i].define(plans[i].name))
		}
	}
	return s.Sync(ctx, defs...)
}

// work ends some jobs.
func (l *Life) work(ctx context.Context) error {
	leases, err := l.Queue.Fetch(ctx, pawl.Request{Kinds: []string{kind.Name()}, Max: 1 + l.Rand.IntN(20), Wait: pawl.WaitNot})
	if err != nil {
		return ignore(err, pawl.ErrEmpty)
	}
	var settle []pawl.Settlement
	for _, lease := range leases {
		switch l.Rand.IntN(8) {
		case 0: // it stays leased
		case 1:
			settle = append(settle, lease.Nack(time.Duration(l.Rand.Int64N(int64(3*time.Second))), errors.New("failed")))
		case 2:
			settle = append(settle, lease.Abandon("it makes no sense", nil))
		default:
			settle = append(settle, lease.Ack())
		}
	}
	if len(settle) == 0 {
		return nil
	}
	return ignore(l.Queue.Settle(ctx, settle...), pawl.ErrLeaseLost)
}

// ignore returns err, unless it is one of some errors.
func ignore(err error, some ...error) error {
	for _, one := range some {
		if errors.Is(err, one) {
			return nil
		}
	}
	return err
}
