package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// planted is a queue that breaks a rule, in one of every few calls.
type planted struct {
	Queue
	fault string
	every int

	mu     sync.Mutex
	calls  int
	newest map[pawl.ID]*pawl.Lease
}

// plant opens queues with a fault.
func plant(fault string, every int) Opener {
	return func(path string, o *bolt.Options) (Queue, error) {
		p := &planted{fault: fault, every: every, newest: make(map[pawl.ID]*pawl.Lease)}
		if fault == "a clock that never goes back" {
			now, latest := o.Now, time.Time{}
			o.Now = func() time.Time {
				p.mu.Lock()
				defer p.mu.Unlock()
				if t := now(); t.After(latest) {
					latest = t
				}
				return latest
			}
		}
		q, err := Real(path, o)
		p.Queue = q
		return p, err
	}
}

// now reports whether a call is to break the rule.
func (p *planted) now(fault string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if fault != p.fault {
		return false
	}
	p.calls++
	return p.calls%p.every == 0
}

func (p *planted) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	for _, e := range jobs {
		switch {
		case p.now("half a delay"):
			e.Delay /= 2
		case p.now("a priority lost"):
			e.Priority = 0
		case p.now("a unique key lost"):
			e.UniqueKey = ""
		case p.now("an idempotency key lost"):
			e.IdempotencyKey = ""
		}
	}
	return p.Queue.Enqueue(ctx, jobs...)
}

func (p *planted) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	leases, err := p.Queue.Fetch(ctx, r)
	p.mu.Lock()
	for _, l := range leases {
		p.newest[l.ID] = copied(l)
	}
	p.mu.Unlock()
	if len(leases) > 0 && p.now("a lease given twice") {
		leases = append(leases, copied(leases[0]))
	}
	return leases, err
}

// copied is a lease for a second user: a lease belongs to the worker that fetched it, which writes to it.
func copied(l *pawl.Lease) *pawl.Lease {
	other := *l
	return &other
}

// current is the lease that counts, whatever its holder says.
func (p *planted) current(l *pawl.Lease) *pawl.Lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	if newest := p.newest[l.ID]; p.fault == "no token check" && newest != nil {
		return newest
	}
	return l
}

func (p *planted) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	var own, given []pawl.Settlement
	for _, s := range settlements {
		now := s
		now.Lease = p.current(s.Lease)
		switch s.Outcome {
		case pawl.OutcomeAck:
			if p.now("an ack lost") {
				continue
			}
		case pawl.OutcomeNack:
			switch {
			case p.now("an attempt lost"):
				now = s.Lease.Snooze(s.Delay)
			case p.now("a retry at once"):
				now.Delay = 0
			case p.now("a failed job lost"):
				now = s.Lease.Ack()
			}
		}
		own, given = append(own, now), append(given, s)
	}
	err := p.Queue.Settle(ctx, own...)
	var part *pawl.SettleError
	if !errors.As(err, &part) {
		return err
	}
	errs := make([]error, len(own))
	for i, s := range own {
		errs[i] = part.Failed[s.Lease]
	}
	return driver.SettleErrors(given, errs)
}

func (p *planted) Extend(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
	if p.now("an extension lost") {
		return nil, nil
	}
	return p.Queue.Extend(ctx, leases...)
}

func (p *planted) Cancel(ctx context.Context, id pawl.ID) error {
	if p.now("a cancel lost") {
		return nil
	}
	return p.Queue.Cancel(ctx, id)
}

func (p *planted) Retry(ctx context.Context, id pawl.ID, keep bool) error {
	if p.now("attempts forgotten") {
		keep = false
	}
	return p.Queue.Retry(ctx, id, keep)
}
