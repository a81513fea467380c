package worker_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
)

// inMemory runs a test in virtual time over a queue in memory, with the events
// that the queue emits.
func inMemory(t *testing.T, test func(t *testing.T, q *memory.Queue, emitted *events)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		emitted := new(events)
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger(), OnEvent: emitted.note})
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		test(t, q, emitted)
	})
}

// events are what a queue emitted.
type events struct {
	mu  sync.Mutex
	all []pawl.Event
}

func (v *events) note(e pawl.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	job := *e.Job
	e.Job = &job
	v.all = append(v.all, e)
}

// of are the events of one type, in order.
func (v *events) of(types ...pawl.EventType) (found []pawl.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.all {
		if slices.Contains(types, e.Type) {
			found = append(found, e)
		}
	}
	return found
}
