package transport

import (
	"math"
	"slices"
	"sync"

	"github.com/gopawl/pawl"
)

// Turns say which queue is next: the one whose next turn begins first in virtual time, in which a turn takes 1 by
// the weight. A queue that had no job begins at the present. The zero value is ready for use, by several
// goroutines.
type Turns struct {
	mu     sync.Mutex
	now    float64 // the beginning of the last turn
	served uint64  // turns so far
	queues map[string]turn
}

// turn is the last turn of a queue.
type turn struct {
	end float64 // in virtual time
	at  uint64  // among the turns of all queues
}

// Take leases up to most jobs from sources, which take turns. From leases up to n jobs of one of them, and reports
// whether it had no more. An error of From counts only if there are no leases; otherwise the next call has it, if it
// lasts.
func (t *Turns) Take(most int, sources []Source, from func(s Source, n int) (got []*pawl.Lease, dry bool, err error)) ([]*pawl.Lease, error) {
	var leases []*pawl.Lease
	sources = slices.Clone(sources)
	for len(leases) < most && len(sources) > 0 {
		i, n := t.next(sources, most-len(leases))
		got, dry, err := from(sources[i], n)
		t.serve(sources[i], len(got))
		leases = append(leases, got...)
		switch {
		case err != nil && len(leases) > 0:
			return leases, nil
		case err != nil:
			return nil, err
		case dry:
			sources = slices.Delete(sources, i, i+1)
		}
	}
	return leases, nil
}

// next returns which source is next, and how many jobs it may give.
func (t *Turns) next(sources []Source, most int) (next, n int) {
	if len(sources) == 1 {
		return 0, most
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	begin, after, at := math.Inf(1), math.Inf(1), uint64(0)
	for i, s := range sources {
		last := t.queues[s.Queue]
		begins := max(last.end, t.now)
		if begins < begin || begins == begin && last.at < at {
			next, begin, after, at = i, begins, begin, last.at
		} else {
			after = min(after, begins)
		}
	}
	return next, max(1, min(most, int((after-begin)*sources[next].Weight)))
}

// serve notes that a source gave jobs.
func (t *Turns) serve(s Source, n int) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queues == nil {
		t.queues = make(map[string]turn)
	}
	begins := max(t.queues[s.Queue].end, t.now)
	t.served++
	t.now = begins + float64(n-1)/s.Weight
	t.queues[s.Queue] = turn{begins + float64(n)/s.Weight, t.served}
}
