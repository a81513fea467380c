package sim

import (
	"cmp"
	"errors"

	"github.com/gopawl/pawl"
)

// The answer to a call restricts the states before the call, and determines the states
// after it.

// apply returns a job after a call. Ok is false if the answer is impossible in that state.
func (l law) apply(k known, r *record) (_ known, ok bool) {
	has := k.State == pawl.Leased && k.token == r.token
	answer := r.err
	if r.end == never {
		answer = l.outcome(k, r)
	}
	if r.token != 0 && r.what != "lease" && errors.Is(answer, pawl.ErrLeaseLost) {
		return k, !has
	}
	switch r.what {
	case "enqueue":
		k.due = l.at(r.at) + int64(l.Delay)
		if answer != nil || r.existing != 0 {
			return k, true
		}
		return l.place(k, r.at, false), k.State == "" && !k.gone
	case "lease":
		ok = k.State == pawl.Ready && k.attempts == r.attempts && k.crashes == r.crashes && !l.late(r.at)
		k.State, k.token, k.expires = pawl.Leased, r.token, r.at+int64(l.lease)
		return k, ok
	case "skip":
		return l.done(k, r.at), k.State == pawl.Ready
	case "cancel", "retry", "delete":
		return l.operate(k, r, answer)
	}
	if answer != nil {
		return k, errors.Is(answer, pawl.ErrNotAccepted)
	}
	return l.settle(k, r), has
}

// outcome returns the answer that a call without an answer would have got.
func (l law) outcome(k known, r *record) error {
	if r.token != 0 && (k.State != pawl.Leased || k.token != r.token) {
		return pawl.ErrLeaseLost
	}
	return l.operates(k, r)
}

func (l law) operates(k known, r *record) error {
	bad := false
	switch r.what {
	case "cancel":
		bad = k.State == pawl.Dead || k.State == pawl.Completed
	case "retry":
		bad = k.State != pawl.Dead || l.late(r.at)
	case "delete":
		bad = k.State != pawl.Dead && k.State != pawl.Completed
	default:
		return nil
	}
	switch {
	case k.State == "":
		return pawl.ErrNotFound
	case bad:
		return pawl.ErrConflict
	}
	return nil
}

// operate returns a job after an operator's call.
func (l law) operate(k known, r *record, answer error) (known, bool) {
	want := l.operates(k, r)
	if answer != nil {
		taken := r.what == "retry" && l.Unique != "" && errors.Is(answer, pawl.ErrConflict) && k.State == pawl.Dead
		return k, taken || errors.Is(answer, pawl.ErrNotAccepted) || want != nil && errors.Is(answer, want)
	}
	switch {
	case want != nil:
		return k, false
	case r.what == "delete":
		return known{gone: true}, true
	case r.what == "retry":
		k.reason, k.crashes, k.due = "", 0, l.at(r.at)
		if !r.keep {
			k.attempts = 0
		}
		return l.place(k, r.at, true), true
	case k.State == pawl.Leased:
		k.cancelled = true
		return k, true
	}
	return l.dead(k, pawl.ReasonCancelled), true
}

// settle returns a job after a call that ends or extends its lease.
func (l law) settle(k known, r *record) known {
	if r.what == "extend" {
		k.expires = r.at + int64(l.lease)
		return k
	}
	k.crashes = 0
	if r.what == "nack" || r.what == "abandon" {
		k.attempts++
		k.failures++
	}
	switch {
	case r.what == "ack":
		k.attempts++
		return l.done(k, r.at)
	case k.cancelled:
		return l.dead(k, pawl.ReasonCancelled)
	case r.what == "abandon":
		return l.dead(k, cmp.Or(r.reason, pawl.ReasonPermanent))
	case r.what == "nack" || r.what == "snooze":
		if r.what == "snooze" && r.ran {
			k.attempts = 0
		}
		k.due = l.at(r.at) + int64(max(r.delay, 0))
		return l.place(k, r.at, false)
	}
	return l.place(k, r.at, true)
}

// is reports whether a job in the file is in this state.
func (k known) is(e *pawl.Envelope) bool {
	if e == nil {
		return k.State == ""
	}
	reason := pawl.Reason("")
	if e.Death != nil {
		reason = e.Death.Reason
	}
	switch {
	case k.State != e.State, k.attempts != e.Attempts, k.failures != e.Failures, k.reason != reason:
		return false
	case k.State == pawl.Completed:
		return true
	case k.cancelled != e.Cancelled, k.crashes != e.Crashes:
		return false
	}
	return k.State != pawl.Delayed && k.State != pawl.Ready || k.due == e.NotBefore.UnixNano()
}
