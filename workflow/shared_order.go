package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// The changes of shared values are numbered in the order in which they happen, and the entry of a change has
// its number. A run that continues from its journal makes the changes again in that order: a call waits for its
// turn. So each function finds the value that it found before, and the call that waited first is first again.
//
// A change is in the backlog as soon as it is visible to other branches, so the journal never has a change
// without the earlier ones. If a branch of a race changes a value and then loses, the change stays, and
// the branch has used its signals. See acts.
//
// A change also offers the value to the waiting calls before another change can happen. So a condition that is true
// between two changes is not missed, however goroutines are scheduled.

// sharing is what an execution knows about its shared values. While a function looks at a value, the lock of
// sharing is held, and the lock of the execution is not.
type sharing struct {
	sync.Mutex
	waits []*sharedWait // waiting calls, in the order in which they began to wait

	// The execution's lock guards the fields below.
	recorded map[string][]*entry // changes that are to be made again, in order; see orderOf
	order    uint64              // number of the last change

	unsettled int // calls that waited when the journal was read, and have not looked again
}

// orderOf returns the part of a run to which a scope belongs. The functions of one part are called again together.
// Each undo step is a part, since its function is not called again once it has returned. The rest is one part.
func orderOf(scope string) string {
	if !inUndo(scope) {
		return ""
	}
	below := strings.TrimPrefix(scope, undoScope+"/")
	step, _, _ := strings.Cut(below, "/")
	return undoScope + "/" + step
}

// remember sorts the changes in the journal.
func (sh *sharing) remember(entries []*entry) {
	sh.recorded = make(map[string][]*entry)
	for _, e := range entries {
		if e.Order != 0 {
			part := orderOf(e.Scope)
			sh.recorded[part] = append(sh.recorded[part], e)
			sh.order = max(sh.order, e.Order)
		}
	}
	for _, part := range sh.recorded {
		slices.SortFunc(part, func(a, b *entry) int { return cmp.Compare(a.Order, b.Order) })
	}
}

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
	c      *call
	cases  []*sharedCase
	taken  bool // another branch has made the change; x.sharing guards it
	missed bool // a value has changed since the call looked; the execution's lock guards it
}

// caughtUp makes a call wait for its turn. A call that already waited in the journal may look once all scopes have
// reached its end. A new call may look, and perhaps change something, once all those calls have looked.
func (w *sharedWait) caughtUp() error {
	c, x := w.c, w.c.x
	if len(w.cases) == 0 {
		return nil
	}
	err := c.await(func() bool {
		if c.recorded {
			return len(x.behind) == 0 || c.mute()
		}
		return x.sharing.unsettled == 0 || c.mute()
	})
	if err != nil {
		return err
	}
	return c.refused()
}

// settled records that the call has looked at what it waits for, or ends. The caller holds the lock.
func (c *call) settled() {
	x := c.x
	if !c.unsettled {
		return
	}
	c.unsettled = false
	if x.sharing.unsettled--; x.sharing.unsettled == 0 {
		x.wakeLocked(func(s *scope) bool { return s.waits.branches })
	}
}

// join makes later changes offer the value to the call, until leave. After leave, nothing calls its functions.
func (w *sharedWait) join() (leave func()) {
	sh := &w.c.x.sharing
	sh.Lock()
	defer sh.Unlock()
	sh.waits = append(sh.waits, w)
	return func() {
		sh.Lock()
		defer sh.Unlock()
		sh.waits = slices.DeleteFunc(sh.waits, func(each *sharedWait) bool { return each == w })
	}
}

// await waits until the condition of the only case holds.
func (w *sharedWait) await(note string) error {
	c := w.c
	for fresh := !c.recorded; ; {
		if met, err := w.look(nil); met || err != nil {
			return err
		}
		if fresh { // for operators
			fresh = false
			c.x.later(c.e)
		}
		if _, err := c.idle(waitCondition{shared: true, note: note}, func() bool { return w.missed }); err != nil {
			return err
		}
		if w.isTaken() {
			return nil
		}
		if err := c.refused(); err != nil {
			return err
		}
	}
}

// note says, for operators, what a [Select] waits for.
func (w *sharedWait) note(name string) string {
	var values []string
	for _, each := range w.cases {
		values = append(values, fmt.Sprintf("%q", each.on.name))
	}
	return fmt.Sprintf("waits in %q for the shared value %s", name, strings.Join(values, " or "))
}

func (w *sharedWait) isTaken() bool {
	sh := &w.c.x.sharing
	sh.Lock()
	defer sh.Unlock()
	return w.taken
}

