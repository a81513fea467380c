package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// sharedCase is a look at a shared value.
type sharedCase struct {
	on    *shared
	try   attempt
	index int // of the case in a Select

	// result encodes what the journal remembers; nil for the sum of the state.
	result func(sum []byte) ([]byte, error)
}

// sharedWait is a call that may change a shared value, now or later.
type sharedWait struct {
	c     *call
	seq   uint32 // of its entry
	cases []*sharedCase

	// The execution's lock guards the fields below.
	open   bool        // it has looked, and waits: another branch may end it
	ready  func() bool // whether the open call must look again before it sleeps
	missed bool        // it has to look again: a value has changed while the call was not open, or its function has failed
	taken  bool        // another branch has made the change
}

func (c *call) sharedWait(cases ...*sharedCase) *sharedWait {
	return &sharedWait{c: c, seq: c.e.seq, cases: cases}
}

// join makes later changes offer the value to the call, until leave. After leave, nothing calls its functions.
// Goroutines may get here in any order. Each call takes its place by when it began.
func (w *sharedWait) join() (leave func()) {
	if len(w.cases) == 0 {
		return func() {}
	}
	sh := &w.c.x.sharing
	sh.Lock()
	defer sh.Unlock()
	at, _ := slices.BinarySearchFunc(sh.waits, w, func(a, b *sharedWait) int { return cmp.Compare(a.seq, b.seq) })
	sh.waits = slices.Insert(sh.waits, at, w)
	return func() {
		sh.Lock()
		defer sh.Unlock()
		sh.waits = slices.DeleteFunc(sh.waits, func(each *sharedWait) bool { return each == w })
	}
}

// await waits until the condition of the only case holds.
func (w *sharedWait) await(note string) error {
	fresh := !w.c.recorded // then operators should see its entry
	for {
		met, err := w.look(nil, func() { w.opens(fresh, w.changed) })
		if met || err != nil {
			return err
		}
		fresh = false
		if _, err := w.c.idle(waitCondition{shared: true, note: note}, w.changed); err != nil {
			return err
		}
		if over, err := w.over(); over || err != nil {
			return err
		}
	}
}

// changed reports whether the call need not sleep. The caller holds the execution's lock.
func (w *sharedWait) changed() bool { return w.taken || w.missed }

// note says, for operators, what a [Select] waits for.
func (w *sharedWait) note(name string) string {
	var values []string
	for _, each := range w.cases {
		values = append(values, fmt.Sprintf("%q", each.on.name))
	}
	return fmt.Sprintf("waits in %q for the shared value %s", name, strings.Join(values, " or "))
}

// opens lets other branches end the call, which has looked at all that it waits for. It first leaves an unsaved entry
// to the next write.
func (w *sharedWait) opens(unsaved bool, ready func() bool) {
	x := w.c.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if unsaved {
		var j journal
		j.add(x.run, w.c.e)
		x.queueEntry(&j, w.c.e)
	}
	w.open, w.ready = true, ready
	if !w.missed {
		w.c.settled()
	}
}

// over reports whether another branch has ended the call, or else why the call does not continue.
func (w *sharedWait) over() (taken bool, err error) {
	x := w.c.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if w.taken {
		return true, nil
	}
	return false, w.c.refusedLocked()
}

// look ends the call with the first case whose condition is true. Before that, it passes the case to earlier,
// which may end the call in another way, or refuse the case. If no condition is true, look calls unmet before a value
// can change. Both functions may be nil.
func (w *sharedWait) look(earlier func(*sharedCase) (over, refused bool, err error), unmet func()) (met bool, err error) {
	x := w.c.x
	x.sharing.Lock()
	defer x.sharing.Unlock()
	x.mu.Lock()
	taken := w.taken
	w.open, w.missed = false, false
	x.mu.Unlock()
	defer w.c.nextLooks()
	if taken {
		return true, nil
	}
	for _, each := range w.cases {
		next, err := each.try(each.on.state)
		if err != nil {
			return false, err
		}
		if next == nil {
			continue
		}
		if earlier != nil {
			if over, refused, err := earlier(each); over || refused || err != nil {
				return over, err
			}
		}
		if _, err := w.take(each, next, false); err != nil {
			return false, err
		}
		x.spread(each.on)
		return true, nil
	}
	if unmet != nil {
		unmet()
	}
	return false, nil
}

