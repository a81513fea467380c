package workflow

import (
	"slices"
	"time"

	"github.com/gopawl/pawl/driver"
)

// alternatives are what a [Select] waits for.
type alternatives struct {
	c       *call
	cases   []Case
	signals []string    // by case; "" for a case without a signal
	valid   []validator // by case
	timer   int         // the After case with the shortest time; -1 for none
	changes *sharedWait
}

// alternatives sorts the cases of a Select.
func (c *call) alternatives(cases []Case) (*alternatives, error) {
	a := &alternatives{c: c, cases: cases, timer: -1, changes: c.sharedWait()}
	for i, each := range cases {
		a.signals, a.valid = append(a.signals, each.signal), append(a.valid, each.valid)
		switch {
		case each.signal != "":
			if err := c.x.mayWait(each.signal); err != nil {
				return nil, err
			}
		case each.shared != nil:
			each.shared.index = i
			each.shared.result = func(sum []byte) ([]byte, error) { return a.result(i, sum) }
			a.changes.cases = append(a.changes.cases, each.shared)
		case each.timer && (a.timer < 0 || each.after < cases[a.timer].after):
			a.timer = i
		}
	}
	return a, nil
}

// condition returns what the call waits for, until a time if that is not zero.
func (a *alternatives) condition(due time.Time) waitCondition {
	w := waitCondition{due: due, ends: true, signals: a.signal().names()}
	if len(a.changes.cases) > 0 {
		w.shared, w.note = true, a.changes.note(a.c.e.Name)
	} else if len(w.signals) == 0 && due.IsZero() { // a race waits in the same way
		w.branches = true
	}
	return w
}

// signal returns the mutation that takes the first case that is ready.
func (a *alternatives) signal() *takeSignal {
	return &takeSignal{signals: a.signals, valid: a.valid, ready: -1, timer: a.timer, result: a.result}
}

// result encodes the result of the call.
func (a *alternatives) result(selected int, payload []byte) ([]byte, error) {
	return driver.EncodePayload(&selection{Selected: selected, Payload: payload, Cases: namesOfCases(a.cases)})
}

// ended returns the first case whose branch has ended, or -1. The caller holds the execution's lock.
func (a *alternatives) ended() int {
	return slices.IndexFunc(a.cases, func(each Case) bool { return each.branch != nil && each.branch.finished && !each.branch.losing })
}

func (a *alternatives) endedNow() int {
	a.c.x.mu.Lock()
	defer a.c.x.mu.Unlock()
	return a.ended()
}

// look ends the call with the first case that is ready.
func (a *alternatives) look(t *takeSignal) (taken bool, err error) {
	if len(a.changes.cases) > 0 {
		taken, err = a.changes.look(func(met *sharedCase) (over, refused bool, err error) { return a.earlier(t, met.index) }, nil)
		if taken || err != nil {
			return taken, a.changes.failed(err)
		}
	}
	t.ready = a.endedNow()
	return a.c.takeSignal(t)
}

// earlier reports whether a case before the case with the given index is ready. If that case has a signal,
// earlier ends the call with it. It leaves a case with a branch to the mutation.
func (a *alternatives) earlier(t *takeSignal, index int) (over, refused bool, err error) {
	if ready := a.endedNow(); 0 <= ready && ready < index {
		return false, true, nil
	}
	early := *t
	early.signals, early.ready, early.early, early.woken = slices.Clone(t.signals), -1, true, false
	clear(early.signals[index:])
	if len(early.names()) == 0 {
		return false, false, nil
	}
	over, err = a.c.takeSignal(&early)
	return over, false, err
}
