// Package memory is a [pawl.Queue] in memory: it loses its jobs with the process.
// It is for the tests of programs that enqueue or handle jobs. It is also the
// simplest implementation of the contract: if two engines disagree, read this one.
//
//	q := memory.New(nil)
//	defer q.Close()
//
// [Queue] implements [pawl.Queue], and what package dlq needs. It consists of:
//
//   - Jobs. A job is in exactly one state, and in the list of that state, in the
//     order in which jobs leave it.
//   - Keys. One map has the jobs that hold unique keys. Others have the idempotency
//     keys that are running or done.
//   - Moves between the lists, one for each verb. Every call is one transition
//     under one mutex: it makes its own move and then those that are due
//     (promote, reap, expire, purge, serve the waiting fetches), and sets the alarm.
//   - Tables of other packages, such as package workflow. A mutation changes a copy of the
//     tables that it writes, which replaces them if the mutation succeeds.
//   - Turns, which decide the next job of a fetch: first the queue, by its weight,
//     and then a retry or a first attempt, by the retry share.
//   - Events, which are reported during the transition.
//   - The alarm, one timer for what falls due next. There is no goroutine: a queue
//     that nobody calls and in which nothing falls due costs nothing, and
//     testing/synctest can move its time.
//
// The queue copies what it takes and what it returns, so a caller that changes an
// envelope, a lease, or a payload changes nothing in the queue. Only an event
// shares memory with its job: read it during the call, and do not change it.
//
// It does not survive a restart, and callers do not wait for a disk. Its lists and tables are
// slices: tens of thousands of jobs and thousands of workflows are fine, but a million is slow.
package memory
