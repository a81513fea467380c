package memory

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The verbs of the holders of leases.

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.CheckSettle(settlements); err != nil {
		return err
	}
	failures := make([]pawl.Failure, len(settlements)) // read before the lock is held: an error may call the queue
	for i := range settlements {
		failures[i] = driver.FailureOf(settlements[i].Cause)
	}
	errs := make([]error, len(settlements))
	err := q.do(ctx, func() error {
		for i := range settlements {
			s := settlements[i]
			s.Result = bytes.Clone(s.Result)
			j, err := q.held(s.Lease)
			if err == nil {
				err = driver.CheckRest(&s, j.Key, j.line.name, j.line.limits)
			}
			if errs[i] = err; err == nil {
				if s.Outcome == pawl.OutcomeThrottle {
					q.rest(j, &s)
				}
				q.moves.End(j, &s, failures[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return driver.SettleErrors(settlements, errs)
}

// held returns the job of a lease, if the lease has the job's present token.
func (q *Queue) held(l *pawl.Lease) (*job, error) {
	j, ok := q.jobs[l.ID]
	if !ok || j.State != pawl.Leased || j.token != l.Token {
		return nil, fmt.Errorf("job %s: %w", l.ID, pawl.ErrLeaseLost)
	}
	return j, nil
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	err = q.do(ctx, func() error {
		for _, l := range leases {
			if j, err := q.held(l); err != nil {
				lost = append(lost, l)
			} else {
				q.extend(j)
			}
		}
		return nil
	})
	return lost, err
}

// Reap implements [pawl.Queue].
func (q *Queue) Reap(ctx context.Context) (reaped int, err error) {
	err = q.do(ctx, func() error {
		reaped = q.reap()
		return nil
	})
	return reaped, err
}
