// Package memory is the queue of package pawl without a file: it keeps its jobs in
// memory and loses them with the process. It is for the tests of programs that
// enqueue or handle jobs, and it is the contract of [pawl.Queue] in its shortest
// form: where two implementations disagree, read this one.
//
//	q := memory.New(nil)
//	defer q.Close()
//
// [Queue] implements [pawl.Queue], and what package dlq needs. It consists of:
//
//   - Jobs. A job is in exactly one state, and in the list of that state, whose
//     order is that in which its jobs leave it.
//   - Moves between the lists, one for each verb. Every call is one transition
//     under one mutex: it makes its own move, then those that are due anyway
//     (promote, reap, serve the fetches that wait), and sets the alarm.
//   - The alarm, one timer for whatever falls due next. There is no goroutine
//     besides: a queue that nobody calls and in which nothing falls due costs
//     nothing, and testing/synctest can move its time.
//
// What goes in and what comes out is copied: whoever changes an envelope, a lease
// or a payload afterwards changes nothing in the queue.
//
// It does not survive a restart, it does not make callers wait for a disk, and its
// lists are slices: tens of thousands of jobs are fine, a million is slow.
package memory
