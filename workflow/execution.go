package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// errFrontier ends a dry run at the end of the journal.
var errFrontier = errors.New("the journal ends here")

// execution is one execution of a run's function. The function makes calls until it returns, the run
// waits, or something stops it. A run that stays in memory continues under its next lease.
type execution struct {
	engine *Engine
	flow   Definition
	lease  *pawl.Lease     // nil in a dry run
	ctx    context.Context // the handler's context
	run    pawl.ID
	row    *runRow // the row when the lease began
	dry    bool    // only compare the code with the journal
	spare  bool    // the journal that is not in use has rows to remove

	abandoned map[string]bool // scopes that, by the journal, had lost a race or were cancelled

	mu            sync.Mutex
	behind        map[string]bool     // scopes that have not reached the end of the journal
	journal       map[string][]*entry // loaded entries of scopes that have not begun, by scope
	calls         []*entry            // calls that wait for children
	branches      int                 // branches in progress
	forks         []*branch           // all branches
	scopes        []*scope
	last          uint32 // seq of the last entry
	made          int    // number of entries
	bytes         int64  // size of their results and errors
	backlog       backlog
	holding       *time.Timer               // writes the ends of steps that wait for another write; see hold
	writes        int                       // writes in progress that carry the backlog
	left          bool                      // this process no longer runs the run, so no timer begins; see letGo
	cancelling    bool                      // a mutation has tried to cancel the run: each later step writes its end immediately
	tail          []*entry                  // calls of the function itself since the last one with an effect
	tailPublished []tailPublished           // values that the function has published since that call
	publishes     map[[countKey]byte]uint64 // how often each scope has published under a name
	published     map[[countKey]byte]uint64 // publishes as the file counts them
	unwound       bool                      // the journal has undo steps, so the function had returned
	active        int                       // scopes that are not waiting
	idle          []*scope                  // waiting scopes
	resting       bool                      // a suspension is in progress
	alarm         *time.Timer               // wakes the waiting scopes at their times; see wakeDue
	rings         time.Time                 // when the alarm rings, by the monotonic clock; zero if it does not
	news          int                       // number of notifications so far
	late          []*scope                  // scopes to wake, if the suspension fails
	observed      uint64                    // Changes of the last row processed
	paused        bool                      // new calls wait
	cancel        string                    // reason to refuse new calls
	stopped       error                     // reason to refuse all calls
	done          chan struct{}             // closed when stopped is set
	undos         []undo
	sharing       sharing
	atWork        []*work        // attempts of steps in progress
	open          sync.WaitGroup // running branches
	turn          *turn
	grace         time.Duration // how long it waits for a signal before it is suspended; see comesWithin
	tried         time.Time     // when its last suspension was tried
	warm          bool          // it is suspended and stays in memory

	loaded  int           // bytes in memory of the entries that were read
	wrote   uint32        // seq of the last entry in the file at the last suspension, for a shared store
	settled chan struct{} // closed when a suspension has succeeded or failed

	returned chan struct{} // closed when the function has returned its output or error
	output   []byte
	err      error
}

func newExecution(ctx context.Context, e *Engine, f Definition, run pawl.ID, l *pawl.Lease) *execution {
	return &execution{engine: e, flow: f, lease: l, ctx: ctx, run: run, dry: l == nil, turn: newTurn(), returned: make(chan struct{}),
		publishes: make(map[[countKey]byte]uint64), abandoned: make(map[string]bool), behind: make(map[string]bool), journal: make(map[string][]*entry), done: make(chan struct{})}
}

// load reads the run: its row, its input and its journal. The row is nil if there is no such
// run.
func (x *execution) load(ctx context.Context) (input []byte, err error) {
	var n driver.Needs // for a young run, this is everything
	n.Read(tableRuns, x.run[:])
	n.Span(tableBlobs, driver.Span{Prefix: x.run[:], Limit: 2})
	n.Span(tableSteps, driver.Span{Prefix: x.run[:], Limit: 64})
	n.Span(tablePublished, driver.Span{Prefix: x.run[:], Limit: 16})
	err = x.engine.source.ViewRows(ctx, func(tx driver.Reader) error {
		if err := driver.ReadAhead(tx, &n); err != nil {
			return err
		}
		r := rowsOf(tx)
		if x.row, err = r.run(x.run); x.row == nil || err != nil {
			return err
		}
		if input, err = r.input(x.run, x.row); err != nil {
			return err
		}
		x.last = firstSeq(x.row.Journal)
		if x.spare, err = r.hasSpare(x.run, x.row); err != nil {
			return err
		}
		if x.published, err = r.readPublished(x.run, x.row.Journal); err != nil {
			return err
		}
		entries, err := r.entries(x.run, x.row.Journal)
		if err != nil {
			return err
		}
		return x.index(r, entries)
	})
	return input, err
}

