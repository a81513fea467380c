package postgres

import (
	"cmp"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// fetchBytes is how many bytes of payloads one fetch copies, not counting the last job.
const fetchBytes = 8 << 20

// selection chooses the jobs of a fetch, in rounds of a peek and a claim. A round ends after all
// candidates of its peek, although there may be more jobs.
type selection struct {
	t      *txn
	f      *fetch
	idle   int // free slots, in which jobs that crashed before may start
	bytes  int // bytes of the payloads of the leases
	leases []*pawl.Lease

	rooms   map[string]*room // rooms of the queues with limits
	crowded bool             // more keys may have a new head than one transaction looks at
	goesOn  bool             // there are more keys or late jobs, and looking at them now can find a job

	// The fields below belong to a round.

	queues  map[string][]*candidate // what is left to choose from, in order
	more    map[lane]bool           // lanes that may have more jobs than the peek returned
	left    map[lane]int            // how many candidates have an effect that no chosen job has
	effects map[string]bool         // of the chosen jobs
	sharing map[string][]*candidate // candidates by their effects
	keyed   map[keyOfQueue][]*candidate
	short   bool // a job was skipped, and the jobs after it are unknown
	repeat  bool // one of the chosen jobs is a repeat suspect
	chosen  []*candidate
	skipped []pawl.ID
}

// lane is the jobs of a line with the same history of crashes and attempts.
type lane struct {
	line int32
	lane int16
}

// run chooses and leases jobs.
func (s *selection) run() error {
	for len(s.leases) < s.f.Max && s.bytes < fetchBytes {
		n := min(s.f.Max-len(s.leases), portion)
		if err := s.begin(n); err != nil {
			return err
		}
		again := s.choose(n)
		if len(s.skipped) > 0 {
			jobs, err := s.t.load(s.skipped)
			if err == nil {
				jobs, err = s.t.movable(jobs)
			}
			if err != nil {
				return err
			}
			s.skipped = s.skipped[:0]
			for _, j := range jobs {
				s.t.Skip(j)
				s.skipped = append(s.skipped, j.ID)
			}
			before := s.t.releases + s.t.turnsNoted
			if err := s.t.flush(); err != nil {
				return err
			}
			again = again || s.t.releases+s.t.turnsNoted > before
		}
		if len(s.chosen) > 0 {
			if err := s.claim(s.chosen); err != nil {
				return err
			}
		}
		if !again || len(s.chosen) == 0 && len(s.skipped) == 0 {
			return nil
		}
	}
	return nil
}

// begin peeks at the candidates of a round.
func (s *selection) begin(n int) (err error) {
	if s.queues, err = s.peek(n); err != nil {
		return err
	}
	s.more, s.effects, s.chosen, s.skipped = make(map[lane]bool), make(map[string]bool), nil, nil
	s.short, s.repeat = false, false
	s.left, s.sharing = make(map[lane]int), make(map[string][]*candidate)
	s.keyed = make(map[keyOfQueue][]*candidate)
	for _, list := range s.queues {
		slices.SortFunc(list, func(a, b *candidate) int {
			return cmp.Or(cmp.Compare(a.prio, b.prio), cmp.Compare(a.since, b.since), cmp.Compare(a.seq, b.seq))
		})
		for _, c := range list {
			l := c.of()
			if s.left[l]++; s.left[l] == n {
				s.more[l] = true
			}
			if c.effect != "" {
				s.sharing[c.effect] = append(s.sharing[c.effect], c)
			}
			if c.key != "" && s.rooms[c.queue] != nil {
				of := keyOfQueue{c.queue, c.key}
				s.keyed[of] = append(s.keyed[of], c)
			}
		}
	}
	return nil
}

// choose chooses up to n jobs. It reports whether there may be more jobs than it has seen.
func (s *selection) choose(n int) (again bool) {
	for len(s.chosen) < n && s.bytes < fetchBytes {
		if s.isShort() {
			return true
		}
		c := s.next()
		if c == nil {
			return s.short
		}
		s.chosen = append(s.chosen, c)
		s.bytes += c.bytes
		s.occupy(c)
		if c.effect != "" {
			for _, other := range s.sharing[c.effect] {
				s.drop(other)
			}
			s.effects[c.effect] = true
		}
		if c.lane >= 2 {
			s.idle--
			s.repeat = s.repeat || c.lane >= 4
		}
	}
	return true
}

// isShort reports whether a lane that may have more jobs has no candidate left, so that the next
// job may be unknown to the round.
func (s *selection) isShort() bool {
	for l := range s.more {
		if s.left[l] == 0 && s.mayLane(l.lane) {
			return true
		}
	}
	return false
}

// drop records that a candidate can no longer be chosen.
func (s *selection) drop(c *candidate) {
	if !c.dropped {
		c.dropped = true
		s.left[c.of()]--
	}
}

// next takes the job whose turn it is, nil if there is none.
func (s *selection) next() *candidate {
	names := slices.Clone(s.f.Queues) // a queue that is named twice has one turn
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case s.t.q.turns.Before(a, b):
			return -1
		case s.t.q.turns.Before(b, a):
			return 1
		}
		return 0
	})
	for _, name := range names {
		c, credit := s.pick(name)
		if s.short {
			return nil
		}
		if c != nil {
			s.t.q.turns.Take(name, driver.Weight(&s.f.Request, name), credit)
			s.drop(c)
			s.queues[name] = slices.DeleteFunc(s.queues[name], func(other *candidate) bool { return other == c })
			return c
		}
	}
	return nil
}

// pick chooses the job that a queue gives in its turn, nil if it has none, and returns the credit
// of its retries after that. The retry share applies only while the queue also has first attempts.
func (s *selection) pick(queue string) (*candidate, float64) {
	credit := s.t.q.turns.Credit(queue)
	if s.f.RetryShare == 0 {
		return s.first(queue, func(*candidate) bool { return true }), credit
	}
	again := s.first(queue, func(c *candidate) bool { return c.lane&1 == 1 })
	fresh := s.first(queue, func(c *candidate) bool { return c.lane&1 == 0 })
	if again == nil || fresh == nil {
		return cmp.Or(again, fresh), credit
	}
	retry, credit := s.t.q.turns.Retry(queue, s.f.RetryShare)
	if retry {
		return again, credit
	}
	return fresh, credit
}

// first returns the first candidate of a queue of a sort. If the effect of a job that it meets is
// done, first marks the job to be skipped.
func (s *selection) first(queue string, sort func(*candidate) bool) *candidate {
	list := s.queues[queue]
	if r := s.rooms[queue]; r != nil && r.left() == 0 {
		return nil
	}
	for i := 0; i < len(list); {
		switch c := list[i]; {
		case s.isBlocked(c):
			i++
		case c.done:
			s.skipped = append(s.skipped, c.id)
			s.drop(c)
			list = slices.Delete(list, i, i+1)
			s.queues[queue] = list
			if s.isShort() {
				s.short = true
				return nil
			}
		case sort(c) && s.may(c):
			return c
		default:
			i++
		}
	}
	return nil
}

// may reports whether a candidate may be chosen in addition to those already chosen.
func (s *selection) may(c *candidate) bool {
	return s.mayLane(c.lane) && (c.effect == "" || !s.effects[c.effect])
}

// mayLane reports whether a job of a lane may start. A job that crashed before needs a free slot,
// in which it starts immediately.
func (s *selection) mayLane(lane int16) bool {
	return lane < 2 || s.idle > 0 && (lane < 4 || !s.repeat)
}
