package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Opener opens the queue of a new process.
type Opener func(path string, o *bolt.Options) (Queue, error)

// Real opens the real queue.
func Real(path string, o *bolt.Options) (Queue, error) {
	q, err := bolt.Open(path, o)
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Simulate runs a case in virtual time, with its files in a folder. The error is a violation.
func Simulate(t *testing.T, c *Case, dir string, open Opener) (err error) {
	synctest.Test(t, func(*testing.T) { err = newWorld(c, dir, open).simulate() })
	return err
}

// world is one simulation. Except for the fields marked as shared it belongs to the goroutine
// that runs the steps.
type world struct {
	history // shared, with its mutex

	c         *Case
	dir       string
	open      Opener
	wall      *wall
	proc      *process
	files     int
	held      []*pawl.Lease // leases of the simulation itself
	faultless bool          // after the last step, all attempts succeed; guarded by the history's mutex

	refusing atomic.Int64 // the instant until which calls are refused
	died     chan struct{}
	killed   chan *process
	all      sync.WaitGroup // goroutines of workers

	// The mutex registry guards the fields below.
	registry sync.Mutex
	numbers  map[pawl.ID]int
	tracks   map[int]*track
	order    []*track
	ran      map[int]int // how often a job ran; guarded by the history's mutex

	judge
}

// step is the time between two steps. Due times are whole milliseconds after a step, so they
// never coincide with one.
const step = 7919 * time.Nanosecond

func newWorld(c *Case, dir string, open Opener) *world {
	w := &world{
		c: c, dir: dir, open: open, wall: newWall(),
		died: make(chan struct{}, 1), killed: make(chan *process, 64),
		numbers: make(map[pawl.ID]int), tracks: make(map[int]*track), ran: make(map[int]int),
	}
	w.decisions = make(map[uint64]int64)
	w.judge = newJudge(w)
	return w
}

// simulate runs the case in virtual time.
func (w *world) simulate() error {
	if err := w.start(w.path()); err != nil {
		return err
	}
	err := w.carryOut()
	if err == nil {
		err = w.drain()
	}
	w.end()
	return err
}

func (w *world) carryOut() error {
	for i, op := range w.c.Ops {
		w.do(op)
		if err := w.pass(step); err != nil {
			return fmt.Errorf("step %d, %s: %w", i, op.Do, err)
		}
		if i%12 == 11 || i == len(w.c.Ops)-1 {
			if err := w.look(false); err != nil {
				return fmt.Errorf("found after step %d, %s: %w", i, op.Do, err)
			}
		}
	}
	return nil
}

// pass lets time pass. If a process dies in that time, another process follows.
func (w *world) pass(d time.Duration) error {
	for end := time.Now().Add(d); ; {
		synctest.Wait()
		timer := time.NewTimer(time.Until(end))
		select {
		case <-timer.C:
			synctest.Wait()
			select {
			case <-w.died:
			default:
				return nil
			}
		case <-w.died:
		case p := <-w.killed:
			timer.Stop()
			if synctest.Wait(); !w.faultless {
				w.crash(p)
			}
			continue
		}
		timer.Stop()
		if err := w.reborn(); err != nil {
			return err
		}
	}
}

// crash ends an idle process.
func (w *world) crash(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.kill()
}

// reborn opens the file of a dead process.
func (w *world) reborn() error {
	old := w.proc
	synctest.Wait()
	if old.failed != nil {
		return old.failed
	}
	w.abandon(old)
	if err := w.judgeCrash(old.diedAt); err != nil {
		return fmt.Errorf("at a crash: %w", err)
	}
	if err := w.start(old.left); err != nil {
		return fmt.Errorf("the file of a crash: %w", err)
	}
	synctest.Wait()
	if err := w.look(true); err != nil {
		return fmt.Errorf("found after a crash: %w", err)
	}
	for number, hand := range old.hands {
		if hand != nil && !w.faultless {
			w.proc.hire(number, hand.crew)
		}
	}
	return nil
}

// abandon releases the file of a dead process.
func (w *world) abandon(p *process) {
	_ = p.q.Close()
	_ = os.Remove(p.path)
}

func (w *world) end() {
	w.mu.Lock()
	if !w.proc.dead {
		w.proc.end()
	}
	w.mu.Unlock()
	w.abandon(w.proc)
	w.all.Wait()
}

func (w *world) path() string {
	w.files++
	return filepath.Join(w.dir, fmt.Sprintf("jobs-%d.db", w.files))
}

func (w *world) numberOf(id pawl.ID) int {
	w.registry.Lock()
	defer w.registry.Unlock()
	return w.numbers[id]
}

func (w *world) trackOf(id pawl.ID) *track {
	w.registry.Lock()
	defer w.registry.Unlock()
	return w.tracks[w.numbers[id]]
}

func (w *world) report(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault(format, args...)
}

// drain ends all faults and works until no work is left.
func (w *world) drain() error {
	w.mu.Lock()
	w.faultless, w.proc.fuse = true, 0
	w.mu.Unlock()
	w.refusing.Store(0)
	if w.c.Clock {
		w.wall.set(0, false)
	}
	for _, hand := range w.proc.running() {
		hand.stalled.Store(0)
		w.stopHand(hand)
	}
	for _, hand := range w.proc.running() {
		<-hand.done
	}
	if err := w.pass(time.Minute + time.Second); err != nil {
		return err
	}
	if err := w.look(false); err != nil {
		return err
	}
	for _, queue := range queueNames {
		w.setPaused(queue, false)
	}
	if w.c.Clock {
		w.wall.set(century+century/4, false) // all jobs that were delayed while the clock was far ahead are due
	}
	last := w.proc.hand(Crew{Queues: queueNames, Kinds: kindNames, Concurrency: 4})
	ctx, stop := context.WithTimeout(context.Background(), drainTime)
	defer stop()
	done := make(chan error)
	go func() { done <- last.Drain(ctx, pawl.WaitFinished) }()
	if err := <-done; err != nil {
		_ = w.look(true)
		return errors.Join(fmt.Errorf("a drain of %v did not end: %w", drainTime, err), w.verdict())
	}
	if err := w.pass(step); err != nil {
		return err
	}
	if err := w.look(true); err != nil {
		return fmt.Errorf("found after the drain: %w", err)
	}
	return w.last()
}

// drainTime limits a drain. It is more than all delays and retentions of a case.
const drainTime = 100 * time.Hour
