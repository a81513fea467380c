package workflow

import (
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
)

// hub tells those in this process who care what has become durable: the runs that are under
// way, and who waits for a result. There is one for each open queue, and since one process
// has the file, nobody else needs to be told.
type hub struct {
	flows   sync.Map                // of this build: name to Definition
	options atomic.Pointer[Options] // of the engine that runs them

	sweeper  sync.Once     // starts it, with the first worker that is given flows
	bell     chan struct{} // has the sweeper look again
	removal  atomic.Int64  // when it looks again, as rows have times
	sweeping chan struct{} // held by the one who removes runs now

	mu      sync.Mutex
	running map[pawl.ID]*execution
	waiting map[pawl.ID][]chan struct{} // for the end of a run
}

var hubs struct {
	sync.Mutex
	of map[Store]*hub
}

// hubOf is the hub of a queue, until that is closed.
func hubOf(q Store) *hub {
	hubs.Lock()
	defer hubs.Unlock()
	if h := hubs.of[q]; h != nil {
		return h
	}
	if hubs.of == nil {
		hubs.of = make(map[Store]*hub)
	}
	h := &hub{running: make(map[pawl.ID]*execution), waiting: make(map[pawl.ID][]chan struct{}),
		bell: make(chan struct{}, 1), sweeping: make(chan struct{}, 1)}
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
