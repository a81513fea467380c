package driver

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// CheckChange returns a [*pawl.InvalidError] for an unknown verb, and [pawl.ErrBatchTooLarge] for
// more than [pawl.MaxBatchJobs] jobs.
func CheckChange(c *pawl.Change, jobs int) error {
	switch c.Verb {
	case pawl.VerbRetry, pawl.VerbCancel, pawl.VerbDelete, pawl.VerbRunNow, pawl.VerbReleaseKey:
	default:
		return invalid("verb", "%q is none of %s, %s, %s, %s, %s", ellipsis.Abbreviate(string(c.Verb), 32),
			pawl.VerbRetry, pawl.VerbCancel, pawl.VerbDelete, pawl.VerbRunNow, pawl.VerbReleaseKey)
	}
	if jobs > pawl.MaxBatchJobs {
		return fmt.Errorf("%w: %d jobs, at most %d are changed in one commit; split it",
			pawl.ErrBatchTooLarge, jobs, pawl.MaxBatchJobs)
	}
	return nil
}

// Refuses returns a [pawl.ErrNotEligible] if a change does not apply to jobs in a state. Holds says that the job holds
// its key.
func Refuses(c *pawl.Change, id pawl.ID, state pawl.State, holds bool) error {
	ended := state == pawl.Dead || state == pawl.Completed
	switch {
	case c.Verb == pawl.VerbRetry && state != pawl.Dead:
		return NotEligible(id, "it is %s, not dead", state)
	case c.Verb == pawl.VerbCancel && ended:
		return NotEligible(id, "it is %s already", state)
	case c.Verb == pawl.VerbDelete && !ended:
		return NotEligible(id, "it is %s; cancel it first", state)
	case c.Verb == pawl.VerbRunNow && state != pawl.Delayed:
		return NotEligible(id, "it is %s, not delayed", state)
	case c.Verb == pawl.VerbReleaseKey && state != pawl.Dead:
		return NotEligible(id, "it is %s, not dead", state)
	case c.Verb == pawl.VerbReleaseKey && !holds:
		return NotEligible(id, "it holds no key")
	}
	return nil
}

// ReadsBody reports whether a condition needs the payload or the history of a job. A [pawl.Filter] does not, nor does
// a condition with a method ReadsBody() bool that returns false.
func ReadsBody(c pawl.Condition) bool {
	if _, ok := c.(pawl.Filter); ok {
		return false
	}
	r, ok := c.(interface{ ReadsBody() bool })
	return !ok || r.ReadsBody()
}

// ChangeOne applies a change to one job. It returns the error of the call, or else of the job.
func ChangeOne(ctx context.Context, change func(context.Context, pawl.Change, ...pawl.ID) ([]error, error), c pawl.Change, id pawl.ID) error {
	errs, err := change(ctx, c, id)
	if err != nil {
		return err
	}
	return errs[0]
}

// NotEligible returns a [pawl.ErrNotEligible] about one job. The reason follows its ID.
func NotEligible(id pawl.ID, format string, args ...any) error {
	return fmt.Errorf("job %s: %w: %s", id, pawl.ErrNotEligible, fmt.Sprintf(format, args...))
}

// NotAccepted returns the error of a call whose context ended before its transaction began. It
// matches [pawl.ErrNotAccepted] and the error and the cause of the context.
func NotAccepted(ctx context.Context) error {
	err := fmt.Errorf("%w: %w", pawl.ErrNotAccepted, ctx.Err())
	if cause := context.Cause(ctx); cause != ctx.Err() {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// CheckFilter returns a [*pawl.InvalidError] for a filter with an unknown state or order.
func CheckFilter(f pawl.Filter) error {
	switch {
	case f.State != "" && !slices.Contains(pawl.States(), f.State):
		return invalid("state", "%q is none of %v", f.State, pawl.States())
	case f.Order == pawl.OrderDied && f.State != pawl.Dead:
		return invalid("order", "%q is for dead jobs; add the state %q to the filter", f.Order, pawl.Dead)
	case f.Order != pawl.OrderState && f.Order != pawl.OrderCreated && f.Order != pawl.OrderDied:
		return invalid("order", "%q is neither %q nor %q", f.Order, pawl.OrderCreated, pawl.OrderDied)
	}
	return nil
}

// CountOf returns the count of one state, to read or to change, and nil for an unknown state.
func CountOf(c *pawl.Counts, state pawl.State) *int {
	switch state {
	case pawl.Ready:
		return &c.Ready
	case pawl.Delayed:
		return &c.Delayed
	case pawl.Leased:
		return &c.Leased
	case pawl.Dead:
		return &c.Dead
	case pawl.Completed:
		return &c.Completed
	}
	return nil
}

// AddCounts adds the counts of another queue to c.
func AddCounts(c *pawl.Counts, other pawl.Counts) {
	for _, state := range pawl.States() {
		*CountOf(c, state) += *CountOf(&other, state)
	}
	c.Blocked += other.Blocked
	c.Held += other.Held
}

func invalid(field, format string, args ...any) error {
	return &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
