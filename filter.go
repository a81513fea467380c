package pawl

import "time"

// Filter chooses jobs. The zero value chooses all.
type Filter struct {
	State  State  // "" means any
	Queue  string // "" means any
	Kind   string // "" means any
	Group  string // "" means any
	Reason Reason // why the job is dead; "" means any, and jobs that are not dead too

	// DiedSince and DiedBefore choose dead jobs that died in [DiedSince, DiedBefore). A zero
	// time sets no bound.
	DiedSince, DiedBefore time.Time

	// Order and Newest sort a list. They choose nothing, so Matches ignores them.
	Order  Order
	Newest bool // reverses the order
}

// Order is how a list of jobs is sorted.
type Order string

const (
	// OrderState depends on the state in the filter: ready jobs in the order of fetches,
	// delayed jobs by their times, dead jobs by queue and then by when they died, completed
	// jobs by when their records end. Without a state it is OrderCreated.
	OrderState Order = ""

	// OrderCreated is the order in which the jobs were created, whatever their state.
	OrderCreated Order = "created"

	// OrderDied is the order in which the dead jobs of all queues died. It needs the state
	// [Dead] in the filter.
	OrderDied Order = "died"
)

// Matches reports whether f chooses e. It implements [Condition].
func (f Filter) Matches(e *Envelope) bool {
	switch {
	case f.State != "" && f.State != e.State,
		f.Queue != "" && f.Queue != e.Queue,
		f.Kind != "" && f.Kind != e.Kind,
		f.Group != "" && f.Group != e.Group:
		return false
	case f.Reason == "" && f.DiedSince.IsZero() && f.DiedBefore.IsZero():
		return true
	}
	return e.Death != nil && (f.Reason == "" || f.Reason == e.Death.Reason) &&
		!e.Death.At.Before(f.DiedSince) &&
		(f.DiedBefore.IsZero() || e.Death.At.Before(f.DiedBefore))
}

// Condition is what must hold for a job in the transaction that changes it. [Filter] is
// one. A queue calls Matches on the goroutine of its writer: it must be short, must not
// call the queue, and must not change or keep the job.
//
// A condition that needs neither the payload nor the history of a job may have a method
// ReadsBody() bool that returns false. Then the transaction does not copy them, and the job has
// neither.
type Condition interface {
	Matches(job *Envelope) bool
}
