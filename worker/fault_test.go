package worker_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// faulty is a queue in which a test replaces single methods.
type faulty struct {
	pawl.Queue
	fetch   func(context.Context, pawl.Request) ([]*pawl.Lease, error)
	ack     func(context.Context, ...*pawl.Lease) error
	nack    func(context.Context, *pawl.Lease, time.Duration, error) error
	release func(context.Context, *pawl.Lease) error
	extend  func(context.Context, ...*pawl.Lease) ([]*pawl.Lease, error)
	alone   bool // no other process has the queue open
}

func (f *faulty) Abilities() pawl.Ability {
	if f.alone {
		return driver.Settings
	}
	return driver.Settings | pawl.Shared
}

func (f *faulty) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	if f.fetch != nil {
		return f.fetch(ctx, r)
	}
	return f.Queue.Fetch(ctx, r)
}

// Settle calls the methods that a test replaces for their settlements, and settles the others
// by one call.
func (f *faulty) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	var acks []*pawl.Lease
	var others []pawl.Settlement
	errs := make(map[*pawl.Lease]error)
	failed := func(err error, leases ...*pawl.Lease) {
		var part *pawl.SettleError
		some := errors.As(err, &part)
		for _, l := range leases {
			if errs[l] = err; some {
				errs[l] = part.Failed[l]
			}
		}
	}
	for _, s := range settlements {
		switch {
		case s.Outcome == pawl.OutcomeAck && f.ack != nil:
			acks = append(acks, s.Lease)
		case s.Outcome == pawl.OutcomeNack && f.nack != nil:
			failed(f.nack(ctx, s.Lease, s.Delay, s.Cause), s.Lease)
		case s.Outcome == pawl.OutcomeRelease && f.release != nil:
			failed(f.release(ctx, s.Lease), s.Lease)
		default:
			others = append(others, s)
		}
	}
	if len(acks) == len(settlements) {
		return f.ack(ctx, acks...)
	}
	if acks != nil {
		failed(f.ack(ctx, acks...), acks...)
	}
	if others != nil {
		err := f.Queue.Settle(ctx, others...)
		if len(others) == len(settlements) {
			return err
		}
		for _, s := range others {
			failed(err, s.Lease)
		}
	}
	all := make([]error, len(settlements))
	for i, s := range settlements {
		all[i] = errs[s.Lease]
	}
	if len(all) == 1 {
		return all[0]
	}
	return driver.SettleErrors(settlements, all)
}

// acksOf are the settlements of leases whose attempts succeeded.
func acksOf(leases []*pawl.Lease) []pawl.Settlement {
	acks := make([]pawl.Settlement, len(leases))
	for i, l := range leases {
		acks[i] = l.Ack()
	}
	return acks
}

// acker acks leases at a queue.
func acker(q pawl.Queue) func(context.Context, ...*pawl.Lease) error {
	return func(ctx context.Context, leases ...*pawl.Lease) error { return q.Settle(ctx, acksOf(leases)...) }
}

func (f *faulty) Extend(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
	if f.extend != nil {
		return f.extend(ctx, leases...)
	}
	return f.Queue.Extend(ctx, leases...)
}

// untouchable is a queue that panics at every call.
type untouchable struct{ pawl.Queue }

// slowAcks is a queue whose acks take a second, so that a worker with short
// handlers fetches ahead.
func slowAcks(q pawl.Queue) *faulty {
	return &faulty{Queue: q, ack: func(ctx context.Context, l ...*pawl.Lease) error {
		<-time.After(time.Second)
		return q.Settle(ctx, acksOf(l)...)
	}}
}

// ledger notes the leases that a queue grants, and the requests.
type ledger struct {
	pawl.Queue
	mu       sync.Mutex
	leases   map[pawl.ID]*pawl.Lease // the last of each job
	requests []pawl.Request
}

func (b *ledger) Abilities() pawl.Ability { return b.Queue.(driver.Able).Abilities() }

func newLedger(q pawl.Queue) *ledger {
	return &ledger{Queue: q, leases: make(map[pawl.ID]*pawl.Lease)}
}

func (b *ledger) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	b.mu.Lock()
	b.requests = append(b.requests, r)
	b.mu.Unlock()
	leases, err := b.Queue.Fetch(ctx, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range leases {
		b.leases[l.ID] = l
	}
	return leases, err
}

func (b *ledger) lease(id pawl.ID) *pawl.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leases[id]
}

func (b *ledger) asked() []pawl.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]pawl.Request(nil), b.requests...)
}

// ackTx has the effect of AckTx without a transaction: the job is acked, and its worker
// knows.
func ackTx(t *testing.T, q pawl.Queue, l *pawl.Lease) {
	t.Helper()
	if err := q.Settle(context.Background(), l.Ack()); err != nil {
		t.Error(err)
	}
	driver.MarkSettled(l)
}

// shelf is a queue in memory that returns jobs in their order, takes back only released jobs,
// and accepts every settlement.
type shelf struct {
	pawl.Queue // nil: only the methods below are called
	mu         sync.Mutex
	jobs       []*pawl.Envelope
}

// newShelf puts n jobs on a shelf.
func newShelf(t *testing.T, n int) *shelf {
	t.Helper()
	s := new(shelf)
	for i := range n {
		e, err := task.Envelope(strconv.Itoa(i))
		require.NoError(t, err)
		e.ID = pawl.NewID(time.Now())
		s.jobs = append(s.jobs, e)
	}
	return s
}

func (s *shelf) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs)
}

func (s *shelf) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	s.mu.Lock()
	n := min(r.Max, len(s.jobs))
	jobs := s.jobs[:n]
	s.jobs = s.jobs[n:]
	s.mu.Unlock()
	if n == 0 {
		<-ctx.Done()
		return nil, pawl.ErrNotAccepted
	}
	leases := make([]*pawl.Lease, n)
	for i, e := range jobs {
		leases[i] = &pawl.Lease{Envelope: e, Length: 30 * time.Second, Expires: time.Now().Add(30 * time.Second)}
	}
	return leases, nil
}

func (s *shelf) Settle(_ context.Context, settlements ...pawl.Settlement) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, with := range settlements {
		if with.Outcome == pawl.OutcomeRelease {
			s.jobs = append(s.jobs, with.Lease.Envelope)
		}
	}
	return nil
}

func (s *shelf) Extend(context.Context, ...*pawl.Lease) ([]*pawl.Lease, error) {
	return nil, nil
}
