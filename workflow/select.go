package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Case is one thing that a [Select] waits for. [Signal.Case], [Branch.Case], [Shared.Case] and [After] make cases.
type Case struct {
	name   string // its identity in the journal
	signal string
	branch *branch
	shared *sharedCase
	timer  bool
	after  time.Duration
	err    error

	valid  validator
	read   func(r *Run, n uint64, payload []byte) error
	result func() error
}

// Case is ready when the run has an unread signal. If the case is selected, Select receives the
// signal and stores its value in *out. Out may be nil.
func (s *Signal[T]) Case(out *T) Case {
	return Case{name: signalCase + s.name, signal: s.name, err: s.err, read: func(r *Run, _ uint64, payload []byte) error {
		var v T
		if err := r.decodeInto(&v)(payload); err != nil {
			return err
		}
		if out != nil {
			*out = v
		}
		return nil
	}}
}

// Case is ready when the branch has ended. If the case is selected, Select stores the result of the branch in *out, and
// returns its error. Out may be nil. A branch that is not selected continues.
func (b *Branch[T]) Case(out *T) Case {
	return Case{name: "branch " + b.name, branch: b.branch, result: func() error {
		v, err := b.result()
		if out != nil {
			*out = v
		}
		return err
	}}
}

// After is ready after d, if no other case is ready then. With 0 or less, [Select] does not wait: it only looks whether
// a case is ready. If a Select has several such cases, the shortest time counts.
func After(d time.Duration) Case { return Case{name: timerCase, timer: true, after: d} }

// Select waits until one of the cases is ready, and returns its index. If several are ready, it selects the
// first of them. The journal remembers which one. Only the selected case takes effect: signals of the
// others stay unread, and their branches continue. To wait for a child, call it in a branch.
//
// The error is that of the selected branch. If no case was selected, the index is -1, and the error says
// that the run does not continue now: return it.
func Select(r *Run, name string, cases ...Case) (selected int, err error) {
	if len(cases) == 0 {
		return -1, &pawl.InvalidError{Field: "select", Reason: fmt.Sprintf("%q has no case", name)}
	}
	names := 0
	for i, each := range cases {
		if names += len(each.name) + 8; names > maxCases/2 {
			return -1, fmt.Errorf("select %q: the names of its %d cases have more than %d bytes: %w", name, len(cases), maxCases/2, ErrTooLarge)
		}
		if each.err != nil {
			return -1, fmt.Errorf("select %q: case %d: %w", name, i, each.err)
		}
		if each.name == "" {
			return -1, &pawl.InvalidError{Field: "select", Reason: fmt.Sprintf("case %d of %q is empty; make it with Signal.Case, Branch.Case, Shared.Case or After", i, name)}
		}
		if each.shared != nil {
			if err := each.shared.on.usableBy(r.s); err != nil {
				return -1, fmt.Errorf("select %q: case %d: %w", name, i, err)
			}
		}
	}
	return r.choose(name, cases)
}

// maxCases is how many more bytes than a payload the result of a Select may have. Half of it is for the names of the
// cases.
const maxCases = 256 << 10

// Prefixes of the names of cases. The name of the signal follows.
const (
	signalCase = "signal "
	timerCase  = "timer"
)

// selection is a journal's record of a Select.
type selection struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Selected int
	Payload  []byte   // payload of the signal, or sum of the shared value; nil for other cases
	Cases    []string // in the order of the code
}

func (r *Run) choose(name string, cases []Case) (int, error) {
	s, x := r.s, r.x
	c, err := s.begin(KindSelect, name, nil)
	if err != nil {
		return -1, err
	}
	defer c.end()
	if !c.known {
		if err := c.awaitCase(cases); err != nil {
			return -1, err
		}
	}
	var got selection
	if err := c.outcome(func(b []byte) error { return driver.DecodePayload(b, &got) }); err != nil {
		return -1, err
	}
	if now := namesOfCases(cases); !slices.Equal(got.Cases, now) || got.Selected < 0 || got.Selected >= len(cases) {
		return -1, x.mismatch(&DeterminismError{Want: fmt.Sprintf("%s of %q, and number %d was selected", c.e, got.Cases, got.Selected+1),
			Got: fmt.Sprintf("%s of %q", c.e, now), Seq: c.e.seq, Wrote: c.e.Build, Reason: "keep the cases, and their order"})
	}
	switch each := cases[got.Selected]; {
	case each.branch != nil:
		if err := s.await(func() bool { return s.follows(each.branch) }); err != nil {
			return -1, err
		}
		return got.Selected, each.result()
	case each.shared != nil && c.known:
		if err := c.sharedWait(each.shared).again(0, func() ([]byte, error) { return got.Payload, nil }); err != nil {
			return -1, err
		}
	case each.signal != "":
		return got.Selected, c.outcome(func([]byte) error { return each.read(r, c.e.Signal, got.Payload) })
	}
	return got.Selected, nil
}

func namesOfCases(cases []Case) (names []string) {
	for _, each := range cases {
		names = append(names, each.name)
	}
	return names
}

// awaitCase ends the call with the first case that is ready.
func (c *call) awaitCase(cases []Case) error {
	x, e := c.x, c.e
	a, err := c.alternatives(cases)
	if err != nil {
		return err
	}
	limit := Forever
	if a.timer >= 0 {
		limit = cases[a.timer].after
	}
	unsaved := c.limit(limit)
	w := a.condition(timeOf(e.Due))
	wait := forever
	if e.Due != 0 {
		wait = w.due.Sub(x.engine.now())
	}
	if err := a.changes.caughtUp(); err != nil {
		return err
	}
	defer a.changes.join()()
	for passed, woken := false, false; ; woken = true {
		again := x.lookAgain()
		t := a.signal()
		t.woken, t.over = woken, passed || wait <= 0 && !c.recorded
		taken, err := a.look(t)
		if taken || err != nil {
			return err
		}
		ready := func() bool { return again() || a.ended() >= 0 || a.changes.changed() }
		a.changes.opens(unsaved, ready)
		if unsaved {
			unsaved = false
			if err := c.written(wait); err != nil {
				return err
			}
		}
		if passed, err = c.idle(w, ready); err != nil {
			return err
		}
		if over, err := a.changes.over(); over || err != nil {
			return err
		}
	}
}
