package sim

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// never is a place in the history behind all others: that of an answer that did not come.
const never = math.MaxInt

// record is what one call did to one job, or asked of it.
type record struct {
	what       string // a verb of the queue
	job        int
	token      uint64
	at         int64 // the instant, in Unix nanoseconds of the simulation
	begin, end int   // places in the history: of two records of which one ends before the other begins, it came first
	err        error // the answer

	delay             time.Duration
	reason            pawl.Reason
	cause             string
	keep              bool
	attempts, crashes int   // of a lease, as it says
	ran               bool  // a snooze by a run that had begun
	held              bool  // by the simulation itself and not by a worker
	by                *hand // the worker
	existing          int   // the job whose unique key an enqueue met
	fetch             *fetch
}

func (r *record) String() string {
	text := fmt.Sprintf("%s %s", clock(r.at), r.what)
	if r.token != 0 {
		text += fmt.Sprintf(" %x", r.token&0xffff)
	}
	if r.delay != 0 {
		text += " " + r.delay.String()
	}
	switch {
	case r.end == never:
		text += ": no answer"
	case r.err != nil:
		text += ": " + class(r.err)
	}
	return text
}

func clock(at int64) string { return time.Unix(0, at).UTC().Format("15:04:05.000000000") }

// class is an error by what it says of the job.
func class(err error) string {
	for _, known := range []error{pawl.ErrLeaseLost, pawl.ErrConflict, pawl.ErrNotFound, pawl.ErrNotAccepted, pawl.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

// fetch is one call of Fetch.
type fetch struct {
	request pawl.Request
	open    bool
	at      int64 // of the answer
	leases  []*record
}

// run is one run of a handler.
type run struct {
	job      int
	token    uint64
	from, to int64 // instants; to is 0 while it runs
	does     string
	wait     time.Duration // of a snooze, or until the retry
	attempt  int
	last     bool
	cause    error // why its context had ended
	deaf     bool
	limit    time.Duration
	died     bool // with its process
	plan     Run
	by       *hand
}

// history is what was noted, by many goroutines.
type history struct {
	mu      sync.Mutex
	place   int
	records []*record // not judged yet
	fetches []*fetch  // the same, and those that are open
	runs    []*run
	wrong   []error // what was seen at once

	// When a worker first wanted to settle each lease. That it was stalled, or refused, may
	// have put off the call.
	decisions map[uint64]int64
}

// decided notes that a worker wants to settle a lease.
func (h *history) decided(token uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.decisions[token]; !again {
		h.decisions[token] = now()
	}
}

// begin notes that calls begin. A process that is dead makes no calls.
func (h *history) begin(p *process, records ...*record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.dead {
		return pawl.ErrClosed
	}
	h.place++
	for _, r := range records {
		r.begin, r.end, r.at = h.place, never, now()
		h.records = append(h.records, r)
	}
	return nil
}

// end notes their answers, unless the process died meanwhile.
func (h *history) end(p *process, answer func(), records ...*record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.dead {
		return pawl.ErrClosed
	}
	h.place++
	for _, r := range records {
		if r.end = h.place; r.at != now() {
			h.fault("%s of job %d took %v, and nothing takes time here", r.what, r.job, time.Duration(now()-r.at))
		}
	}
	answer()
	return nil
}

// fault notes a violation. The caller holds mu.
func (h *history) fault(format string, args ...any) {
	if len(h.wrong) < 10 {
		h.wrong = append(h.wrong, fmt.Errorf(clock(now())+" "+format, args...))
	}
}

func now() int64 { return time.Now().UnixNano() }
