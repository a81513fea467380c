package workflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
)

// Run is what the function of a flow, and of each branch, uses to make its calls. Calls of one
// Run are sequential. Use branches for concurrent calls, see [Go].
//
// The function runs again from the top whenever the run continues. So between calls it must
// only compute. Read clocks, draw random numbers and access the outside world in a step.
type Run struct {
	x *execution
	s *scope
}

// Run returns the run, which is also the ID of its job.
func (r *Run) Run() pawl.ID { return r.x.run }

// ID returns the ID given by the starter.
func (r *Run) ID() string { return r.x.row.ID }

// Key identifies the effect of the current step for the outside world. It is the same at every
// attempt and after every crash, and no other step of any run has it. Outside a step it
// identifies the run.
func (r *Run) Key() string {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	for _, e := range [...]*entry{r.s.current, r.s.undoing} {
		if e != nil {
			return r.x.keyOf(e)
		}
	}
	return r.x.run.String()
}

func (x *execution) keyOf(e *entry) string {
	key := x.run.String()
	if x.row.Restarts > 0 {
		key = fmt.Sprintf("%s@%d", key, x.row.Restarts)
	}
	return key + "/" + stepName(e.Scope, e.Name, e.Occurrence)
}

// scope is the function of a run, or a branch: a sequence of calls. The execution's lock guards
// its mutable fields.
type scope struct {
	x      *execution
	name   string
	ctx    context.Context // context of its steps
	cancel context.CancelCauseFunc

	entries  []*entry // its entries in the journal when the run began, in order
	versions map[string]*entry
	unasked  map[string]*entry // versions in the journal that the code has not requested yet
	at       int               // number of calls
	counts   map[string]int    // calls by name
	current  *entry            // the call in progress
	undone   int               // number of undo steps so far, including those of branches that it waited for
	undoing  *entry            // the undo step that runs
	last     uint32            // seq of the last ended call, including calls of branches that it waited for

	refusals  int   // calls refused since the run or the scope stopped
	refusal   error // the error of the last refusal
	spun      bool  // a goroutine that ignored the refusals was ended
	cancelled bool  // it received ErrCancelled
	abandoned bool  // another branch won the race, or the branch was cancelled
	cut       bool  // it received ErrAbandoned, and its later entries in the journal are void

	unsettled bool // its call is pending in the journal, and does not wait again yet

	looks map[*look]bool // signals that it has received and no scope has used

	waits *waitCondition // nil while it works
	ended bool           // its function has returned
}

// call is one call in progress. The code that begins it also ends it.
type call struct {
	*scope
	e        *entry
	recorded bool // the journal has it
	known    bool // the journal has its end
}

// begin begins a call: it finds the entry in the journal, or makes a new one at the end of the
// scope's part of the journal.
func (s *scope) begin(kind EntryKind, name string, key []byte) (*call, error) {
	if err := validName(string(kind), name); err != nil {
		return nil, err
	}
	s.spin()
	if err := s.awaitTurn(kind); err != nil {
		return nil, err
	}
	c, err := s.find(kind, name, key)
	if err == errFrontier { // the other scopes are still compared up to their ends
		_, _ = s.idle(waitCondition{paused: true}, nil)
	}
	return c, err
}

