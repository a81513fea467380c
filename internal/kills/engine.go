package kills

import (
	"maps"
	"testing"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/group"
)

// Queue is what the tests of this package need of a queue.
type Queue interface {
	pawl.Queue
	pawl.CursorSaver
	group.Queue
	dlq.Store
}

// Engine is where the tests of this package have their queues. The same tests run over each engine. Their processes
// are killed at any moment; whoever opens the queue next works on with what they had leased.
type Engine struct {
	// New returns the place of a queue that does not exist yet.
	New func(t *testing.T) (place string)

	// Work opens the queue for a process that will be killed.
	Work func(place string) (Queue, error)

	// Look calls fn with the queue. It fails the test if the queue is not in order.
	Look func(t *testing.T, place string, fn func(q Queue))

	// Members is how many jobs a group has at first, a multiple of 100.
	Members int
}

// Roles returns the roles of the processes, and those of the caller.
func (e Engine) Roles(others Roles) Roles {
	all := Roles{"results": e.results, "cursors": e.cursors, "group": e.group, "edits": e.edits}
	maps.Copy(all, others)
	return all
}
