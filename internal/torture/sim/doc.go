// Package sim has the families that simulate random calls, crashes, stalls and clock steps on
// a queue in a file with several workers. They use virtual time, so an hour of simulation
// takes milliseconds.
//
// A [Case] is a list of [Op], which are data. A world runs them. It has one process at a time,
// with the queue and its workers. A crash ends the process, and the next process opens a copy
// of the file. A tap records all calls in the history, and handlers record their attempts. The
// judge follows each job through the history: a [track] has every possible state of its job,
// because overlapping calls and calls without an answer have no known order. A scan of the
// file must find each job in one of these states. The judge checks rules over several jobs,
// such as the order, in the history.
//
// The code under test is unchanged: the queue, its scheduler, bbolt and the workers are real.
// The disk is in memory and never fails.
package sim
