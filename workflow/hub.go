package workflow

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// hub tells those in this process who care what has become durable: the runs that are under
// way, and who waits for a result. There is one for each open queue, and since one process
// has the file, nobody else needs to be told.
type hub struct {
	flows   sync.Map                // of this build: name to Definition
	options atomic.Pointer[Options] // of the engine that runs them

	mu      sync.Mutex
	given   map[givenFlow]bool
	running map[pawl.ID]*execution
	waiting map[pawl.ID][]chan struct{} // for the end of a run
}

// givenFlow is the name of a flow that a worker was given.
type givenFlow struct {
	to   weak.Pointer[worker.Worker]
	name string
}

// give remembers which worker has which flows, all of them or none.
func (h *hub) give(w *worker.Worker, flows []Definition) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var given []givenFlow
	for _, f := range flows {
		g := givenFlow{weak.Make(w), f.Name()}
		if h.given[g] || slices.Contains(given, g) {
			return fmt.Errorf("flow %q: %w; give a worker each name once", g.name, worker.ErrHandlerExists)
		}
		given = append(given, g)
	}
	for _, g := range given {
		h.given[g] = true
	}
	return nil
}

var hubs struct {
	sync.Mutex
	of map[*bolt.Queue]*hub
}

// hubOf is the hub of a queue, until that is closed.
func hubOf(q *bolt.Queue) *hub {
	hubs.Lock()
	defer hubs.Unlock()
	if h := hubs.of[q]; h != nil {
		return h
	}
	if hubs.of == nil {
		hubs.of = make(map[*bolt.Queue]*hub)
	}
	h := &hub{given: make(map[givenFlow]bool), running: make(map[pawl.ID]*execution), waiting: make(map[pawl.ID][]chan struct{})}
	hubs.of[q] = h
	go func() {
		<-q.Done()
		hubs.Lock()
		delete(hubs.of, q)
		hubs.Unlock()
	}()
	return h
}

// poke has a run that is under way look again: at what is asked of it, for signals, and
// whether its children have ended. It is called when that is durable.
func (h *hub) poke(run pawl.ID) {
	h.mu.Lock()
	x := h.running[run]
	h.mu.Unlock()
	if x != nil {
		x.poke()
	}
}

// ended wakes those who wait for the end of a run.
func (h *hub) ended(run pawl.ID) {
	h.mu.Lock()
	waiting := h.waiting[run]
	delete(h.waiting, run)
	h.mu.Unlock()
	for _, ch := range waiting {
		close(ch)
	}
}

// await returns a channel that is closed at the end of a run. Whoever stops to wait before
// calls leave.
func (h *hub) await(run pawl.ID) (ended <-chan struct{}, leave func()) {
	ch := make(chan struct{})
	h.mu.Lock()
	h.waiting[run] = append(h.waiting[run], ch)
	h.mu.Unlock()
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		all := h.waiting[run]
		for i, each := range all {
			if each == ch {
				all[i] = all[len(all)-1]
				h.waiting[run] = all[:len(all)-1]
				break
			}
		}
		if len(h.waiting[run]) == 0 {
			delete(h.waiting, run)
		}
	}
}

func (h *hub) enter(run pawl.ID, x *execution) {
	h.mu.Lock()
	h.running[run] = x
	h.mu.Unlock()
}

func (h *hub) leave(run pawl.ID, x *execution) {
	h.mu.Lock()
	if h.running[run] == x {
		delete(h.running, run)
	}
	h.mu.Unlock()
}
