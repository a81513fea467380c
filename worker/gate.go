package worker

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Gate holds back the jobs of kinds whose need is not met; see [pawl.Needs] and Options.Gates. A new
// gate is closed. An app opens and closes it according to its own probe, for example a probe of the
// network. Several workers may share one gate.
type Gate struct {
	mu       sync.Mutex
	open     bool
	watchers map[*session]struct{}
}

// Open lets workers take the jobs that need the gate.
func (g *Gate) Open() { g.set(true) }

// Close keeps workers from taking the jobs that need the gate. Once it has returned, no such job
// starts. Running jobs continue. Jobs that a worker has fetched ahead go back to the queue, and count
// no attempt.
func (g *Gate) Close() { g.set(false) }

// IsOpen reports whether the gate is open.
func (g *Gate) IsOpen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *Gate) set(open bool) {
	g.mu.Lock()
	changed := g.open != open
	g.open = open
	watchers := slices.Collect(maps.Keys(g.watchers))
	g.mu.Unlock()
	if !changed {
		return
	}
	for _, s := range watchers {
		s.gatesChanged()
	}
}

// watch notifies a session of each change until the session calls end.
func (g *Gate) watch(s *session) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watchers == nil {
		g.watchers = make(map[*session]struct{})
	}
	g.watchers[s] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watchers, s)
	}
}

// checkGates returns an error for a kind that needs a gate which the options lack.
func (w *Worker) checkGates() error {
	for kind, h := range w.handlers {
		for _, need := range h.needs {
			if w.opts.Gates[need] == nil {
				return &pawl.InvalidError{Field: "Gates",
					Reason: fmt.Sprintf("kind %q needs %q, and there is no gate of that name; add one to Options.Gates", kind, need)}
			}
		}
	}
	return nil
}

// lacking returns the first need of a handler whose gate is closed, "" for none.
func (w *Worker) lacking(h handler) string {
	for _, need := range h.needs {
		if !w.opts.Gates[need].IsOpen() {
			return need
		}
	}
	return ""
}

// watchGates follows the gates until the caller calls end. It reports to the queue which kinds the
// worker takes. It also registers how the worker decodes their arguments, which edits by operators
// need.
func (s *session) watchGates() (end func()) {
	var ends []func()
	for _, g := range s.w.opts.Gates {
		if g != nil {
			ends = append(ends, g.watch(s))
		}
	}
	s.gatesChanged()
	decode := make(map[string]func([]byte) error, len(s.w.handlers))
	for kind, h := range s.w.handlers {
		decode[kind] = h.decode
	}
	ends = append(ends, driver.ServeTypes(s.w.queue, decode))
	return func() {
		for _, end := range ends {
			end()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endServing()
		s.endServing = nil
	}
}

// gatesChanged makes the session fetch the kinds whose gates are open now, and gives back the jobs
// that wait for a slot and whose gate is closed.
func (s *session) gatesChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endServing == nil {
		return // it has ended
	}
	lacks := s.chooseKinds()
	s.release(s.takeShut())
	s.serve(lacks)
	if s.endFetch != nil {
		s.endFetch()
	}
	s.demandChanged()
}

// chooseKinds makes the session fetch the kinds whose gates are open, and returns the needs of the
// others. The caller holds mu.
func (s *session) chooseKinds() (lacks map[string]string) {
	s.kinds, lacks = []string{}, make(map[string]string)
	for kind, h := range s.w.handlers {
		if need := s.w.lacking(h); need != "" {
			lacks[kind] = need
		} else {
			s.kinds = append(s.kinds, kind)
		}
	}
	slices.Sort(s.kinds)
	s.shut = len(s.kinds) == 0
	return lacks
}

// serve reports to the queue which kinds the worker takes, and which it does not take because a need
// is not met. The caller holds mu.
func (s *session) serve(lacks map[string]string) {
	before := s.endServing
	s.endServing = func() {}
	defer before()
	if q, ok := s.w.queue.(interface {
		Serving(queues, kinds []string, lacks map[string]string) (end func())
	}); ok {
		s.endServing = q.Serving(s.w.request.Queues, s.kinds, lacks)
	}
}

// takeShut removes the attempts that wait for a slot and whose gate is closed. The caller holds mu.
func (s *session) takeShut() (shut []*attempt) {
	keep := func(some []*attempt) []*attempt {
		return slices.DeleteFunc(some, func(a *attempt) bool {
			if s.w.lacking(a.handler) == "" {
				return false
			}
			s.aheadBytes -= len(a.Payload)
			shut = append(shut, a)
			return true
		})
	}
	s.waiting, s.behind = keep(s.waiting), keep(s.behind)
	return shut
}
