// Package memory is the queue of package pawl without a file: it keeps its jobs in
// memory and loses them with the process. It is for the tests of programs that
// enqueue or handle jobs, and it is the contract of [pawl.Queue] at its plainest:
// where two implementations disagree, read this one.
//
//	q := memory.New(nil)
//	defer q.Close()
//
// [Queue] implements [pawl.Queue], and what package dlq needs. It consists of:
//
//   - Jobs. A job is in exactly one state, and in the list of that state, whose
//     order is that in which its jobs leave it.
//   - Keys. A map says which job holds a unique key, another which idempotency keys
//     are running or done.
//   - Moves between the lists, one for each verb. Every call is one transition
//     under one mutex: it makes its own move, then those that are due anyway
//     (promote, reap, expire, purge, serve the fetches that wait), and sets the alarm.
//   - Tables of other packages, such as package workflow. A mutation changes a copy of the
//     tables that it writes, which replaces them if the mutation succeeds.
//   - Turns, which say whose job a fetch gets next: that of a queue, by its weight,
//     and in the queue that of a retry or of a first run, by the retry share.
//   - Events, told while the transition is made.
//   - The alarm, one timer for whatever falls due next. There is no goroutine
//     besides: a queue that nobody calls and in which nothing falls due costs
//     nothing, and testing/synctest can move its time.
//
// What goes in and what comes out is copied: whoever changes an envelope, a lease
// or a payload afterwards changes nothing in the queue. An event alone shares what
// its job leads to; it is to be read while the call lasts.
//
// It does not survive a restart, it does not make callers wait for a disk, and its
// lists and tables are slices: tens of thousands of jobs and thousands of workflows are fine, a
// million is slow.
package memory
