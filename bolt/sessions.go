package bolt

import (
	"context"
	"slices"
	"sync"

	"github.com/gopawl/pawl"
)

// sessions are the current users that fetch from the queue: workers and active fetches.
type sessions struct {
	mu  sync.Mutex
	all map[*session]struct{}
}

// session is one such user.
type session struct {
	queues, kinds []string
	lacks         map[string]string // kinds that it does not take now, and what they need
}

func (s *sessions) begin(one *session) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*session]struct{})
	}
	s.all[one] = struct{}{}
	return one
}

func (s *sessions) end(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, one)
}

// served returns the names of the queues that some session fetches from.
func (s *sessions) served() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]bool)
	for one := range s.all {
		for _, name := range one.queues {
			names[name] = true
		}
	}
	return names
}

// serve reports whether some session fetches jobs of a kind from a queue. If not, need is what the
// kind needs before a worker fetches its jobs, if that is the reason.
func (s *sessions) serve(queue, kind string) (served bool, need string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.all {
		switch {
		case !slices.Contains(one.queues, queue):
		case one.kinds == nil || slices.Contains(one.kinds, kind):
			return true, ""
		case one.lacks[kind] != "" && (need == "" || one.lacks[kind] < need):
			need = one.lacks[kind] // the first by name, so that the answer does not depend on map order
		}
	}
	return false, need
}

// Serving records that a worker serves these kinds on these queues until it calls end. Nil kinds
// mean all kinds. Lacks has the kinds that the worker handles but does not take now, each with what
// it needs. Package worker calls Serving, so that Stats reports a queue as served while all of its
// workers are busy, and Why knows closed gates.
func (q *Queue) Serving(queues, kinds []string, lacks map[string]string) (end func()) {
	one := q.sessions.begin(&session{queues, kinds, lacks})
	return func() { q.sessions.end(one) }
}

// Stats reads how many jobs each queue has in each state, and whether a worker serves the queue. It
// reads a few rows, no matter how many jobs there are.
func (q *Queue) Stats(ctx context.Context) (pawl.Stats, error) {
	stats, err := q.reader.Stats(ctx)
	stats.Max = q.opts.MaxBytes
	served := q.sessions.served()
	for i := range stats.Queues {
		one := &stats.Queues[i]
		one.Served = served[one.Name] || one.Leased > 0
	}
	return stats, err
}
