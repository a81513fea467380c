package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/worker"
)

// cut is a queue whose connection breaks in the middle of the first settlements of each job: the
// outcome is unknown to the caller, and the queue has settled or has not.
type cut struct {
	pawl.Queue
	breaks  int  // the settlements of each job that fail
	settles int  // which of them the queue settles before the connection breaks; 0 for none
	part    bool // the error names each lease

	mu    sync.Mutex // guards tries and back
	tries map[pawl.ID]int
	back  bool // nothing fails
}

var errCut = fmt.Errorf("connection reset: %w", pawl.ErrUnknownOutcome)

func (c *cut) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	id := settlements[0].Lease.ID
	c.mu.Lock()
	c.tries[id]++
	try, back := c.tries[id], c.back
	c.mu.Unlock()
	switch {
	case back || try > c.breaks:
		return c.Queue.Settle(ctx, settlements...)
	case try < c.settles:
		return errBroken // for certain
	case try == c.settles:
		if err := c.Queue.Settle(ctx, settlements...); err != nil {
			return err
		}
	}
	if c.part {
		return driver.SettleErrors(settlements, slices.Repeat([]error{errCut}, len(settlements)))
	}
	return errCut
}

// Rule: after an unknown outcome, and only then, the worker settles again, and continues. A lease
// that is lost after it, before it can have expired, counts as settled.
func TestSettleOfUnknownOutcome(t *testing.T) {
	for _, breaks := range []int{1, 3} {
		for _, settles := range []int{0, 1, breaks} {
			for _, part := range []bool{false, true} {
				for _, result := range []error{nil, pawl.RetryAfter(time.Minute, errBroken), pawl.Permanent(errBroken), pawl.Snooze(time.Minute)} {
					t.Run(fmt.Sprintf("breaks=%d settles=%d part=%v result=%v", breaks, settles, part, result), func(t *testing.T) {
						inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
							var log logbook
							c := &cut{Queue: q, breaks: breaks, settles: settles, part: part, tries: make(map[pawl.ID]int)}
							first := enqueue(t, q, "a")
							runs := 0
							handleAll(t, c, worker.Options{Logger: log.from(hclog.Info)}, func(*pawl.Job[string]) error {
								if runs++; runs == 1 {
									return result
								}
								return nil
							})
							require.NotContains(t, log.String(), "may run again")
							require.Equal(t, settles > 0, strings.Contains(log.String(), "counts as settled"))
							require.Greater(t, c.tries[first], breaks, "it is settled again")
							require.Empty(t, emitted.of(pawl.EventReaped), "the lease ends with its settlement")
							want := map[bool]int{true: 2, false: 1}[errors.Is(result, errBroken) && !pawl.IsPermanent(result) || isSnooze(result)]
							require.Equal(t, want, runs, "no attempt is repeated")
							if pawl.IsPermanent(result) {
								requireDead(t, q, first, pawl.ReasonPermanent, 1)
							} else {
								requireDone(t, q, first)
							}
						})
					})
				}
			}
		}
	}
}

func isSnooze(err error) bool {
	_, ok := pawl.SnoozeDelay(err)
	return ok
}

// Rule: a lease that may have expired after a settlement of unknown outcome does not count as
// settled.
func TestLeaseExpiredAfterUnknownOutcome(t *testing.T) {
	for _, settles := range []int{0, 1} {
		t.Run(fmt.Sprint("settles=", settles), func(t *testing.T) {
			inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
				var log logbook
				began := time.Now()
				c := &cut{Queue: &faulty{Queue: q, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
					if time.Since(began) < 40*time.Second {
						return nil, errBroken
					}
					return q.Extend(ctx, leases...)
				}}, settles: settles, breaks: math.MaxInt, tries: make(map[pawl.ID]int)}
				time.AfterFunc(75*time.Second, func() {
					c.mu.Lock()
					c.back = true
					c.mu.Unlock()
				})
				enqueue(t, q, "a")
				r := handleAll(t, c, worker.Options{Logger: log.from(hclog.Info)}, func(*pawl.Job[string]) error { return nil })
				require.NotContains(t, log.String(), "counts as settled")
				require.Contains(t, log.String(), "the job is settled, or it may run again")
				require.Len(t, r.at, 2-settles, "attempts")
			})
		})
	}
}

// Rule: a lease that is lost although no try had an unknown outcome is reported as lost.
func TestLeaseLostWithoutUnknownOutcome(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, _ *events) {
		var log logbook
		c := &faulty{Queue: q, ack: func(ctx context.Context, leases ...*pawl.Lease) error {
			_ = q.Settle(ctx, acksOf(leases)...) // another worker is faster
			return q.Settle(ctx, acksOf(leases)...)
		}}
		enqueue(t, q, "a")
		handleAll(t, c, worker.Options{Logger: log.logger()}, func(*pawl.Job[string]) error { return nil })
		require.Contains(t, log.String(), "lease was lost before the job settled; it may run again")
	})
}

// Rule: an unknown outcome of a fetch or of an extension does not end the worker.
func TestFetchOfUnknownOutcome(t *testing.T) {
	inMemory(t, func(t *testing.T, q *memory.Queue, emitted *events) {
		fetches, beats := 0, 0
		c := &faulty{Queue: q, fetch: func(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
			fetches++
			leases, err := q.Fetch(ctx, r)
			if fetches == 1 {
				return nil, errCut // and the job stays leased, without a worker
			}
			return leases, err
		}, extend: func(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
			lost, err := q.Extend(ctx, leases...)
			if beats++; beats == 1 {
				return nil, errCut
			}
			return lost, err
		}}
		id := enqueue(t, q, "a")
		r := handleAll(t, c, worker.Options{}, func(*pawl.Job[string]) error {
			<-time.After(time.Minute)
			return nil
		})
		require.Len(t, r.at, 1)
		require.Equal(t, 30*time.Second, r.at[0], "once the lease of the fetch that failed has expired")
		require.Len(t, emitted.of(pawl.EventReaped), 1)
		require.Greater(t, beats, 1)
		requireDone(t, q, id)
	})
}
