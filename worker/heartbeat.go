package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// beat extends every held lease in one call, three times a lease length, until ctx
// ends.
func (s *session) beat(ctx context.Context) {
	select {
	case <-s.leased:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(s.length / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.extend(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) extend(ctx context.Context) {
	held := slices.DeleteFunc(s.all(), func(a *attempt) bool { return driver.Settled(a.Lease) })
	if len(held) == 0 {
		return
	}
	byLease := make(map[*pawl.Lease]*attempt, len(held))
	leases := make([]*pawl.Lease, len(held))
	for i, a := range held {
		leases[i], byLease[a.Lease] = a.Lease, a
	}
	began, call := time.Now(), ctx
	if s.w.shared() {
		var cancel context.CancelFunc
		call, cancel = context.WithTimeout(ctx, s.length/3) // after that, the next beat is due
		defer cancel()
	}
	lost, err := s.w.queue.Extend(call, leases...)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, pawl.ErrClosed) {
			s.w.opts.Logger.Error("cannot extend leases", "leases", len(leases), "error", err)
		}
		return
	}
	for _, l := range lost {
		s.lost(byLease[l])
		delete(byLease, l)
	}
	s.extended(maps.Values(byLease), began)
}

// lost stops an attempt whose lease is gone. Another holder has the job now, so nothing is
// settled. If the worker or the handler settled the attempt during the call, nothing is wrong.
func (s *session) lost(a *attempt) {
	s.mu.Lock()
	_, held := s.held[a]
	waited := s.leaveWaiting(a)
	cancel := a.cancel
	if !a.claimed.Load() {
		a.until = time.Time{} // a lost lease is not in doubt
	}
	s.mu.Unlock()
	switch {
	case waited:
		if a.claim() {
			s.forget(a)
		}
	case held && cancel != nil && !a.claimed.Load() && !driver.Settled(a.Lease):
		s.w.opts.Logger.Warn("lease was lost while the handler runs; its context ends",
			"id", a.ID, "kind", a.Kind, "attempt", a.Attempt())
		cancel(pawl.ErrLeaseLost)
	}
}

// leaveWaiting removes an attempt from those that wait for a slot, or for the return of the last
// handler of their job. The caller holds mu.
func (s *session) leaveWaiting(a *attempt) (found bool) {
	i := slices.Index(s.waiting, a)
	if i < 0 {
		return s.leaveBehind(a)
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.aheadBytes -= len(a.Payload)
	return true
}
