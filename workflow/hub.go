package workflow

import (
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
)

// hub notifies users in this process of durable changes: active runs, and waiters for results.
// There is one hub for each open queue. Over a store that other processes share, users also look
// by themselves.
type hub struct {
	shared  bool                    // other processes may change runs
	flows   sync.Map                // flows of this build: name to Definition
	options atomic.Pointer[Options] // options of the engine that runs them

	sweeper  sync.Once     // starts the sweeper with the first worker that handles flows
	bell     chan struct{} // makes the sweeper look again
	removal  atomic.Int64  // when it looks again, as a time in rows
	sweeping chan struct{} // held by the current remover of runs

	warm warmRuns // suspended runs that stay in memory

	mu      sync.Mutex
	running map[pawl.ID]*execution
	waiting map[pawl.ID][]chan struct{} // waiters for the end of a run
}

var hubs struct {
	sync.Mutex
	of map[Store]*hub
}

// hubOf returns the hub of a queue. The hub lives until the queue is closed.
func hubOf(q Store) *hub {
	hubs.Lock()
	defer hubs.Unlock()
	if h := hubs.of[q]; h != nil {
		return h
	}
	if hubs.of == nil {
		hubs.of = make(map[Store]*hub)
	}
	h := &hub{shared: isShared(q), running: make(map[pawl.ID]*execution), waiting: make(map[pawl.ID][]chan struct{}),
		bell: make(chan struct{}, 1), sweeping: make(chan struct{}, 1)}
	hubs.of[q] = h
	go func() {
		<-q.Done()
		hubs.Lock()
		delete(hubs.of, q)
		hubs.Unlock()
		h.warm.trim(0)
	}()
	return h
}

// notify makes an active run look again: at requests, for signals, and for children that have
// ended. Call it when the change is durable.
func (h *hub) notify(run pawl.ID) {
	h.mu.Lock()
	x := h.running[run]
	h.mu.Unlock()
	if x != nil {
		x.notify()
	}
}

// ended wakes the waiters for the end of a run.
func (h *hub) ended(run pawl.ID) {
	h.mu.Lock()
	waiting := h.waiting[run]
	delete(h.waiting, run)
	h.mu.Unlock()
	for _, ch := range waiting {
		close(ch)
	}
}

// await returns a channel that is closed when a run ends. A caller that stops waiting earlier
// must call leave.
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
