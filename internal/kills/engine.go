package kills

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

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
	all := make(Roles)
	for name, work := range map[string]work{"results": ackResults, "cursors": saveCursors, "group": settleMembers, "edits": editJobs} {
		all[name] = func(args []string) error {
			q, err := e.Work(args[0])
			if err != nil {
				return err
			}
			Say("up")
			return work(context.Background(), q)
		}
	}
	maps.Copy(all, others)
	return all
}

// work is what a process does until it is killed. After each acknowledged call it prints a verb, the ID of the job, and a number.
type work func(ctx context.Context, q Queue) error

// start starts a process and waits until it has opened the queue.
func (e Engine) start(t *testing.T, role, place string) *Child {
	t.Helper()
	c := Start(t, role, place)
	require.Equal(t, "up", c.Line(t))
	return c
}

// kill kills a process amid its work. It calls note for each acknowledged call, and then judge with the queue. It
// returns the number of acknowledged calls.
func (e Engine) kill(t *testing.T, role, place string, note func(verb, id string, n uint64), judge func(q Queue)) (acknowledged int) {
	t.Helper()
	c := e.start(t, role, place)
	lines := c.After(t, 40)
	for _, line := range lines {
		var verb, id string
		var n uint64
		_, err := fmt.Sscan(line, &verb, &id, &n)
		require.NoError(t, err)
		note(verb, id, n)
	}
	require.Empty(t, c.Stderr.String())
	e.Look(t, place, judge)
	return len(lines)
}

// numbered returns the bytes for a number, as a payload or a cursor. They are in the record of a job or apart from it, and
// fill one page or several.
func numbered(n uint64) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, n), 1+int(n%5)*300)
}
