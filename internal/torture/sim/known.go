package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// known is a possible state of a job.
type known struct {
	State     pawl.State // "" when it is not in the file
	gone      bool       // it was stored once
	due       int64      // a wall-clock time
	attempts  int
	crashes   int
	failures  int
	cancelled bool
	token     uint64
	expires   int64 // an instant
	reason    pawl.Reason
	ends      int64 // a wall-clock time: the end of its record
}

func (k known) String() string {
	switch {
	case k.State == "" && k.gone:
		return "gone"
	case k.State == "":
		return "not stored"
	}
	text := fmt.Sprintf("%s %s after %d attempts, %d crashes, %d failures", k.State, k.reason, k.attempts, k.crashes, k.failures)
	if k.State == pawl.Leased {
		text += fmt.Sprintf(" by %x until %s", k.token&0xffff, clock(k.expires))
	}
	if k.State == pawl.Delayed {
		text += " until " + clock(k.due)
	}
	if k.cancelled {
		text += ", to end"
	}
	return text
}

// rules are the contract's transitions of a single job.
type rules struct {
	*wall
	lease      time.Duration
	maxCrashes int           // negative for no limit
	slack      time.Duration // the delay until the queue notices a step of the clock
}

// law is the rules for one job.
type law struct {
	*rules
	*Job
	deadline int64 // a wall-clock time, 0 for none
}

func (l law) late(at int64) bool { return l.deadline != 0 && l.deadline <= l.at(at) }

// place returns a waiting job in its state. A ready job stays ready at any time of the clock.
func (l law) place(k known, at int64, ready bool) known {
	k.token, k.expires = 0, 0
	switch {
	case l.late(at):
		return l.dead(k, pawl.ReasonDeadline)
	case ready || k.due <= l.at(at):
		k.State = pawl.Ready
	default:
		k.State = pawl.Delayed
	}
	return k
}

func (l law) dead(k known, reason pawl.Reason) known {
	k.State, k.reason, k.cancelled, k.token, k.expires = pawl.Dead, reason, false, 0, 0
	return k
}

// crash ends a lease without a call of its holder.
func (l law) crash(k known, at int64) known {
	k.crashes++
	switch {
	case k.cancelled:
		return l.dead(k, pawl.ReasonCancelled)
	case l.maxCrashes >= 0 && k.crashes >= l.maxCrashes:
		k.failures++
		return l.dead(k, pawl.ReasonPoison)
	}
	return l.place(k, at, true)
}

// done returns a job after its success: gone, or a completed record.
func (l law) done(k known, at int64) known {
	if l.Retain == 0 {
		return known{gone: true}
	}
	return known{State: pawl.Completed, attempts: k.attempts, failures: k.failures, ends: l.at(at) + int64(l.Retain)}
}

// next returns the next transition of a job by the wall clock.
func (l law) next(k known) (due int64, then known, ok bool) {
	switch k.State {
	case pawl.Completed:
		return k.ends, known{gone: true}, true
	case pawl.Delayed:
		if l.deadline == 0 || k.due < l.deadline {
			then = k
			then.State = pawl.Ready
			return k.due, then, true
		}
	case pawl.Ready:
	default:
		return 0, k, false
	}
	return l.deadline, l.dead(k, pawl.ReasonDeadline), l.deadline != 0
}

// pass adds the possible states of a job after time has passed from one instant to another: at
// the end of the last instant if whole, or else at its start.
func (l law) pass(set []known, k known, from, to int64, whole bool) []known {
	must := func(since int64) bool { return since < to || whole && since == to }
	if k.State == pawl.Leased {
		if k.expires <= to {
			set = l.pass(set, l.crash(k, k.expires), k.expires, to, whole)
		}
		if !must(k.expires) {
			set = add(set, k)
		}
		return set
	}
	due, then, ok := l.next(k)
	if !ok || l.latest(from, to) < due {
		return add(set, k)
	}
	set = l.pass(set, then, from, to, whole)
	if since, is := l.since(due, to); !is || !must(since+int64(l.slack)) {
		set = add(set, k)
	}
	return set
}

func add(set []known, k known) []known {
	if slices.Contains(set, k) {
		return set
	}
	return append(set, k)
}

// all is pass for a whole set.
func (l law) all(set []known, from, to int64, whole bool) (next []known) {
	for _, k := range set {
		next = l.pass(next, k, from, to, whole)
	}
	return next
}
