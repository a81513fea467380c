package workflow

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
)

// recentEnds is how many ends of runs a hub remembers.
const recentEnds = 256

// hub notifies users in this process of durable changes: active runs, and waiters for results.
// There is one hub for each open queue. Over a store that other processes share, users also look
// by themselves.
type hub struct {
	shared  bool                    // other processes may change runs
	flows   sync.Map                // flows of this build: name to Definition
	options atomic.Pointer[Options] // options of the engine that runs these flows

	sweeper  sync.Once     // starts the sweeper with the first worker that handles flows
	bell     chan struct{} // makes the sweeper look again
	removal  atomic.Int64  // when the sweeper looks again, in the form of times in rows
	sweeping chan struct{} // held by the current remover of runs

	warm warmRuns // suspended runs that stay in memory

	mu         sync.Mutex
	running    map[pawl.ID]*execution
	cancelling map[pawl.ID]int     // how many mutations that cancel a run are in progress
	waiting    waiters             // for the end of a run
	ends       uint64              // how many runs have ended here
	last       [recentEnds]pawl.ID // the last ends: end n is at index n%recentEnds
	watching   waiters             // for what a run publishes, and for its end
}

var hubs struct {
	sync.Mutex
	of map[Store]*hub
}

// handled returns the flows of this build.
func (h *hub) handled() (flows []Definition) {
	h.flows.Range(func(_, f any) bool {
		flows = append(flows, f.(Definition))
		return true
	})
	return flows
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
	h := &hub{shared: isShared(q), running: make(map[pawl.ID]*execution), cancelling: make(map[pawl.ID]int), waiting: make(waiters), watching: make(waiters),
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
	if x := h.active(run); x != nil {
		x.notify()
	}
}

// signalled makes an active run look for signals. Call it when the signal is durable.
func (h *hub) signalled(run pawl.ID) {
	if x := h.active(run); x != nil && !x.dry {
		x.signalled()
	}
}

// retryNow ends the waits of an active run for the next attempts of its failed steps.
func (h *hub) retryNow(run pawl.ID) {
	if x := h.active(run); x != nil && !x.dry {
		x.retryNow()
	}
}

// active returns the run that is active here, or nil.
func (h *hub) active(run pawl.ID) *execution {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[run]
}

// ended sends the row and the output of a run to the waiters for its end, and wakes the waiters for what it publishes.
func (h *hub) ended(run pawl.ID, end ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, run) // so that await does not consider the run open
	h.last[h.ends%recentEnds] = run
	h.ends++
	h.waiting.wake(run, end)
	h.watching.wake(run, end)
}

// published wakes the waiters for what a run publishes.
func (h *hub) published(run pawl.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching.wake(run, ending{})
}

// moment is a position among the ends of runs, 0 for an unknown one.
type moment uint64

// now returns the position after all ends so far.
func (h *hub) now() moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return moment(h.ends + 1)
}

// await returns a channel that has a value when a run has ended. Open says that the run is known to be open: it is
// active here, or it was started after the moment started and is not among the ends since then. A caller that stops
// waiting earlier must call leave.
func (h *hub) await(run pawl.ID, started moment) (ended <-chan ending, open bool, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ended, leave = h.join(h.waiting, run)
	return ended, h.running[run] != nil || h.notEnded(run, started), leave
}

// notEnded reports whether a run is known not to have ended since a moment at which it was open or did not exist. The
// caller holds the lock.
func (h *hub) notEnded(run pawl.ID, since moment) bool {
	n := uint64(since) - 1
	if since == 0 || h.shared || h.ends-n > recentEnds {
		return false
	}
	for ; n < h.ends; n++ {
		if h.last[n%recentEnds] == run {
			return false
		}
	}
	return true
}

// watch returns a channel that has a value when a run has published something or ended. The caller must
// call leave.
func (h *hub) watch(run pawl.ID) (changed <-chan ending, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.join(h.watching, run)
}

// join adds a waiter. The caller holds the lock.
func (h *hub) join(w waiters, run pawl.ID) (woken <-chan ending, leave func()) {
	ch := make(chan ending, 1)
	w[run] = append(w[run], ch)
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		w.remove(run, ch)
	}
}

// ending is the end of a run as it is stored. The row is nil if the waiter has to read it.
type ending struct {
	row    *runRow
	output []byte
}

// waiters are the channels on which callers wait for something about a run. The lock of the hub guards them.
type waiters map[pawl.ID][]chan ending

func (w waiters) wake(run pawl.ID, end ending) {
	for _, ch := range w[run] {
		ch <- end
	}
	delete(w, run)
}

func (w waiters) remove(run pawl.ID, ch chan ending) {
	all := w[run]
	if i := slices.Index(all, ch); i >= 0 {
		all[i] = all[len(all)-1]
		w[run] = all[:len(all)-1]
	}
	if len(w[run]) == 0 {
		delete(w, run)
	}
}

// enter makes a run active here, before its function runs.
func (h *hub) enter(run pawl.ID, x *execution) {
	h.mu.Lock()
	h.running[run] = x
	cancelling := h.cancelling[run] > 0
	h.mu.Unlock()
	if cancelling { // the mutation looked before, and may become durable after the run has read its row
		x.mu.Lock()
		x.cancelling = true
		x.mu.Unlock()
	}
}

// cancels records that a mutation cancels a run, until cancelsEnd. It returns the run if it is active here. If the run
// becomes active later, [hub.enter] finds the record.
func (h *hub) cancels(run pawl.ID) *execution {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancelling[run]++
	return h.running[run]
}

// cancelsEnd removes the records of cancels once the mutation is durable or refused.
func (h *hub) cancelsEnd(runs []pawl.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range runs {
		if h.cancelling[run]--; h.cancelling[run] == 0 {
			delete(h.cancelling, run)
		}
	}
}

func (h *hub) leave(run pawl.ID, x *execution) {
	h.mu.Lock()
	if h.running[run] == x {
		delete(h.running, run)
	}
	h.mu.Unlock()
}