// spread offers a changed value to the waiting calls until none of them takes it. The caller holds the lock of
// x.sharing.
func (x *execution) spread(on *shared) {
	for i := 0; i < len(x.sharing.waits); i++ {
		if x.sharing.waits[i].offer(on) {
			i = -1 // the first call may take what this one has left
		}
	}
}

// offer lets a call of another branch look at a value. If its function fails or panics here, it does so again in
// its own branch.
func (w *sharedWait) offer(on *shared) (took bool) {
	if !slices.ContainsFunc(w.cases, func(each *sharedCase) bool { return each.on == on }) || !w.waits() {
		return false
	}
	defer func() {
		if recover() != nil {
			w.lookAgain()
		}
	}()
	for _, each := range w.cases {
		if each.on != on {
			continue
		}
		next, err := each.try(on.state)
		if err == nil && next != nil {
			took, err = w.take(each, next, true)
		}
		if err != nil {
			w.lookAgain()
			return false
		}
		if took {
			return true
		}
	}
	return false
}

// waits reports whether other branches may end the call. If not, the call looks again by itself.
func (w *sharedWait) waits() bool {
	w.c.x.mu.Lock()
	defer w.c.x.mu.Unlock()
	return w.waitsLocked()
}

func (w *sharedWait) waitsLocked() bool {
	s := w.c.scope
	waits := w.open && !w.taken && s.x.stopped == nil && !s.mute() && (s.waits != nil || !w.ready())
	w.missed = w.missed || !waits
	return waits
}

// lookAgain wakes the branch of the call.
func (w *sharedWait) lookAgain() {
	x := w.c.x
	x.mu.Lock()
	defer x.mu.Unlock()
	w.missed = true
	x.wakeLocked(func(s *scope) bool { return s == w.c.scope })
}

// take ends the call with a change. If another branch makes the change, take refuses it unless the call still waits.
// The caller holds the lock of x.sharing.
func (w *sharedWait) take(each *sharedCase, next []byte, byOther bool) (bool, error) {
	c, x := w.c, w.c.x
	result, err := x.sum(next)
	if err == nil && each.result != nil {
		result, err = each.result(result)
	}
	if err != nil {
		return false, err
	}
	now := x.engine.now()
	x.mu.Lock()
	defer x.mu.Unlock()
	if byOther {
		if !w.waitsLocked() {
			return false, nil
		}
	} else if err := c.mayTake(); err != nil {
		return false, err
	}
	if x.bytes+int64(len(result)) > MaxJournal {
		return false, fmt.Errorf("the journal has more than %d bytes of results and errors: %w; store them elsewhere, or begin anew with Restart", MaxJournal, ErrTooLarge)
	}
	ended := *c.e
	ended.Order = x.sharing.order + 1
	ended.finish(result, now)
	var j journal
	j.add(x.run, &ended)
	x.sharing.order = ended.Order
	*c.e = ended
	x.bytes += int64(len(result))
	x.backlog.add(&j, false)
	x.backlog.results = x.backlog.waiting // a later step waits until the change is written
	c.use()
	each.on.state = next
	if byOther {
		w.taken = true
		x.wakeLocked(func(s *scope) bool { return s == c.scope })
	}
	return true, nil
}

// mayTake refuses a change by a call that does not continue, and a change that would precede changes in the
// journal. The caller holds the lock.
func (c *call) mayTake() error {
	x := c.x
	if x.stopped != nil {
		return x.stopped
	}
	if err := x.mayGoOn(c.scope, c.e.Kind); err != nil {
		return err
	}
	if later := x.sharing.recorded[orderOf(c.name)]; len(later) > 0 {
		return x.stopLocked(x.complete(&DeterminismError{Want: later[0].String(), Got: c.e.String(), Seq: later[0].seq, Wrote: later[0].Build, Line: callLine(),
			Reason: "a new change of a shared value would come before those in the journal; distinguish older runs by Version"}))
	}
	return nil
}
