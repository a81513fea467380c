package oracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/withid"
)

// Options are the options of every queue that a workload uses. Jobs may crash any number of
// times, so the number of crashes is exact.
func Options() *bolt.Options {
	return &bolt.Options{Logger: hclog.NewNullLogger(), MaxCrashes: bolt.NoMaxCrashes, Lease: time.Hour, Limits: limits}
}

// Emit takes one line of the story. Several goroutines call it.
type Emit func(words ...any)

// After emits lines, and calls do after a number of them.
func After(lines int, emit Emit, do func()) Emit {
	var emitted atomic.Int64
	return func(words ...any) {
		emit(words...)
		if emitted.Add(1) == int64(lines) {
			do()
		}
	}
}

// The answers to an operation, as the story names them.
const (
	Done    = "done"    // it was acknowledged
	Refused = "refused" // an error says that nothing happened
	Unknown = "unknown" // an error says that it may have happened, or says nothing about that
)

// User is one goroutine that uses a queue and reports its story. It reports each operation
// before it begins ("begin verb number id...") and after its answer ("done verb number
// id..."). It does not begin an operation on a job before the answer to the previous one.
type User struct {
	Queue  *bolt.Queue
	Emit   Emit
	Number int // number of the goroutine

	// Judge looks at the error of each operation. It may be nil.
	Judge func(verb string, err error)
}

// answer returns what an error says about an operation. Known is false for an error that says
// nothing.
func answer(ctx context.Context, err error) (text string, known bool) {
	switch {
	case err == nil:
		return Done, true
	case errors.Is(err, pawl.ErrUnknownOutcome):
		return Unknown, true
	case ended(ctx, err), errors.Is(err, bolt.ErrDisk):
		return Refused, true
	}
	return Unknown, false
}

// ended reports whether an error is the end of the queue or of the caller.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, pawl.ErrClosed) || errors.Is(err, pawl.ErrPoisoned)
}

// ErrNoAnswer is the error of an operation whose own error says neither that nothing
// happened nor that this is unknown. It is a violation.
var ErrNoAnswer = errors.New("the error says neither that nothing happened nor that this is unknown")

// Do reports an operation on jobs and carries it out.
func (u *User) Do(ctx context.Context, verb string, ids []pawl.ID, do func() error) error {
	u.emit("begin", verb, ids)
	err := do()
	return u.answered(ctx, verb, ids, err)
}

// answered reports the answer to an operation.
func (u *User) answered(ctx context.Context, verb string, ids []pawl.ID, err error) error {
	text, known := answer(ctx, err)
	u.emit(text, verb, ids)
	if !known {
		err = fmt.Errorf("%s of job %s: %w: %w", verb, ids, ErrNoAnswer, err)
	}
	if u.Judge != nil {
		u.Judge(verb, err)
	}
	return err
}

func (u *User) emit(what, verb string, ids []pawl.ID) {
	line := []any{what, verb, u.Number}
	for _, id := range ids {
		line = append(line, id)
	}
	u.Emit(line...)
}

// Fetch fetches up to n jobs, reports that ("begin fetch number n", "done fetch number
// id..."), and requires that each job is unchanged.
func (u *User) Fetch(ctx context.Context, n int, wait pawl.Wait) ([]*pawl.Lease, error) {
	u.Emit("begin fetch", u.Number, n)
	leases, err := u.Queue.Fetch(ctx, pawl.Request{Queues: Queues, Max: n, Wait: wait})
	if errors.Is(err, pawl.ErrEmpty) {
		u.Emit(Refused, "fetch", u.Number)
		return nil, nil
	}
	for _, l := range leases {
		if wrong := SameJob(l.Envelope); wrong != nil {
			err = wrong
		}
	}
	return leases, u.answered(ctx, "fetch", idsOf(leases), err)
}

func idsOf(leases []*pawl.Lease) []pawl.ID {
	ids := make([]pawl.ID, len(leases))
	for i, l := range leases {
		ids[i] = l.ID
	}
	return ids
}

// Verb is a way to end a lease.
type Verb struct {
	Name   string
	settle func(*pawl.Lease) pawl.Settlement
}

// Do ends a lease.
func (v Verb) Do(ctx context.Context, q *bolt.Queue, l *pawl.Lease) error {
	return q.Settle(ctx, v.settle(l))
}

var errBoom = errors.New("boom")

// Verbs are all ways to end a lease, Ack first.
var Verbs = []Verb{
	{"ack", ack},
	{"nack", func(l *pawl.Lease) pawl.Settlement { return l.Nack(0, errBoom) }},
	{"later", func(l *pawl.Lease) pawl.Settlement { return l.Nack(later, errBoom) }},
	{"abandon", func(l *pawl.Lease) pawl.Settlement { return l.Abandon(pawl.ReasonPermanent, errBoom) }},
	{"release", (*pawl.Lease).Release},
	{"snooze", func(l *pawl.Lease) pawl.Settlement { return l.Snooze(later) }},
}

