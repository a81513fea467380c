// Package bolt is a durable job queue in one bbolt file, for one process at a
// time. It needs no server, no cgo and no setup.
//
//	q, err := bolt.Open("jobs.db", nil)
//	if err != nil { … }
//	defer q.Close()
//
// [Queue] implements [pawl.Queue]. Three nouns make it up:
//
//   - The file: buckets for ready, delayed, leased, failed and completed jobs, which hold
//     the order, and one for the jobs themselves. docs/internals/format.md has the format.
//   - The scheduler: one goroutine, the only writer. It gathers the operations
//     of all callers into one transaction, promotes what has become due, takes
//     back expired leases, hands jobs to waiting fetches, commits, and answers
//     everybody. While a commit is on its way to the disk the next group gathers:
//     nobody waits for a batch to fill and nothing polls.
//   - An operation: a check that may refuse, and an apply that may not fail,
//     because bbolt cannot undo one caller's half of a transaction.
//
// Reading does not go through the scheduler: [Queue.Stats], [Queue.Job] and
// [Queue.Jobs] are short read transactions. [OpenReader] offers the same for a
// file that no process holds. [Queue.Backup] and [Queue.Compact] write the file, as it is
// at one moment, to a new one.
//
// # The app's own data
//
// An app may keep data of its own in the file, in top-level buckets beside the queue's.
// [Queue.Update] runs its writes in a transaction, in which [Queue.EnqueueTx],
// [Queue.AckTx] and [Queue.CancelTx] make jobs, and the end of one, part of it: the
// effect of a job and its ack happen both or not at all. [Queue.View] reads. [Over] opens
// the queue in a database that the app has already; the same verbs then work in its own
// transactions too. Nothing else that changes the queue may be called inside one: it would
// wait for the transaction that waits for it.
//
// # Promises
//
// A nil error means synced to the disk. Whoever opens the file holds its lock,
// so every lease found in it belongs to a process that is gone: those jobs are
// ready again at once, each with one more crash counted.
//
// A sync that fails leaves the outcome of its commit unknown
// ([pawl.ErrUnknownOutcome]) and poisons the queue ([pawl.ErrPoisoned]): after it
// the operating system may show pages that the disk does not have. Close the queue and
// open it again: Open makes a copy of all that was acknowledged and goes on with that. A
// write that fails, as on a full disk ([ErrDisk]), changes nothing, and the queue goes on.
//
// Open refuses a file that others could write to ([ErrInsecure]), and looks at its pages
// before it uses them: a damaged file gives [pawl.ErrCorrupt]. [Salvage] saves what is sound
// in it. [Queue.Check] compares every row with every other.
//
// # Limits
//
// One process at a time, on a local file system: locks on network file systems
// cannot be trusted. The file grows and is reused, but never shrinks. An
// iteration sees each page of it at one moment, not all of it at one moment.
package bolt
