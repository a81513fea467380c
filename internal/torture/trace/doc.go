// Package trace records what a process does to the files of one folder. It uses strace, which
// needs neither a mount nor privileges. A [Log] has every write, sync, change of a name, and
// line of output, in order. From it a family derives what a crash may leave at each point.
//
// A [Call] is one line of strace, or two if another thread interrupted it. An [Op] is the
// effect of a call on the folder. An [Event] is the start or the end of an op. Between the
// two the op may or may not have happened.
//
// Reads matter only because they move the position of the next write. [Log.Add] detects a
// change that the log does not see, a write through a shared map for example: it compares the
// result of all ops with the folder, byte for byte.
package trace
