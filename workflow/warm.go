package workflow

import (
	lru "container/list"
	"context"
	"slices"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// A suspended run may stay in memory. Its functions are blocked in the calls that wait, and
// continue there when its job is leased again: nothing reads the journal, and nothing calls the
// functions again. So the cost of a wake does not depend on the length of the journal. The
// journal has everything that such a run knows, so a run that is dropped from memory continues
// from its journal.
//
// The worker that leases the run first takes it out of the hub, so a run in the hub always
// matches its journal. The exception is a store that several processes share: there, a run
// that continues compares its journal with what it wrote last.

const (
	// DefaultWarm is how many suspended runs stay in memory by default.
	DefaultWarm = 1_000

	maxWarmBytes = 64 << 20 // bytes of all runs in memory, as warmBytes counts them
	scopeBytes   = 16 << 10 // bytes of a waiting function, with its stack
	entryBytes   = 512      // bytes of an entry that was read from the journal, without its result
)

// turn is the part of an execution during one lease.
type turn struct {
	over chan struct{} // closed once the run is suspended and stays in memory
}

func newTurn() *turn { return &turn{make(chan struct{})} }

func (t *turn) isOver() bool { return isClosed(t.over) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// warmRuns are the suspended runs in memory, the last suspended last.
type warmRuns struct {
	mu    sync.Mutex
	runs  map[pawl.ID]*lru.Element
	order lru.List // of *warmRun
	bytes int
}

type warmRun struct {
	x     *execution
	bytes int
}

// add keeps a run that is about to be suspended, since its job may be leased right after the
// commit. The run is not dropped before its suspension has succeeded or failed. If the hub
// already has another execution of the run, one of the two has lost its lease. Then add drops the
// other execution if its suspension has succeeded. Otherwise add returns false, since it is
// unknown which one lost its lease.
func (w *warmRuns) add(x *execution, bytes int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = make(map[pawl.ID]*lru.Element)
	}
	if each := w.runs[x.run]; each != nil {
		if !isClosed(each.Value.(*warmRun).x.settled) {
			return false
		}
		other := w.remove(each)
		defer func() { _ = other.stop(ErrSuspended) }()
	}
	w.runs[x.run] = w.order.PushBack(&warmRun{x, bytes})
	w.bytes += bytes
	return true
}

// take removes and returns a run. It returns nil if the run is not in memory.
func (w *warmRuns) take(run pawl.ID) *execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	if each := w.runs[run]; each != nil {
		return w.remove(each)
	}
	return nil
}

// remove removes a run. The caller holds the lock.
func (w *warmRuns) remove(each *lru.Element) *execution {
	run := w.order.Remove(each).(*warmRun)
	delete(w.runs, run.x.run)
	w.bytes -= run.bytes
	return run.x
}

// trim drops the runs that were suspended first, until at most this many are left, with at most
// [maxWarmBytes].
func (w *warmRuns) trim(most int) {
	var dropped []*execution
	w.mu.Lock()
	for each := w.order.Front(); each != nil && (len(w.runs) > most || w.bytes > maxWarmBytes); {
		next := each.Next()
		if isClosed(each.Value.(*warmRun).x.settled) { // whether the suspension has succeeded is known
			dropped = append(dropped, w.remove(each))
		}
		each = next
	}
	w.mu.Unlock()
	for _, x := range dropped {
		_ = x.stop(ErrSuspended)
	}
}

// mayStay reports whether the run may stay in memory when it is suspended. A run that undoes its
// steps and a cancelled one may not. The caller holds the lock.
func (x *execution) mayStay() bool {
	return x.engine.opts.Warm > 0 && x.cancel == "" && !slices.ContainsFunc(x.idle, (*scope).inUndo)
}

// warmBytes estimates what the run holds in memory. The caller holds the lock.
func (x *execution) warmBytes() int { return len(x.idle)*scopeBytes + x.loaded }

// stayed ends the turn of a run that is suspended. If the run was stopped in the meantime, or its
// suspension failed, it leaves the hub.
func (x *execution) stayed(suspended bool) bool {
	h := x.engine.hub
	x.mu.Lock()
	x.warm = suspended && x.stopped == nil
	warm, over := x.warm, x.turn.over
	x.mu.Unlock()
	if warm {
		h.leave(x.run, x)
	} else {
		h.warm.drop(x)
	}
	close(x.settled)
	if warm {
		close(over)
		h.warm.trim(h.mostWarm(x.engine))
	}
	return warm
}

