package pawl

import (
	"fmt"
	"time"
)

// Filter chooses jobs. The zero value chooses all.
type Filter struct {
	State  State  // "" means any
	Queue  string // "" means any
	Kind   string // "" means any
	Reason Reason // of the death; "" means any, and jobs that are alive too

	// DiedSince and DiedBefore choose dead jobs that died in [DiedSince, DiedBefore). A zero
	// time sets no bound.
	DiedSince, DiedBefore time.Time

	// Order and Newest sort a list. They choose nothing, so Matches ignores them.
	Order  Order
	Newest bool // the last of the order comes first
}

// Order is how a list of jobs is sorted.
type Order string

const (
	// OrderState is that of the state in the filter: ready jobs as they would be fetched,
	// delayed jobs by their times, dead jobs queue by queue as they died, completed jobs as
	// their records end. Without a state it is OrderCreated.
	OrderState Order = ""

	// OrderCreated is the order in which the jobs were created, whatever their state.
	OrderCreated Order = "created"

	// OrderDied is the order in which the dead jobs of all queues died. It needs the state
	// [Dead] in the filter.
	OrderDied Order = "died"
)

// Check returns an [*InvalidError] for a filter with an unknown state or order.
func (f Filter) Check() error {
	switch {
	case f.State != "" && new(Counts).Of(f.State) == nil:
		return invalid("state", "%q is none of %v", f.State, States())
	case f.Order == OrderDied && f.State != Dead:
		return invalid("order", "%q is for dead jobs; add the state %q to the filter", f.Order, Dead)
	case f.Order != OrderState && f.Order != OrderCreated && f.Order != OrderDied:
		return invalid("order", "%q is neither %q nor %q", f.Order, OrderCreated, OrderDied)
	}
	return nil
}

// Matches reports whether f chooses e. It implements [Condition].
func (f Filter) Matches(e *Envelope) bool {
	switch {
	case f.State != "" && f.State != e.State,
		f.Queue != "" && f.Queue != e.Queue,
		f.Kind != "" && f.Kind != e.Kind:
		return false
	case f.Reason == "" && f.DiedSince.IsZero() && f.DiedBefore.IsZero():
		return true
	}
	return e.Death != nil && (f.Reason == "" || f.Reason == e.Death.Reason) &&
		!e.Death.At.Before(f.DiedSince) &&
		(f.DiedBefore.IsZero() || e.Death.At.Before(f.DiedBefore))
}

// ReadsBody returns false. It implements [Condition].
func (f Filter) ReadsBody() bool { return false }

// Condition is what must hold of a job in the transaction that changes it. [Filter] is one.
// A queue calls Matches on the goroutine of its writer: it must be short, must not call the
// queue, and must not change or keep the job.
type Condition interface {
	Matches(job *Envelope) bool

	// ReadsBody reports whether Matches reads the payload or the history. The job has
	// neither if it returns false, so that the transaction does not copy them.
	ReadsBody() bool
}

// NotEligible returns an [ErrNotEligible] about one job; the reason follows its ID.
func NotEligible(id ID, format string, args ...any) error {
	return fmt.Errorf("job %s: %w: %s", id, ErrNotEligible, fmt.Sprintf(format, args...))
}