// find is the locked part of begin.
func (s *scope) find(kind EntryKind, name string, key []byte) (*call, error) {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := s.mayCall(); err != nil {
		return nil, err
	}
	if s.cut {
		return nil, s.refuse(ErrAbandoned)
	}
	s.counts[name]++
	got := &entry{Scope: s.name, At: s.at, Name: name, Occurrence: s.counts[name], Kind: kind, State: EntryPending, Key: key}
	if s.at < len(s.entries) {
		e := s.entries[s.at]
		if err := x.compare(e, got); err != nil {
			return nil, x.stopLocked(err)
		}
		s.at++ // even if it is refused, since the next call is the next position
		if s.cut = e.givenBack(); s.cut {
			return nil, s.refuse(ErrAbandoned)
		}
		if e.State == EntryPending {
			x.caughtUp(s)
			if err := x.mayGoOn(s, kind); err != nil {
				return nil, err
			}
			s.unsettled = kind == KindCondition || kind == KindSelect
			if s.unsettled {
				x.sharing.unsettled++
				at, _ := slices.BinarySearch(x.sharing.unlooked, e.seq)
				x.sharing.unlooked = slices.Insert(x.sharing.unlooked, at, e.seq)
			}
		}
		s.acts(kind)
		if e.Order != 0 {
			s.use()
		}
		s.looked(e)
		s.current = e
		return &call{s, e, true, e.State != EntryPending}, nil
	}
	if kind.begins() && s.mute() {
		s.current = got
		return &call{s, got, false, false}, nil
	}
	if len(s.unasked) > 0 && !s.mute() {
		return nil, x.stopLocked(s.unread())
	}
	if err := s.mayAdd(got); err != nil {
		return nil, err
	}
	s.at++
	s.acts(kind)
	s.looked(got)
	s.current = got
	return &call{s, got, false, false}, nil
}

// mute reports whether the scope makes no more new calls. A branch that a mute scope begins has
// no entry, because that branch makes no calls either. The caller holds the lock.
func (s *scope) mute() bool { return s.abandoned || s.x.cancel != "" && !s.inUndo() }

// mayAdd numbers a call that the journal does not have. The caller holds the lock.
func (s *scope) mayAdd(got *entry) error {
	x := s.x
	if x.unwound && !s.mute() && !s.inUndo() && x.made < MaxEntries {
		return x.stopLocked(x.complete(&DeterminismError{Got: got.String(), Line: callLine(),
			Reason: "the run had made all its calls, and was undoing them; add none until it has ended"}))
	}
	if err := x.mayGoOn(s, got.Kind); err != nil {
		return err
	}
	if err := x.number(got); err != nil {
		return s.refuse(err)
	}
	return nil
}

// unread returns the mismatch of a scope that has passed a version without requesting it.
func (s *scope) unread() error {
	var first *entry
	for _, e := range s.unasked {
		if first == nil || e.seq < first.seq {
			first = e
		}
	}
	return s.x.complete(&DeterminismError{Want: first.String(), Seq: first.seq, Wrote: first.Build,
		Reason: "keep the call of Version until no open run has it in its journal"})
}

// number gives a new entry its place in the journal if there is room. An undo step always gets a
// place, and the calls of undo steps have separate room of the same size. The caller holds the
// lock.
func (x *execution) number(e *entry) error {
	room := MaxEntries
	if inUndo(e.Scope) {
		room *= 2
	}
	if x.made >= room && e.Kind != KindUndo {
		return fmt.Errorf("%s: the journal has %d entries: %w; Restart begins a new one", e, x.made, ErrTooMany)
	}
	x.made++
	if x.made == MaxEntries/2 {
		x.engine.opts.Logger.Warn("the journal of a run is half full; Restart begins a new one", "flow", x.row.Flow, "id", x.row.ID, "entries", x.made)
	}
	x.last++
	e.seq, e.Build, e.Started = x.last, x.engine.opts.Build, x.engine.now().UnixNano()
	return nil
}

// awaitTurn makes a call that has not ended wait while the run is paused. A call that the journal
// does not have then waits for its turn: until all scopes have returned from their calls in the
// journal. Before that, it is unknown whether the code matches the journal, and which signals the
// branches of a race used before a crash.
func (s *scope) awaitTurn(kind EntryKind) error {
	x := s.x
	paused := func() bool {
		return x.paused && !s.abandoned && s.current == nil &&
			(s.at >= len(s.entries) || s.entries[s.at].State == EntryPending)
	}
	for {
		x.mu.Lock()
		wait := x.stopped == nil && !x.dry && paused()
		x.mu.Unlock()
		if !wait {
			break
		}
		if _, err := s.idle(waitCondition{paused: true}, func() bool { return !paused() }); err != nil {
			return err
		}
	}
	_ = s.await(func() bool { // the call itself reports the error
		return len(x.behind) == 0 || kind == KindUndo || x.dry || s.mute() || s.current != nil || s.at < len(s.entries)
	})
	return nil
}

