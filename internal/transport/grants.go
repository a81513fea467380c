package transport

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// Grant is a lease that a broker gave this process. M is the broker's message.
type Grant[M any] struct {
	Token   uint64
	ID      pawl.ID
	Seq     uint64
	Body    []byte
	Crashes int           // before this lease
	Revived bool          // a job that the body says is dead begins anew
	Length  time.Duration // of the lease, unless it is extended
	Message M

	// Guarded by the mutex of the grants.
	until time.Time
	timer *time.Timer
}

// job reads the job.
func (g *Grant[M]) job() (*pawl.Envelope, []pawl.Failure, error) {
	e, history, err := ParseBody(slices.Clone(g.Body))
	if err != nil {
		return nil, nil, err
	}
	if e.Seq = g.Seq; g.Revived && e.Death != nil {
		e.Death, e.Attempts, e.BackoffSince = nil, 0, time.Time{}
	}
	return e, history, nil
}

// Grants are the leases of this process. A lease ends here before it ends at the broker, so a holder that is late
// is refused even where the broker does not compare tokens.
type Grants[M any] struct {
	mu     sync.Mutex
	closed bool
	held   map[uint64]*Grant[M]
	token  uint64
}

// Hold gives out a token for a lease that began at a time, and returns when it expires. If the lease expires
// before somebody takes it, Hold calls expired.
func (s *Grants[M]) Hold(g *Grant[M], began time.Time, expired func(*Grant[M])) (expires time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(map[uint64]*Grant[M])
		s.token = uint64(rand.Uint32()) << 32 // no token of another process
	}
	s.token++
	g.Token, g.until = s.token, began.Add(g.Length)
	if s.closed {
		return g.until
	}
	s.held[g.Token] = g
	g.timer = time.AfterFunc(time.Until(g.until), func() {
		s.mu.Lock()
		due := s.held[g.Token] == g && time.Until(g.until) <= 0
		if due {
			delete(s.held, g.Token)
		}
		s.mu.Unlock()
		if due {
			expired(g)
		}
	})
	return g.until
}

// Find returns the grant of a lease, nil if the lease is lost.
func (s *Grants[M]) Find(l *pawl.Lease) *Grant[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(l)
}

func (s *Grants[M]) find(l *pawl.Lease) *Grant[M] {
	if g := s.held[l.Token]; g != nil && g.ID == l.ID && time.Until(g.until) > 0 {
		return g
	}
	return nil
}

// Take is Find, after which the lease is nobody's.
func (s *Grants[M]) Take(l *pawl.Lease) *Grant[M] {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.find(l)
	if g != nil {
		delete(s.held, g.Token)
		g.timer.Stop()
	}
	return g
}

// Restore gives a grant that was taken back to its holder.
func (s *Grants[M]) Restore(g *Grant[M]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.held[g.Token] = g
		g.timer.Reset(time.Until(g.until))
	}
}

// Extend makes a lease begin at a time. It reports whether the lease still holds.
func (s *Grants[M]) Extend(g *Grant[M], began time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[g.Token] != g {
		return false
	}
	g.until = began.Add(g.Length)
	g.timer.Reset(time.Until(g.until))
	return true
}

// Drop forgets a grant whose lease is lost. It reports whether nobody did so before.
func (s *Grants[M]) Drop(g *Grant[M]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[g.Token] != g {
		return false
	}
	delete(s.held, g.Token)
	g.timer.Stop()
	return true
}

// Messages returns the messages of the leases that hold.
func (s *Grants[M]) Messages() (all []M) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.held {
		if time.Until(g.until) > 0 {
			all = append(all, g.Message)
		}
	}
	return all
}

// Close forgets all grants.
func (s *Grants[M]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, g := range s.held {
		g.timer.Stop()
	}
	clear(s.held)
}
