package bolt

import (
	"strconv"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/metrics"
)

// observer emits the events of durable transactions to the receivers named by the options and
// to those added later.
type observer struct {
	log       pawl.Logger
	onEvent   func(pawl.Event)  // nil if unset
	collector metrics.Collector // nil if unset
	crashCap  int               // 0 without one
	listeners driver.Listeners
	waiters   driver.Waiters
}

func (o *observer) listening() bool {
	return o.onEvent != nil || o.collector != nil || o.listeners.Any()
}

// maxCrashLines is how many crashes of one transaction are logged with a line each.
const maxCrashLines = 100

func (o *observer) emit(events []pawl.Event) {
	crashes := 0
	for _, e := range events {
		switch e.Type {
		case pawl.EventDied:
			o.log.Error("job is dead", "id", e.Job.ID, "kind", e.Job.Kind, "queue", e.Job.Queue,
				"reason", string(e.Job.Death.Reason), "attempts", e.Job.Attempts, "error", ellipsis.Truncate(e.Cause, 512))
		case pawl.EventReaped, pawl.EventRecovered:
			if crashes++; crashes <= maxCrashLines {
				o.logCrash(e)
			}
		}
		o.emitOne(e)
	}
	if more := crashes - maxCrashLines; more > 0 {
		o.log.Warn("more jobs crashed", "jobs", more)
	}
}

func (o *observer) logCrash(e pawl.Event) {
	crash, cause := strconv.Itoa(e.Job.Crashes), "its lease expired"
	if o.crashCap > 0 {
		crash += " of " + strconv.Itoa(o.crashCap)
	}
	if e.Type == pawl.EventRecovered {
		cause = "its process ended"
	}
	o.log.Warn("job crashed", "id", e.Job.ID, "kind", e.Job.Kind, "queue", e.Job.Queue, "crash", crash, "cause", cause)
}

func (o *observer) emitOne(e pawl.Event) {
	if o.collector != nil {
		o.guard(e, func() { driver.CountEvent(o.collector, e) })
	}
	if o.onEvent != nil {
		o.guard(e, func() { o.onEvent(e) })
	}
	if o.listeners.Any() { // so that nobody pays for the function
		o.listeners.Emit(e, func(p any) { o.logPanic(e, p) })
	}
}

// guard recovers the panic of a listener: the transaction is durable, and other callers wait
// for it.
func (o *observer) guard(e pawl.Event, call func()) {
	defer func() {
		if p := recover(); p != nil {
			o.logPanic(e, p)
		}
	}()
	call()
}

func (o *observer) logPanic(e pawl.Event, p any) {
	o.log.Error("a listener for events panicked", "event", string(e.Type), "id", e.Job.ID, "panic", p)
}
