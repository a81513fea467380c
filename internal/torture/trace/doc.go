// Package trace writes down what a process does to the files of one folder, by strace,
// which needs neither a mount nor a privilege. A [Log] has every write, every sync, every
// change of a name, and every line that the process told, in the order in which they
// happened: what a crash may leave at any point of it can be worked out afterwards.
//
// A [Call] is one line of strace, or two where another thread came in between. An [Op] is
// what a call means for the folder. An [Event] is the begin or the end of an op: between
// the two nobody knows whether it has happened.
//
// Reads matter only where they move the place of the next write. What the log does not see, a write through a
// shared map for example, is noticed: [Log.Add] compares what all ops together make of the
// folder with the folder, byte for byte.
package trace