// drop removes a run that does not stay, unless a worker has taken it.
func (w *warmRuns) drop(x *execution) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if each := w.runs[x.run]; each != nil && each.Value.(*warmRun).x == x {
		w.remove(each)
	}
}

// mostWarm returns how many runs may stay in memory: none once the queue is closed.
func (h *hub) mostWarm(e *Engine) int {
	if isClosed(e.queue.Done()) {
		return 0
	}
	return e.opts.Warm
}

// wake continues a run that stayed in memory. It returns nil if there is none, or if the run has
// to continue from its journal.
func (e *Engine) wake(ctx context.Context, f Definition, l *pawl.Lease) (*execution, *turn) {
	x := e.hub.warm.take(l.ID)
	if x == nil {
		return nil, nil
	}
	<-x.settled
	e.hub.enter(l.ID, x) // later requests are notified; earlier ones are in the row
	t := newTurn()
	if x.engine != e || x.flow != f || !x.goOn(ctx, l, t) {
		e.hub.leave(l.ID, x)
		_ = x.stop(ErrSuspended)
		return nil, nil
	}
	x.rest() // if nothing that it waits for has come
	return x, t
}

// goOn begins a turn: it wakes the scopes whose wait is over. It returns false if the run must
// continue from its journal.
func (x *execution) goOn(ctx context.Context, l *pawl.Lease, t *turn) bool {
	x.mu.Lock()
	warm, idle := x.warm && x.stopped == nil, slices.Clone(x.idle)
	x.mu.Unlock()
	if !warm {
		return false
	}
	w := &waking{x: x, idle: idle, met: make(map[*scope]bool)}
	if err := x.engine.source.ViewRows(ctx, w.look); err != nil || w.row == nil {
		return false // reading the journal reports the error
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped != nil || x.cancel != "" {
		return false
	}
	x.ctx, x.lease, x.row, x.turn = ctx, l, w.row, t
	x.warm, x.resting, x.grace = false, false, 0
	if w.row.Changes >= x.observed {
		x.observed, x.paused = w.row.Changes, false
	}
	for _, s := range x.idle {
		s.ctx, s.cancel = context.WithCancelCause(ctx)
		if s.abandoned {
			s.cancel(ErrAbandoned)
		}
	}
	for _, e := range w.now {
		e.Due = 0
	}
	late := x.late
	x.late = nil
	x.news++ // what they waited for has come, so none of them is open any more; see sharedWait
	x.wakeLocked(func(s *scope) bool { return w.met[s] || slices.Contains(late, s) })
	x.wakeDue(false)
	return true
}

// waking finds out what a run that stayed in memory no longer has to wait for.
type waking struct {
	x    *execution
	idle []*scope

	row *runRow         // nil if the run has to continue from its journal
	met map[*scope]bool // scopes that continue
	now []*entry        // failed steps that an operator retries immediately
}

func (w *waking) look(tx driver.Reader) error {
	r, x := rowsOf(tx), w.x
	row, err := r.mustRun(x.run)
	if err != nil {
		return err
	}
	if !row.open() || row.Status == Blocked || row.Cancel != "" || row.Terminate != "" || row.Paused || row.late(x.engine.now()) ||
		row.Journal != x.row.Journal || row.Restarts != x.row.Restarts {
		return nil
	}
	if x.engine.hub.shared {
		if last, err := r.lastSeq(x.run, row.Journal); last != x.wrote || err != nil {
			return err
		}
	}
	s := &suspend{x: x, now: x.engine.now()}
	for _, each := range w.idle {
		over, err := s.over(r, each.waits)
		if err != nil {
			return err
		}
		w.met[each] = over
		if e := each.current; e != nil && e.Kind != KindChild {
			in, err := r.entry(x.run, e.seq)
			switch {
			case err != nil:
				return err
			case in == nil: // a call that is written only at its end
			case in.State != EntryPending || in.Attempts != e.Attempts: // by another process
				return nil
			case e.toRetry() && in.Due == 0: // see Resume
				w.now, w.met[each] = append(w.now, e), true
			}
		}
	}
	w.row = row
	return nil
}

// lastSeq returns the seq of the last entry of a journal, or that before the first.
func (r rows) lastSeq(run pawl.ID, journal uint8) (last uint32, err error) {
	last = firstSeq(journal)
	err = present(r.Scan(tableSteps, driver.Span{Prefix: journalPrefix(run, journal), Limit: 1, Reverse: true}, func(key, _ []byte) bool {
		last = number32(key)
		return false
	}))
	return last, err
}
