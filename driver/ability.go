package driver

import "github.com/gopawl/pawl"

// Able is a queue that declares its abilities. They do not change while it is open.
type Able interface {
	Abilities() pawl.Ability
}

// Settings are the abilities to do what a job or a request sets.
const Settings = pawl.UniqueKeys | pawl.IdempotencyKeys | pawl.Priorities | pawl.Deadlines | pawl.Retention | pawl.RetryShares | pawl.LimitKeys

// SupportsJobs returns an error if a job sets what a queue with these abilities cannot do. Enqueue, Transfer, and the
// Enqueue of [Ops] call it before they fill in defaults. A queue that has all [Settings], [pawl.FairKeys],
// [pawl.Groups], [pawl.Cursors], and [pawl.Prerequisites] need not call it.
func SupportsJobs(a pawl.Ability, jobs ...*pawl.Envelope) error {
	for _, e := range jobs {
		if e == nil {
			continue // the other checks refuse it
		}
		for _, set := range []struct {
			field string
			needs pawl.Ability
			is    bool
		}{
			{"unique key", pawl.UniqueKeys, e.UniqueKey != ""},
			{"idempotency key", pawl.IdempotencyKeys, e.IdempotencyKey != ""},
			{"priority", pawl.Priorities, e.Priority != 0},
			{"deadline", pawl.Deadlines, !e.Deadline.IsZero()},
			{"retention", pawl.Retention, e.Retain != 0},
			{"key", pawl.LimitKeys, e.Key != ""},
			{"cost", pawl.LimitKeys, e.Cost > 1},
			{"weight", pawl.FairKeys, e.Weight > 1},
			{"group", pawl.Groups, e.Group != ""},
			{"cursor", pawl.Cursors, e.Cursor != nil},
			{"prerequisites", pawl.Prerequisites, Waits(e)},
		} {
			if set.is && a&set.needs == 0 {
				return lacks(set.field, set.needs)
			}
		}
	}
	return nil
}

// SupportsRestore is [SupportsJobs] for a restore.
func SupportsRestore(a pawl.Ability, jobs []*pawl.Envelope, effects []Effect) error {
	if len(effects) > 0 && a&pawl.IdempotencyKeys == 0 {
		return lacks("effects", pawl.IdempotencyKeys)
	}
	return SupportsJobs(a, jobs...)
}

// SupportsRequest is [SupportsJobs] for a fetch.
func SupportsRequest(a pawl.Ability, r pawl.Request) error {
	if r.RetryShare != 0 && a&pawl.RetryShares == 0 {
		return lacks("RetryShare", pawl.RetryShares)
	}
	return nil
}

func lacks(field string, a pawl.Ability) error {
	return &pawl.InvalidError{Field: field, Reason: "the queue has no " + a.String() + "; see pawl.Require", Lacks: a}
}

// SupportsLimits returns an error if an engine with these abilities cannot keep the limits of a queue.
func SupportsLimits(a pawl.Ability, l pawl.Limits) error {
	switch {
	case l.InOrder != pawl.OrderNone && a&pawl.OrderedKeys == 0:
		return lacks("InOrder", pawl.OrderedKeys)
	case l.Fair && a&pawl.FairKeys == 0:
		return lacks("Fair", pawl.FairKeys)
	case l.MaxWaiting > 0 && a&pawl.BoundedQueues == 0:
		return lacks("MaxWaiting", pawl.BoundedQueues)
	case l.MaxWaitingPerKey > 0 && a&pawl.BoundedQueues == 0:
		return lacks("MaxWaitingPerKey", pawl.BoundedQueues)
	case l.Pool != pawl.Pool{} && a&pawl.SharedPools == 0:
		return lacks("Pool", pawl.SharedPools)
	}
	return nil
}
