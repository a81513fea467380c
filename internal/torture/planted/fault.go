// Package planted proves the other families: it builds the program with faults planted in
// the queue, and requires that the families which are there for them find each.
//
// A Fault is a change of the source, kept as text. All faults go into one program, in which
// the environment of a process says which of them it has, so that one build serves all. The
// tree is not touched: the changed files are laid over it for the build.
package planted

// Fault is a mistake that somebody could make in the queue.
type Fault struct {
	Name   string
	Breaks string // the promise that is broken, for who reads that it was not found
	Edits  []Edit
	By     []Hunt // who must find it: every one of them
}

// Edit replaces a text of a file by another. In it the word PLANTED stands for a condition
// that holds in a process that has the fault.
type Edit struct {
	File string // in the module, with slashes
	Old  string // occurs exactly once
	New  string
}

// Hunt is a family and how many of its units it has to find a fault.
type Hunt struct {
	Family string
	Units  int

	// Seed is that of its first try, and Step leads from one to the next, where not every try
	// can meet the fault. 0 means any, and 1.
	Seed, Step uint64
}

// faults are all there are.
func faults() (all []Fault) {
	for _, some := range [][]Fault{durability, states, keys, times, crashes, files, workers, answers, leftovers, workflows} {
		all = append(all, some...)
	}
	return all
}
