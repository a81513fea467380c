// Package sim has the families that simulate: random calls, crashes, stalls and clock steps
// over the queue in a file and several workers, in virtual time, so that an hour takes
// milliseconds and nothing waits.
//
// Its nouns: a [Case] is a list of [Op], which are data. A world carries them out: it has
// one process at a time, which has the queue and its workers and ends in a crash, upon which
// the next one opens a copy of the file. All calls go through a tap, which notes them in the
// history; handlers note their runs there too. The judge follows each job by what was noted:
// a [track] holds every state in which its job may be, since of calls that overlap, or that
// a crash left without an answer, nobody can say which came first. At a scan of the file
// each job must be in one of its states. What concerns more than one job, the order above
// all, is judged from the history.
//
// Nothing is done to the code under test: the queue, its scheduler, bbolt and the workers
// are the real ones. The disk is one in memory, and never fails here.
package sim
