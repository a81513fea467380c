// Package planted proves the other families. It builds the program with faults planted in
// the queue, and requires that the families responsible for a fault find it.
//
// A Fault replaces an expression or statements of a function, so reworded comments, moved
// functions and other formatting do not matter. One program has all faults, and the
// environment of a process selects one of them: a single build serves all. The source tree
// stays untouched: the build lays the changed files over it.
package planted

// Fault is a possible mistake in the code of the queue.
type Fault struct {
	Name   string
	Breaks string // the promise that the fault breaks, for the report that no family found it
	Edits  []Edit
	By     []Hunt // the families that must find it, all of them
}

// Edit replaces a part of a function.
type Edit struct {
	In  string // folder/function or folder/Type.method
	Old string // an expression, or statements; the function has it exactly once
	New string // the replacement, with condition and matched
}

// The words of Edit.New.
const (
	condition = "PLANTED" // true in a process that has the fault
	matched   = "$"       // what Old matched
)

// skip is the Edit.New of a fault that does not do what Old says.
const skip = "if !PLANTED { $ }"

// Hunt is a family, and how many of its units it may take to find a fault.
type Hunt struct {
	Family string
	Units  int

	// If only some tries can meet the fault, Seed is the seed of the first try, and Step is
	// the distance from one seed to the next. 0 means any seed, and a step of 1.
	Seed, Step uint64
}

func newFault(name, breaks string, by []Hunt, edits ...Edit) Fault {
	return Fault{name, breaks, edits, by}
}

// by is one family with its units.
func by(family string, units int) []Hunt { return []Hunt{{Family: family, Units: units}} }
