package sim

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// never is the place of a missing answer: after all other places.
const never = math.MaxInt

// record is one call on one job.
type record struct {
	what       string // a verb of the queue
	job        int
	token      uint64
	at         int64 // the instant, in Unix nanoseconds of the simulation
	begin, end int   // places in the history: a record that ends before the start of another came first
	err        error // the answer

	delay             time.Duration
	reason            pawl.Reason
	cause             string
	keep              bool
	attempts, crashes int   // numbers of a lease, as the lease has them
	ran               bool  // a snooze by an attempt that had started
	held              bool  // a call by the simulation itself
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

// class returns the text of an error's class.
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
	at      int64 // instant of the answer
	leases  []*record
}

// run is one attempt of a job.
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
	died     bool // it died with its process
	plan     Run
	by       *hand
}

// history has the records of many goroutines.
type history struct {
	mu      sync.Mutex
	place   int
	records []*record // records that are not judged yet
	fetches []*fetch  // fetches that are not judged yet, or are open
	runs    []*run
	wrong   []error // violations

	// decisions has the time when a worker first wanted to settle each lease. A stall or a
	// refusal may have delayed the call.
	decisions map[uint64]int64
}

// decided records that a worker wants to settle a lease.
func (h *history) decided(token uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.decisions[token]; !again {
		h.decisions[token] = now()
	}
}

// begin records the start of calls. A dead process makes no calls.
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

// end records the answers of calls, unless the process has died.
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

// fault records a violation. The caller holds mu.
func (h *history) fault(format string, args ...any) {
	if len(h.wrong) < 10 {
		h.wrong = append(h.wrong, fmt.Errorf(clock(now())+" "+format, args...))
	}
}

func now() int64 { return time.Now().UnixNano() }
