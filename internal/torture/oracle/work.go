package oracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Options are those of every queue that a workload uses: jobs may crash for ever, so that
// how often they did is exact.
func Options() *bolt.Options {
	return &bolt.Options{Logger: quiet(), MaxCrashes: bolt.NoMaxCrashes, Lease: time.Hour}
}

// Workload is a random use of a queue.
type Workload struct {
	Seed      uint64
	Producers int // goroutines that store jobs, mostly one by one
	Consumers int // goroutines that fetch and settle
	Batch     int // jobs that a consumer fetches at most
	Steps     int // of each goroutine; 0 means without end
}

// Tell takes one line of the story. It is called from several goroutines.
type Tell func(words ...any)

// Run works on the queue until all steps are done, ctx ends or the queue refuses to go on. An
// error that none of these explains, or a job that is not as it was given, is a violation.
// Each operation is told before it begins ("begin verb id...") and after its answer:
//
//	done verb id...     it was acknowledged
//	refused verb id...  an error says that nothing has happened
//	unknown verb id...  an error says that it may have happened
//
// A workload does not begin an operation on a job before the last one on it was answered.
// A fetch tells how many jobs it asks for, "begin fetch worker n", and which it got, "done
// fetch worker id...". The error is nil when the queue closed, was poisoned, or ctx ended.
func (w Workload) Run(ctx context.Context, q *bolt.Queue, tell Tell) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	run := func(number int, step func(s *steps) error) {
		s := &steps{ctx: ctx, q: q, tell: tell, number: number, rand: rand.New(rand.NewPCG(w.Seed, uint64(number))), batch: w.Batch}
		all.Go(func() {
			for n := 0; w.Steps == 0 || n < w.Steps; n++ {
				if err := step(s); err != nil {
					if !ended(ctx, err) {
						cancel(violation{err})
					}
					return
				}
			}
		})
	}
	for n := range w.Producers {
		run(n, (*steps).produce)
	}
	for n := range w.Consumers {
		run(w.Producers+n, (*steps).consume)
	}
	all.Wait()
	var v violation
	errors.As(context.Cause(ctx), &v)
	return v.error
}

// violation ends all steps of a workload.
type violation struct{ error }

// ended reports whether an error is the queue's or the caller's end.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, pawl.ErrClosed) || errors.Is(err, pawl.ErrPoisoned)
}

// steps are what one goroutine does.
type steps struct {
	ctx    context.Context
	q      *bolt.Queue
	tell   Tell
	number int
	rand   *rand.Rand
	batch  int
}

// said tells an operation. Done is false when the disk refused it; only an end of the queue
// is an error, and what should never be.
func (s *steps) said(verb string, ids []pawl.ID, do func() error) (done bool, err error) {
	s.tell(s.words("begin", verb, ids)...)
	err = do()
	switch {
	case err == nil:
		s.tell(s.words("done", verb, ids)...)
		return true, nil
	case errors.Is(err, pawl.ErrUnknownOutcome):
		s.tell(s.words("unknown", verb, ids)...)
		return false, err
	case ended(s.ctx, err):
		s.tell(s.words("refused", verb, ids)...)
		return false, err
	case errors.Is(err, bolt.ErrDisk):
		s.tell(s.words("refused", verb, ids)...)
		return false, nil
	}
	return false, fmt.Errorf("%s of job %s: %w", verb, ids, err)
}

func (s *steps) words(what, verb string, ids []pawl.ID) []any {
	line := []any{what, verb, s.number}
	for _, id := range ids {
		line = append(line, id)
	}
	return line
}

// produce stores one job, or a few together.
func (s *steps) produce() error {
	n := 1
	if s.rand.IntN(8) == 0 {
		n = 2 + s.rand.IntN(6)
	}
	ids := make([]pawl.ID, n)
	jobs := make([]*pawl.Envelope, n)
	for i := range ids {
		ids[i] = pawl.NewID(time.Now())
		jobs[i] = JobOf(ids[i])
	}
	_, err := s.said("enqueue", ids, func() error { return s.q.Enqueue(s.ctx, jobs...) })
	return err
}

// consume fetches jobs and settles them, the acks together.
func (s *steps) consume() error {
	s.tell("begin fetch", s.number, s.batch)
	leases, err := s.q.Fetch(s.ctx, pawl.Request{Queues: Queues, Max: s.batch})
	switch {
	case errors.Is(err, pawl.ErrUnknownOutcome):
		s.tell("unknown fetch", s.number)
		return err
	case err != nil:
		s.tell("refused fetch", s.number)
		if errors.Is(err, bolt.ErrDisk) {
			return nil
		}
		return err
	}
	s.tell(s.words("done", "fetch", idsOf(leases))...)
	var acks []*pawl.Lease
	for _, l := range leases {
		if err := SameJob(l.Envelope); err != nil {
			return err
		}
		verb := verbs[s.rand.IntN(len(verbs))]
		if verb.name == "ack" {
			acks = append(acks, l)
			continue
		}
		if err := s.settle(verb, l); err != nil {
			return err
		}
	}
	if acks == nil {
		return nil
	}
	_, err = s.said("ack", idsOf(acks), func() error { return s.q.Ack(s.ctx, acks...) })
	return err
}

func idsOf(leases []*pawl.Lease) []pawl.ID {
	ids := make([]pawl.ID, len(leases))
	for i, l := range leases {
		ids[i] = l.ID
	}
	return ids
}

// settle ends a lease, and now and then goes on with what it made of the job.
func (s *steps) settle(verb verbOf, l *pawl.Lease) error {
	id := []pawl.ID{l.ID}
	done, err := s.said(verb.name, id, func() error { return verb.do(s.ctx, s.q, l) })
	if !done || verb.name != "abandon" {
		return err
	}
	switch s.rand.IntN(3) {
	case 0:
		_, err = s.said("retry", id, func() error { return s.q.Retry(s.ctx, l.ID, true) })
	case 1:
		_, err = s.said("delete", id, func() error { return s.q.Delete(s.ctx, l.ID) })
	}
	return err
}

var errBoom = errors.New("boom")

// verbOf is a way to end a lease.
type verbOf struct {
	name  string
	do    func(context.Context, *bolt.Queue, *pawl.Lease) error
	after func(Known) Known // what it makes of a job
}

// after is a verb's effect on the state and the attempts. Every verb ends a row of crashes.
func after(state pawl.State, attempts int) func(Known) Known {
	return func(k Known) Known { return Known{State: state, Attempts: k.Attempts + attempts} }
}

var verbs = []verbOf{
	{"ack", nil, nil}, // acks go together, and what is left depends on the job
	{"ack", nil, nil},
	{"nack", func(ctx context.Context, q *bolt.Queue, l *pawl.Lease) error { return q.Nack(ctx, l, 0, errBoom) }, after(pawl.Ready, 1)},
	{"later", func(ctx context.Context, q *bolt.Queue, l *pawl.Lease) error { return q.Nack(ctx, l, later, errBoom) }, after(pawl.Delayed, 1)},
	{"abandon", func(ctx context.Context, q *bolt.Queue, l *pawl.Lease) error {
		return q.Abandon(ctx, l, pawl.ReasonPermanent, errBoom)
	}, after(pawl.Dead, 1)},
	{"release", func(ctx context.Context, q *bolt.Queue, l *pawl.Lease) error { return q.Release(ctx, l) }, after(pawl.Ready, 0)},
	{"snooze", func(ctx context.Context, q *bolt.Queue, l *pawl.Lease) error { return q.Snooze(ctx, l, later) }, after(pawl.Delayed, 0)},
}