// mayCall refuses an impossible call. The caller holds the lock.
func (s *scope) mayCall() error {
	switch {
	case s.x.stopped != nil:
		return s.refuse(s.x.stopped)
	case s.current != nil:
		return fmt.Errorf("%w: %s is under way; make calls one after another, outside of steps, or in branches with a Run of their own", ErrNested, s.current)
	case s.waits != nil:
		return fmt.Errorf("%w: the function of this Run waits; make the calls of a branch with the Run of the branch", ErrNested)
	case s.ended:
		return fmt.Errorf("%w: the function of this Run has returned", ErrNested)
	}
	return nil
}

// leave records that the function has returned.
func (s *scope) leave() {
	s.x.mu.Lock()
	s.ended = true
	s.x.forgetBehind(s)
	s.x.mu.Unlock()
}

// mayGoOn refuses a call whose end is not in the journal. The caller holds the lock.
func (x *execution) mayGoOn(s *scope, kind EntryKind) error {
	switch {
	case kind == KindUndo && !x.dry:
		return nil
	case s.abandoned:
		return s.refuse(ErrAbandoned)
	case x.cancel != "" && !s.inUndo():
		s.cancelled = true
		return s.refuse(ErrCancelled)
	case x.dry:
		return errFrontier
	}
	return nil
}

// end ends the call.
func (c *call) end() {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	if c.e.Signal != 0 && c.e.State == EntryDone && !c.abandoned {
		c.got(c.e.seq)
	}
	c.settled()
	if c.current = nil; c.e.State != EntryPending {
		c.last = max(c.last, c.e.seq)
	}
	c.x.caughtUp(c.scope)
}

// become replaces the content of the call's entry by e, which is in the file now.
func (c *call) become(e *entry) {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	*c.e = *e
}

// remedy returns what to do about an unreadable result.
func remedy(kind EntryKind) string {
	if kind.receives() {
		return "; if the code has the type that it had before, the signal was sent with a wrong one: " +
			"fork the run from this wait, and terminate it"
	}
	return "; read the old type too, give the flow AllowUnknownFields if a field was removed, or call it by another name behind a Version"
}

// outcome returns the result of the call.
func (c *call) outcome(decode func([]byte) error) error {
	switch c.e.State {
	case EntryFailed:
		return c.e.err()
	case EntryBegun:
		return c.x.mismatch(&DeterminismError{Want: c.e.String() + " with calls of its own", Got: c.e.String() + " without any", Seq: c.e.seq,
			Wrote: c.e.Build, Reason: "keep the UndoWith until the run has ended"})
	}
	b, err := c.x.value(c.e)
	if err != nil {
		return c.x.stop(err)
	}
	if err := decode(b); err != nil {
		return c.x.mismatch(&DeterminismError{Want: c.e.String(), Got: c.e.String() + " of another type", Seq: c.e.seq,
			Wrote: c.e.Build, Reason: "its result cannot be read: " + err.Error() + remedy(c.e.Kind)})
	}
	return nil
}

// leftover returns the mismatch of a scope that returned before it made all calls in the
// journal.
func (s *scope) leftover() error {
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped != nil || s.abandoned || s.cancelled {
		return nil
	}
	if s.at >= len(s.entries) {
		if len(s.unasked) > 0 {
			return x.stopLocked(s.unread())
		}
		return nil
	}
	e := s.entries[s.at]
	return x.stopLocked(x.complete(&DeterminismError{Want: e.String(), Seq: e.seq, Wrote: e.Build,
		Reason: "the function returned before it; keep the calls that were made"}))
}

// decodeInto decodes a value of the run as its flow requires.
func (r *Run) decodeInto(v any) func([]byte) error {
	return func(b []byte) error { return r.x.decode(b, v) }
}

func decodeNothing([]byte) error { return nil }
