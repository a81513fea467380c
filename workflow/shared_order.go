package workflow

import (
	"cmp"
	"errors"
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
// A change also offers the value to the waiting calls before another change can happen. A call waits as soon as it has
// looked at everything that can end it, even if its goroutine does not sleep yet. So a condition that is true only
// between two changes is not missed, however goroutines are scheduled. The exception is a Select that must look again
// because something else may be ready: it sees only the values of that moment.

// sharing is what an execution knows about its shared values. While a function looks at a value, the lock of
// sharing is held, and the lock of the execution is not.
type sharing struct {
	sync.Mutex
	waits []*sharedWait // calls that wait or are about to, in the order in which they began

	// The execution's lock guards the fields below.
	recorded map[string][]*entry // changes that are to be made again, in order; see orderOf
	order    uint64              // number of the last change

	// Calls that are pending in the journal look again in the order in which they began.
	unlooked  []uint32 // seqs of those that have not looked yet, ascending
	unsettled int      // how many of them neither wait again nor have ended
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

// caughtUp makes a call wait for its turn. A call that is pending in the journal may look once all scopes have reached
// the end of the journal, and the calls that began before it have looked. A new call may look, and perhaps change
// something, once all of those wait again or have ended.
func (w *sharedWait) caughtUp() error {
	c, x := w.c, w.c.x
	if len(w.cases) == 0 {
		c.nextLooks()
		return nil
	}
	err := c.await(func() bool {
		if c.unsettled {
			return len(x.behind) == 0 && slices.Index(x.sharing.unlooked, w.seq) == 0 || c.mute()
		}
		return x.sharing.unsettled == 0 || c.mute()
	})
	if err != nil {
		return err
	}
	return c.refused()
}

// nextLooks records that a call of the journal has looked, and lets the next one look.
func (c *call) nextLooks() {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	c.nextLooksLocked()
}

func (c *call) nextLooksLocked() {
	x := c.x
	at, ok := slices.BinarySearch(x.sharing.unlooked, c.e.seq)
	if !ok {
		return
	}
	x.sharing.unlooked = slices.Delete(x.sharing.unlooked, at, at+1)
	if at == 0 && len(x.sharing.unlooked) > 0 {
		next := x.sharing.unlooked[0]
		x.wakeLocked(func(s *scope) bool { return s.waits.branches && s.current != nil && s.current.seq == next })
	}
}

// settled records that a call of the journal waits again or has ended. The caller holds the lock.
func (c *call) settled() {
	x := c.x
	if !c.unsettled {
		return
	}
	c.nextLooksLocked()
	c.unsettled = false
	if x.sharing.unsettled--; x.sharing.unsettled == 0 {
		x.wakeLocked(func(s *scope) bool { return s.waits.branches })
	}
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