// index sorts the entries by scope.
func (x *execution) index(r rows, entries []*entry) error {
	x.sharing.remember(entries)
	var races []*raceResult
	for _, e := range entries {
		x.last = max(x.last, e.seq)
		x.made++
		x.bytes += e.weight()
		x.loaded += entryBytes + len(e.Result)
		x.journal[e.Scope] = append(x.journal[e.Scope], e)
		x.unwound = x.unwound || inUndo(e.Scope)
		if e.Kind != KindVersion && !inUndo(e.Scope) {
			x.behind[e.Scope] = true
		}
		if e.Kind == KindChild {
			x.calls = append(x.calls, e)
		}
		if e.Kind.abandons() && e.State == EntryDone {
			won := new(raceResult)
			result, err := r.value(x.run, e)
			if err == nil {
				err = driver.DecodePayload(result, won)
			}
			if err != nil {
				return fmt.Errorf("%w: %s: %w", pawl.ErrCorrupt, e, err)
			}
			for _, name := range won.Losers {
				x.abandoned[name] = true
			}
			races = append(races, won)
		}
	}
	for _, e := range entries {
		if slices.ContainsFunc(races, func(won *raceResult) bool { return won.unheard(e) }) {
			e.State = EntryPending
		}
	}
	return nil
}

// newScope returns the root, or a branch of parent, with its part of the journal. The caller
// holds the lock.
func (x *execution) newScope(name string, parent *scope) *scope {
	s := &scope{x: x, name: name, counts: make(map[string]int), versions: make(map[string]*entry), unasked: make(map[string]*entry), looks: make(map[*look]bool)}
	ctx := x.ctx
	if parent != nil {
		ctx, s.abandoned, s.cut = parent.ctx, parent.abandoned, parent.cut
		s.last, s.undone = parent.last, parent.undone
		parent.passOn(s)
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	for _, e := range x.journal[name] {
		if e.Kind == KindVersion {
			s.versions[e.Name], s.unasked[e.Name] = e, e
		} else {
			s.entries = append(s.entries, e)
		}
	}
	delete(x.journal, name) // the rest belongs to scopes that nobody began
	// Entries were written in the order of their ends. At has the order of the calls.
	slices.SortStableFunc(s.entries, func(a, b *entry) int { return a.At - b.At })
	s.abandoned = s.abandoned || x.abandoned[name]
	x.scopes = append(x.scopes, s)
	x.active++
	return s
}

// stop ends all calls of the run for a reason, and returns the first such reason.
func (x *execution) stop(reason error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stopLocked(reason)
}

func (x *execution) stopLocked(reason error) error {
	if x.stopped == nil {
		x.stopped = reason
		close(x.done)
		for _, s := range x.scopes {
			s.cancel(reason)
		}
	}
	return x.stopped
}

// notify applies the durable requests of others to the run.
func (x *execution) notify() {
	if x.dry {
		return
	}
	var row *runRow
	err := x.engine.source.ViewRows(context.Background(), func(tx driver.Reader) (err error) {
		row, err = rowsOf(tx).run(x.run)
		return err
	})
	if row == nil || err != nil {
		return // the next write will report it
	}
	x.observe(row)
	x.signalled()
}

// signalled wakes the scopes that wait for signals, once one is durable.
func (x *execution) signalled() {
	x.wakeWaiting(func(s *scope) bool { return len(s.waits.signals) > 0 })
}

// retryNow ends the waits for the next attempts of failed steps.
func (x *execution) retryNow() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.wakeLocked(func(s *scope) bool {
		retries := s.current != nil && s.current.toRetry() && !s.waits.due.IsZero()
		s.waits.passed = s.waits.passed || retries
		return retries
	})
}

// wakeWaiting wakes the scopes concerned by a notification. A scope that is about to wait looks again,
// see lookAgain.
func (x *execution) wakeWaiting(concerned func(*scope) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.news++
	x.wakeLocked(concerned)
}

// lookAgain is for a scope that looks for something and then waits for it. If a notification arrives
// in between, the wait ends immediately.
func (x *execution) lookAgain() (ready func() bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seen := x.news
	return func() bool { return x.news != seen }
}

// observe carries out the requests in the row of the run. It ignores a row that is older than the
// last one, since a reader may be slow.
func (x *execution) observe(row *runRow) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if row.Changes < x.observed {
		return
	}
	x.observed = row.Changes
	switch {
	case row.Terminate != "":
		_ = x.stopLocked(ErrTerminated)
	case row.Cancel != "" && x.cancel == "":
		x.cancel = row.Cancel
		for _, s := range x.scopes {
			if !s.inUndo() {
				s.cancel(ErrCancelled)
			}
		}
		x.wakeLocked(func(s *scope) bool { return !s.waits.branches })
	}
	x.paused = row.Paused && x.cancel == ""
	if !x.paused {
		x.wakeLocked(func(s *scope) bool { return s.waits.paused })
	}
}

// value returns the result of an entry, which may be stored apart.
func (x *execution) value(e *entry) (b []byte, err error) {
	if !e.Apart {
		return e.Result, nil
	}
	err = x.engine.source.ViewRows(x.ctx, func(tx driver.Reader) error {
		b, err = rowsOf(tx).value(x.run, e)
		return err
	})
	return b, err
}

// after returns the time at which d will have passed.
func (x *execution) after(d time.Duration) int64 { return unixNano(x.engine.now().Add(max(d, 0))) }

// reason returns why all calls are refused, or nil if they are not.
func (x *execution) reason() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stopped
}