// look ends the call with the first case whose condition is true. Before that, it passes the case to earlier,
// which may end the call in another way, or refuse the case. Earlier may be nil.
func (w *sharedWait) look(earlier func(*sharedCase) (over, refused bool, err error)) (met bool, err error) {
	x := w.c.x
	x.mu.Lock()
	w.missed = false
	x.mu.Unlock()
	x.sharing.Lock()
	defer x.sharing.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		w.c.settled()
	}()
	if w.taken {
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
	return false, nil
}

// spread offers a changed value to the waiting calls until none of them takes it. The caller holds the lock of
// x.sharing.
func (x *execution) spread(on *shared) {
	for again := true; again; {
		again = false
		for _, w := range x.sharing.waits {
			again = w.offer(on) || again
		}
	}
}

// offer lets a call of another branch look at a value. If its function fails or panics here, it does so again in
// its own branch.
func (w *sharedWait) offer(on *shared) (took bool) {
	x := w.c.x
	x.mu.Lock()
	idle := w.idles()
	w.missed = w.missed || !idle
	x.mu.Unlock()
	if !idle || w.taken {
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

// idles reports whether the branch of the call waits. A branch that does not wait looks by itself. The caller
// holds the execution's lock.
func (w *sharedWait) idles() bool {
	s := w.c.scope
	return s.waits != nil && !s.barred(*s.waits)
}

// lookAgain wakes the branch of the call.
func (w *sharedWait) lookAgain() {
	x := w.c.x
	x.mu.Lock()
	defer x.mu.Unlock()
	w.missed = true
	x.wakeLocked(func(s *scope) bool { return s == w.c.scope })
}

// take ends the call with a change. If another branch makes the change, take refuses it unless the call still
// waits. The caller holds the lock of x.sharing.
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
		if !w.idles() {
			w.missed = true
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

// again repeats a change of the journal, at its turn.
func (w *sharedWait) again(index int, sum func() ([]byte, error)) error {
	c, x := w.c, w.c.x
	if c.e.State == EntryFailed {
		return c.e.err()
	}
	part := orderOf(c.name)
	if err := c.await(func() bool {
		next := x.sharing.recorded[part]
		return len(next) == 0 || next[0] == c.e
	}); err != nil {
		return err
	}
	stored, err := sum()
	if err != nil {
		return x.stop(err)
	}
	reason, err := w.redo(w.cases[index], stored)
	if err != nil {
		return err
	}
	if reason != "" {
		return x.mismatch(&DeterminismError{Want: c.e.String(), Got: c.e.String() + " with another value", Seq: c.e.seq, Wrote: c.e.Build, Reason: reason})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if next := x.sharing.recorded[part]; len(next) > 0 {
		x.sharing.recorded[part] = next[1:]
	}
	if next := x.sharing.recorded[part]; len(next) > 0 {
		x.wakeLocked(func(s *scope) bool { return s.waits.branches && s.current == next[0] })
	}
	return nil
}

// redo repeats a change, and returns why the change differs from the recorded one.
func (w *sharedWait) redo(each *sharedCase, stored []byte) (reason string, err error) {
	x := w.c.x
	x.sharing.Lock()
	defer x.sharing.Unlock()
	next, err := each.try(each.on.state)
	switch {
	case errors.Is(err, errState):
		return err.Error() + "; read the old type too, or share it by another name behind a Version", nil
	case err != nil:
		return "its function fails now: " + err.Error(), nil
	case next == nil:
		return "its condition was true before, and is false now; keep the functions of changes and conditions, or distinguish older runs by Version", nil
	}
	same, err := x.sameSum(stored, next)
	if err != nil {
		return "", err
	}
	if !same {
		return "its function computed another value before; keep the functions of changes and conditions, or distinguish older runs by Version; " +
			"they must not use a clock, a random number, the order of a map, or a variable of another branch", nil
	}
	each.on.state = next
	return "", nil
}

// failed ends the call with the error of its function or its value, unless the run does not continue now. It
// returns what the code receives.
func (w *sharedWait) failed(err error) error {
	c := w.c
	switch {
	case errors.Is(err, errState):
		return c.x.mismatch(&DeterminismError{Want: c.e.String(), Got: c.e.String() + " of another type", Seq: c.e.seq, Wrote: c.e.Build,
			Reason: err.Error() + "; read the old type too, or share it by another name behind a Version"})
	case err == nil || c.refused() != nil || errors.Is(err, ErrCodec):
		return err
	}
	c.x.fail(c.e, err)
	c.x.later(c.e)
	return c.e.err()
}
