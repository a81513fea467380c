package pawl

import "time"

// Stats is a queue at one moment.
type Stats struct {
	Queues []QueueStats // in the order of their first job
	Storage
}

// Storage describes where a queue keeps its jobs. Its zero value means that the queue does not
// report it.
type Storage struct {
	Path   string // of the file
	Format int    // version of the stored format
	Size   int64  // bytes that are used or reusable
	Free   int64  // bytes of Size that are free; -1 if unknown
	Max    int64  // the most bytes that new jobs may bring into use; 0 if there is no bound, or none is known
}

// QueueStats is one named queue at one moment.
type QueueStats struct {
	Name string
	Counts
	Paused bool
	Rests  time.Time // until when no job of it starts, see [Throttle]; zero if it does not rest
	Limits Limits    // in force; see [LimitKeys]
	Served bool      // a worker runs for it, a fetch waits, or a lease is out; only an open queue of package bolt reports it
	Oldest time.Time // since when the first of the ready jobs that could be fetched now is ready; zero if there is none

	// Declared are the limits that the program declares, if an operator has replaced them with Limits; otherwise nil.
	Declared *Limits
}

// Counts is how many jobs of a queue are in each state.
type Counts struct {
	Ready, Delayed, Leased, Dead, Completed int

	// Blocked is how many of the ready jobs cannot run yet, because a job with their idempotency key is leased, because
	// their [Key] is at a limit of its queue, or because they wait for other jobs ([After]). The rest of the ready jobs
	// is what more workers could run. The count is exact after a fetch that found no job. Until then it may lack some
	// jobs, at most as many of each key as may run at a time. Jobs that wait for [Limits].Running do not count.
	Blocked int

	// Held is how many of the dead jobs hold their key, so that no other job of the key runs: see [OrderHold].
	Held int
}
