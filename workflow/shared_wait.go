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
	cases []*sharedCase
	open  bool // it has looked, and waits: another branch may end it; x.sharing guards it

	// The execution's lock guards the fields below. Taken is only set while x.sharing is locked, too.
	taken bool // another branch has made the change
	retry bool // its function has failed in another branch, so it must look itself
}

// join makes later changes offer the value to the call, until leave. After leave, nothing calls its functions.
// Calls of the journal may join in any order, since their goroutines do; each takes the place that it had.
func (w *sharedWait) join() (leave func()) {
	sh := &w.c.x.sharing
	sh.Lock()
	defer sh.Unlock()
	at, _ := slices.BinarySearchFunc(sh.waits, w, func(a, b *sharedWait) int { return cmp.Compare(a.c.e.seq, b.c.e.seq) })
	sh.waits = slices.Insert(sh.waits, at, w)
	return func() {
		sh.Lock()
		defer sh.Unlock()
		sh.waits = slices.DeleteFunc(sh.waits, func(each *sharedWait) bool { return each == w })
	}
}

// await waits until the condition of the only case holds.
func (w *sharedWait) await(note string) error {
	c, fresh := w.c, !w.c.recorded
	for {
		met, err := w.look(nil, func() (bool, error) {
			if fresh { // for operators
				fresh = false
				c.x.later(c.e)
			}
			return false, nil
		})
		if met || err != nil {
			return err
		}
		if _, err := c.idle(waitCondition{shared: true, note: note}, w.changed); err != nil {
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

// changed reports whether the call need not wait. The caller holds the execution's lock.
func (w *sharedWait) changed() bool { return w.taken || w.retry }

// note says, for operators, what a [Select] waits for.
func (w *sharedWait) note(name string) string {
	var values []string
	for _, each := range w.cases {
		values = append(values, fmt.Sprintf("%q", each.on.name))
	}
	return fmt.Sprintf("waits in %q for the shared value %s", name, strings.Join(values, " or "))
}

func (w *sharedWait) isTaken() bool {
	x := w.c.x
	x.mu.Lock()
	defer x.mu.Unlock()
	return w.taken
}

// look ends the call with the first case whose condition is true. Before that, it passes the case to earlier,
// which may end the call in another way, or refuse the case. If no case ends the call, last may. If last does not
// either, the call waits, and other branches may end it from then on. No value changes before look returns.
// Each function may be nil.
func (w *sharedWait) look(earlier func(*sharedCase) (over, refused bool, err error), last func() (over bool, err error)) (over bool, err error) {
	x := w.c.x
	x.sharing.Lock()
	defer x.sharing.Unlock()
	x.mu.Lock()
	w.retry = false
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		w.c.settled()
	}()
	if w.isTaken() {
		return true, nil
	}
	w.open = false
	for _, each := range w.cases {
		next, err := each.try(each.on.state)
		if err != nil {
			return false, err
		}
		if next == nil {
			continue
		}
		if earlier != nil {
			over, refused, err := earlier(each)
			if over || err != nil {
				return over, err
			}
			if refused {
				break
			}
		}
		if _, err := w.take(each, next, false); err != nil {
			return false, err
		}
		x.spread(each.on)
		return true, nil
	}
	if last != nil {
		if over, err := last(); over || err != nil {
			return over, err
		}
	}
	w.open = true
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
	if !w.open {
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

// lookAgain wakes the branch of the call.
func (w *sharedWait) lookAgain() {
	x := w.c.x
	x.mu.Lock()
	defer x.mu.Unlock()
	w.retry = true
	x.wakeLocked(func(s *scope) bool { return s == w.c.scope })
}

// take ends the call with a change. If another branch makes the change, take refuses it unless the call may go on.
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
		if x.stopped != nil || c.mute() {
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
		w.taken, w.open = true, false
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
