package driver

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/metrics"
)

// Reporter logs what happened to the jobs of a queue, and calls the receivers in the options of the
// queue and the listeners that were added since.
type Reporter struct {
	Logger     pawl.Logger
	OnEvent    func(pawl.Event)  // nil for none
	Collector  metrics.Collector // nil for none
	MaxCrashes int               // the limit that the log names; 0 or less for none

	Counter // of the queue's transitions

	changing  sync.Mutex                  // held to replace the listeners
	listeners atomic.Pointer[[]*listener] // nil if there are none
}

// maxCrashLines is how many crashes of one call of Emit are logged with a line each.
const maxCrashLines = 100

// Listened reports whether anything receives events of every type.
func (r *Reporter) Listened() bool {
	return r.OnEvent != nil || r.Collector != nil || r.listeners.Load() != nil
}

// Wants reports whether events of a type are needed. The log needs deaths and crashes. A job that is
// skipped may leave no record, so a call of Await needs the event of its end.
func (r *Reporter) Wants(t pawl.EventType) bool {
	return t == pawl.EventDied || t == pawl.EventSkipped || isCrash(t) || r.Listened()
}

// Emit reports the events of a transaction that is durable. It recovers and logs a panic of a
// receiver, because others wait for the transaction.
func (r *Reporter) Emit(events ...pawl.Event) {
	crashes := 0
	for _, e := range events {
		switch {
		case e.Type == pawl.EventDied:
			r.Logger.Error("job is dead", "id", e.Job.ID, "kind", e.Job.Kind, "queue", e.Job.Queue,
				"reason", string(e.Job.Death.Reason), "attempts", e.Job.Attempts, "error", ellipsis.Truncate(e.Cause, 512))
		case isCrash(e.Type):
			if crashes++; crashes <= maxCrashLines {
				r.logCrash(e)
			}
		}
		r.call(e)
	}
	if more := crashes - maxCrashLines; more > 0 {
		r.Logger.Warn("more jobs crashed", "jobs", more)
	}
}

func isCrash(t pawl.EventType) bool { return t == pawl.EventReaped || t == pawl.EventRecovered }

func (r *Reporter) logCrash(e pawl.Event) {
	if e.Job.Crashes == 0 { // the queue counts only crashes of processes
		r.Logger.Warn("lease expired", "id", e.Job.ID, "kind", e.Job.Kind, "queue", e.Job.Queue)
		return
	}
	crash, cause := strconv.Itoa(e.Job.Crashes), "its lease expired"
	if r.MaxCrashes > 0 {
		crash += " of " + strconv.Itoa(r.MaxCrashes)
	}
	if e.Type == pawl.EventRecovered {
		cause = "its process ended"
	}
	r.Logger.Warn("job crashed", "id", e.Job.ID, "kind", e.Job.Kind, "queue", e.Job.Queue, "crash", crash, "cause", cause)
}

// call calls the receivers of an event.
func (r *Reporter) call(e pawl.Event) {
	if r.Collector != nil {
		r.guard(e, func() { CountEvent(r.Collector, e) })
	}
	if r.OnEvent != nil {
		r.guard(e, func() { r.OnEvent(e) })
	}
	if all := r.listeners.Load(); all != nil {
		for _, one := range *all {
			r.guard(e, func() { one.hear(e) })
		}
	}
}

// guard calls a receiver, and logs its panic.
func (r *Reporter) guard(e pawl.Event, call func()) {
	defer func() {
		if p := recover(); p != nil {
			r.Logger.Error("a listener for events panicked", "event", string(e.Type), "id", e.Job.ID, "panic", p)
		}
	}()
	call()
}

// listener is one receiver that [Reporter.Listen] has added.
type listener struct {
	fn func(pawl.Event)

	mu      sync.RWMutex // read-locked to call fn, locked to stop
	stopped bool         // guarded by mu
}

// Listen makes fn receive every event. Stop removes fn and waits for running calls of fn, so fn must
// not call stop. Fn is not called after stop has returned. Calling stop twice is harmless.
func (r *Reporter) Listen(fn func(pawl.Event)) (stop func()) {
	own := &listener{fn: fn}
	r.change(func(all []*listener) []*listener { return append(all, own) })
	return func() {
		r.change(func(all []*listener) []*listener {
			return slices.DeleteFunc(all, func(other *listener) bool { return other == own })
		})
		own.mu.Lock()
		defer own.mu.Unlock()
		own.stopped = true
	}
}

func (l *listener) hear(e pawl.Event) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if !l.stopped {
		l.fn(e)
	}
}

// change replaces the list of listeners by the result of fn on a copy of it.
func (r *Reporter) change(fn func([]*listener) []*listener) {
	r.changing.Lock()
	defer r.changing.Unlock()
	var all []*listener
	if now := r.listeners.Load(); now != nil {
		all = slices.Clone(*now)
	}
	if all = fn(all); len(all) == 0 {
		r.listeners.Store(nil)
	} else {
		r.listeners.Store(&all)
	}
}
