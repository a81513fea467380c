package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
)

// fetchOne fetches one job, if there is one.
func (s *session) fetchOne(ctx context.Context) error {
	s.mu.Lock()
	r, shut := s.request(1, 0, pawl.WaitNot), s.shut
	s.mu.Unlock()
	if shut {
		return pawl.ErrEmpty
	}
	leases, err := s.w.queue.Fetch(ctx, r)
	if err != nil {
		return err
	}
	s.deliver(leases)
	return nil
}

// fetchUntil fetches jobs on demand. It returns nil when the queues are as empty as until requires,
// the error of ctx, or an error of the queue after which no later call can succeed.
func (s *session) fetchUntil(ctx context.Context, until pawl.Wait) error {
	retries := pawl.DefaultStrategy()
	for failed := 0; ; {
		r, fetching, err := s.demand(ctx, until)
		if errors.Is(err, pawl.ErrEmpty) {
			return nil
		}
		if err != nil {
			return err
		}
		leases, err := s.w.queue.Fetch(fetching, r)
		s.fetchEnded()
		switch {
		case err == nil:
			failed = 0
			s.deliver(leases)
		case errors.Is(err, pawl.ErrEmpty):
			return nil
		case over(err), isLacking(err):
			return fmt.Errorf("fetch jobs: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, pawl.ErrNotAccepted): // the demand changed
		default:
			failed++
			pause := retries.Before(failed+1, rand.Float64())
			s.w.opts.Logger.Error("cannot fetch jobs; trying again", "in", pause, "error", err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}
}

// isLacking reports whether the queue lacks an ability that the worker's options need. It does not
// suffice that an error matches [pawl.ErrUnsupported]: some errors of operating systems also match
// it.
func isLacking(err error) bool {
	var refused *pawl.InvalidError
	return errors.As(err, &refused) && refused.Lacks != 0
}

// request returns what to fetch from the queue. The caller holds mu.
func (s *session) request(limit, ahead int, wait pawl.Wait) pawl.Request {
	r := s.w.request
	r.Kinds, r.Max, r.Ahead, r.Wait = s.kinds, limit, ahead, wait
	return r
}

// demand waits until jobs are wanted, and returns the request. The context that it returns ends when
// the request is out of date. The error is [pawl.ErrEmpty] if every gate is closed and until does
// not wait for jobs.
func (s *session) demand(ctx context.Context, until pawl.Wait) (r pawl.Request, fetching context.Context, err error) {
	for ctx.Err() == nil {
		s.mu.Lock()
		if want := s.wanted(); want > 0 {
			fetching, end := context.WithCancel(ctx)
			s.asked, s.endFetch = s.idle(), end
			r := s.request(want, max(0, want-s.asked), until)
			s.mu.Unlock()
			return r, fetching, nil
		}
		shut := s.shut
		s.mu.Unlock()
		if shut && until != pawl.WaitForJob {
			return r, nil, pawl.ErrEmpty
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
		}
	}
	return r, nil, ctx.Err()
}

// wanted returns how many jobs to fetch now. It is 0 while enough jobs wait for slots, so that
// fetches are few and large. The caller holds mu.
func (s *session) wanted() int {
	idle, ahead := s.idle(), s.pace.ahead(s.w.opts.Concurrency)
	if s.shut || s.unsettled >= maxUnsettled || idle == 0 && (len(s.waiting) > ahead/2 || s.aheadBytes >= maxAheadBytes) {
		return 0
	}
	return max(0, idle+ahead-len(s.waiting))
}

// askAgain starts or renews a fetch if more jobs are wanted than the current fetch requests. Call it
// after a slot became free and no waiting job took it. The caller holds mu.
func (s *session) askAgain() {
	if s.endFetch != nil && s.asked == 0 && s.idle() > 0 {
		s.endFetch() // jobs that crashed need an idle slot
	}
	if s.wanted() > 0 {
		s.demandChanged()
	}
}

func (s *session) fetchEnded() {
	s.mu.Lock()
	s.endFetch()
	s.endFetch = nil
	s.mu.Unlock()
}

func (s *session) demandChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
