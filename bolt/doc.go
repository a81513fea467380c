// Package bolt is a durable job queue in one bbolt file, for one process at a time. It needs no
// server, no cgo and no setup.
//
//	q, err := bolt.Open("jobs.db", nil)
//	if err != nil { … }
//	defer q.Close()
//
// [Queue] implements [pawl.Queue]. It has three parts:
//
//   - The file: buckets for ready, delayed, leased, failed and completed jobs, which hold the
//     order, and one for the jobs themselves. docs/internals/format.md describes the format.
//   - The scheduler: one goroutine, the only writer. It combines the operations of all callers
//     in one transaction, promotes due jobs, takes back expired leases, gives jobs to waiting
//     fetches, commits, and answers all callers. While a commit is being synced the next batch
//     forms: no call waits for a batch to fill, and nothing polls.
//   - An operation: a check that may refuse, and an apply that must not fail, because bbolt
//     cannot undo one caller's part of a transaction.
//
// Reads bypass the scheduler: [Queue.Stats], [Queue.Job] and [Queue.Jobs] are short read
// transactions. [OpenReader] offers the same for a file that no process holds. Queue.Backup and
// Queue.Compact write a snapshot of the file to a new file.
//
// # The app's own data
//
// An app may keep its own data in the file, in top-level buckets beside the queue's. [Queue.Update]
// runs the app's writes in a transaction. With [Queue.EnqueueTx], [Queue.AckTx], and
// [Queue.CancelTx], new jobs and the end of a job are part of that transaction: a job's effect and
// its ack are atomic. [Queue.View] reads. [Over] opens the queue in a database that the app already
// has. The same functions then work in the app's own transactions too. Do not call anything else
// that changes the queue inside a transaction: the call would wait for the transaction, which waits
// for the call.
//
// # Promises
//
// A nil error means that the change is synced to the disk. The process that opens the file holds
// its lock, so every lease in the file belongs to a process that is gone. Those jobs are ready
// again immediately, with one more crash counted for each.
//
// A failed sync leaves the outcome of its commit unknown ([pawl.ErrUnknownOutcome]) and poisons
// the queue ([pawl.ErrPoisoned]), because the operating system may then show pages that the
// disk does not have. Close the queue and open it again: Open copies everything that was
// acknowledged and continues with the copy. A failed write, as on a full disk ([ErrDisk]),
// changes nothing, and the queue continues.
//
// Open refuses a file that others could write to ([ErrInsecure]). It checks the pages before it
// uses them: a damaged file returns [pawl.ErrCorrupt]. [Salvage] saves what is sound in such a
// file. [Queue.Check] compares every row with every other.
//
// # Limits
//
// One process at a time, on a local file system: locks on network file systems are unreliable.
// The file grows and reuses its pages, but never shrinks. An iteration sees each page of its
// results at one moment, but not all of them at the same moment.
package bolt
