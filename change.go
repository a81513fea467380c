package pawl

import "fmt"

// Verb is what a [Change] does to a job.
type Verb string

const (
	VerbRetry  Verb = "retry"   // makes a dead job ready
	VerbCancel Verb = "cancel"  // ends a job that waits, asks one that runs to end
	VerbDelete Verb = "delete"  // removes a dead job or a completed record
	VerbRunNow Verb = "run-now" // makes a delayed job ready
)

// Change is what an operator or an app does to jobs by their IDs. The decision whether it
// applies to a job falls in the transaction that changes the job, so a list that was read
// earlier never decides.
type Change struct {
	Verb         Verb
	KeepAttempts bool      // VerbRetry goes on counting where the job stopped
	If           Condition // must hold of each job in that transaction; nil for any job
}

// Check returns an [*InvalidError] for an unknown verb, and [ErrBatchTooLarge] for more than
// [MaxBatchJobs] jobs.
func (c *Change) Check(jobs int) error {
	switch c.Verb {
	case VerbRetry, VerbCancel, VerbDelete, VerbRunNow:
	default:
		return invalid("verb", "%q is none of %s, %s, %s, %s", truncate(string(c.Verb), 32), VerbRetry, VerbCancel, VerbDelete, VerbRunNow)
	}
	if jobs > MaxBatchJobs {
		return fmt.Errorf("%w: %d jobs, at most %d are changed in one commit; split it", ErrBatchTooLarge, jobs, MaxBatchJobs)
	}
	return nil
}

// Refuses returns an [ErrNotEligible] if the change is not for jobs of a state.
func (c *Change) Refuses(id ID, state State) error {
	ended := state == Dead || state == Completed
	switch {
	case c.Verb == VerbRetry && state != Dead:
		return NotEligible(id, "it is %s, not dead", state)
	case c.Verb == VerbCancel && ended:
		return NotEligible(id, "it is %s already", state)
	case c.Verb == VerbDelete && !ended:
		return NotEligible(id, "it is %s; cancel it first", state)
	case c.Verb == VerbRunNow && state != Delayed:
		return NotEligible(id, "it is %s, not delayed", state)
	}
	return nil
}