// AnyVerb draws a way to end a lease, an Ack more often than each of the others.
func AnyVerb(r *rand.Rand) Verb { return Verbs[max(0, r.IntN(len(Verbs)+2)-2)] }

// Settle ends a lease, and retries or deletes some of the jobs that it made dead.
func (u *User) Settle(ctx context.Context, r *rand.Rand, v Verb, l *pawl.Lease) error {
	id := []pawl.ID{l.ID}
	err := u.Do(ctx, v.Name, id, func() error { return v.Do(ctx, u.Queue, l) })
	if err != nil || v.Name != "abandon" {
		return err
	}
	switch r.IntN(3) {
	case 0:
		return u.Do(ctx, "retry", id, func() error { return u.Queue.Retry(ctx, l.ID, true) })
	case 1:
		return u.Do(ctx, "delete", id, func() error { return u.Queue.Delete(ctx, l.ID) })
	}
	return nil
}

// Workload is a random use of a queue.
type Workload struct {
	Seed      uint64
	Producers int // goroutines that store jobs, usually one at a time
	Consumers int // goroutines that fetch and settle
	Batch     int // jobs that a consumer fetches at most
	Steps     int // steps of each goroutine; 0 means no limit
}

// AnyWorkload draws the numbers of a workload from its seed.
func AnyWorkload(seed uint64) Workload {
	r := rand.New(rand.NewPCG(seed, 0))
	return Workload{Seed: seed, Producers: 1 + r.IntN(3), Consumers: 1 + r.IntN(3), Batch: 1 + r.IntN(8)}
}

// Run works on the queue until all steps are done, ctx ends, or the queue stops. Its error is
// a violation: an unexpected error, or a changed job.
func (w Workload) Run(ctx context.Context, q *bolt.Queue, emit Emit) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	run := func(number int, step func(w Workload, ctx context.Context, u *User, r *rand.Rand) error) {
		u, r := &User{Queue: q, Emit: emit, Number: number}, rand.New(rand.NewPCG(w.Seed, uint64(number)))
		all.Go(func() {
			for n := 0; w.Steps == 0 || n < w.Steps; n++ {
				switch err := step(w, ctx, u, r); {
				case errors.Is(err, ErrNoAnswer):
					cancel(err)
					return
				case ended(ctx, err):
					return
				}
			}
		})
	}
	for n := range w.Producers {
		run(n, Workload.produce)
	}
	for n := range w.Consumers {
		run(w.Producers+n, Workload.consume)
	}
	all.Wait()
	if err := context.Cause(ctx); errors.Is(err, ErrNoAnswer) {
		return err
	}
	return nil
}

// produce stores one job, or a few together.
func (w Workload) produce(ctx context.Context, u *User, r *rand.Rand) error {
	n := 1
	if r.IntN(8) == 0 {
		n = 2 + r.IntN(6)
	}
	ids, jobs := make([]pawl.ID, n), make([]*pawl.Envelope, n)
	for i := range ids {
		ids[i] = pawl.NewID(time.Now())
		jobs[i] = JobOf(ids[i])
	}
	return u.Do(ctx, "enqueue", ids, func() error { return withid.Enqueue(ctx, u.Queue, jobs...) })
}

// consume fetches jobs and settles them, the acks together.
func (w Workload) consume(ctx context.Context, u *User, r *rand.Rand) error {
	leases, err := u.Fetch(ctx, w.Batch, pawl.WaitForJob)
	if err != nil {
		return err
	}
	var acks []*pawl.Lease
	for _, l := range leases {
		v := AnyVerb(r)
		if v.Name == "ack" {
			acks = append(acks, l)
			continue
		}
		if err := u.Settle(ctx, r, v, l); ended(ctx, err) || errors.Is(err, ErrNoAnswer) {
			return err
		}
	}
	if acks == nil {
		return nil
	}
	return u.Do(ctx, "ack", idsOf(acks), func() error { return u.Queue.Settle(ctx, Acks(acks)...) })
}

// ack is the settlement of a lease whose attempt succeeded, with its result.
func ack(l *pawl.Lease) pawl.Settlement {
	s := l.Ack()
	s.Result = ResultOf(l.Envelope)
	return s
}

// Acks are the settlements of leases whose attempts succeeded.
func Acks(leases []*pawl.Lease) []pawl.Settlement {
	acks := make([]pawl.Settlement, len(leases))
	for i, l := range leases {
		acks[i] = ack(l)
	}
	return acks
}
