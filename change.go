package pawl

// Verb is what a [Change] does to a job.
type Verb string

const (
	VerbRetry  Verb = "retry"   // makes a dead job ready
	VerbCancel Verb = "cancel"  // ends a waiting job, asks a running one to end
	VerbDelete Verb = "delete"  // removes a dead job or a completed record
	VerbRunNow Verb = "run-now" // makes a delayed job ready

	// VerbReleaseKey lets the other jobs of a [Key] run although a dead job holds it ([OrderHold]). It takes
	// the ID of the dead job, which [KeyStats] has as Head. The job stays dead. If it is retried, it waits for
	// its turn anew.
	VerbReleaseKey Verb = "release-key"
)

// Change is what an operator or an app does to jobs by their IDs. The transaction that
// changes a job also decides whether the change applies to it. A list that was read
// earlier never decides.
type Change struct {
	Verb         Verb
	KeepAttempts bool      // VerbRetry keeps the count of attempts
	If           Condition // must hold for a job in that transaction; nil for any job
}
