package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
	"github.com/gopawl/pawl/internal/withid"
)

// The lines of a child outside its story.
const (
	violationLine = "violation" // followed by its text
	noteLine      = "note"      // followed by an event that the family counts
	foundLine     = "found"     // followed by a job of a reopened file
	openLine      = "open"      // after the last of these jobs
)

// start is the time that the clock of a child's queue shows. Its jobs have the same IDs and
// times in each run, so each run makes the same system calls.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// user uses a queue, one call after the other.
type user struct {
	oracle.User
	rand  *rand.Rand
	held  []*pawl.Lease
	made  uint64 // IDs
	ended bool   // a call got ErrUnknownOutcome or ErrPoisoned
}

var background = context.Background()

// childTimeout is the time limit of a child, many times its usual time.
const childTimeout = time.Minute

func newUser(seed uint64) *user {
	u := &user{User: oracle.User{Emit: harness.Emit}, rand: rand.New(rand.NewPCG(seed, 0))}
	u.Judge = u.judge
	return u
}

// options returns the options of a user's queue.
func options() *bolt.Options {
	o := oracle.Options()
	o.Now = func() time.Time { return start }
	return o
}

// newID makes an ID from the seed.
func (u *user) newID() (id pawl.ID) {
	u.made++
	binary.BigEndian.PutUint64(id[:], uint64(start.UnixMilli())<<16|7<<12|u.made&0xfff)
	binary.BigEndian.PutUint64(id[8:], u.rand.Uint64()&^(3<<62)|2<<62)
	return id
}

// newJobs makes n jobs for which suits is true. Their payloads have at least least bytes.
func (u *user) newJobs(n, least int, suits func(*pawl.Envelope) bool) (ids []pawl.ID, jobs []*pawl.Envelope) {
	for len(jobs) < n {
		id := u.newID()
		if oracle.PayloadSize(id) < least {
			continue
		}
		if job := oracle.JobOf(id); suits(job) {
			ids, jobs = append(ids, id), append(jobs, job)
		}
	}
	return ids, jobs
}

func violate(format string, args ...any) {
	harness.Emit(violationLine, fmt.Sprintf(format, args...))
}

// judge reports a violation for an answer that the queue must not give.
func (u *user) judge(verb string, err error) {
	switch {
	case err == nil && u.ended:
		violate("%s was acknowledged after a sync had failed", verb)
	case err == nil:
	case errors.Is(err, oracle.ErrNoAnswer):
		violate("%v", err)
	case errors.Is(err, pawl.ErrPoisoned) && !errors.Is(err, pawl.ErrUnknownOutcome):
		u.ended = true
	default:
		if u.ended {
			violate("%s of a poisoned queue was tried: %v", verb, err)
		}
		u.ended = u.ended || errors.Is(err, pawl.ErrUnknownOutcome)
	}
}

// enqueue stores n jobs together. Their payloads have at least least bytes.
func (u *user) enqueue(n, least int) error {
	return u.enqueueSome(n, least, func(*pawl.Envelope) bool { return true })
}

// enqueueSome is enqueue for jobs for which suits is true.
func (u *user) enqueueSome(n, least int, suits func(*pawl.Envelope) bool) error {
	ids, jobs := u.newJobs(n, least, suits)
	return u.Do(background, "enqueue", ids, func() error { return withid.Enqueue(background, u.Queue, jobs...) })
}

// fetch leases up to n jobs and holds them. An empty queue is not an error.
func (u *user) fetch(n int) error {
	if u.ended { // the story has room for one fetch with an unknown outcome
		_, err := u.Queue.Fetch(background, pawl.Request{Queues: oracle.Queues, Max: n, Wait: pawl.WaitNot})
		if !errors.Is(err, pawl.ErrPoisoned) {
			violate("a fetch from a poisoned queue: %v", err)
		}
		return err
	}
	leases, err := u.Fetch(background, n, pawl.WaitNot)
	u.held = append(u.held, leases...)
	return err
}

// settle ends the first lease that it holds. If that fails, the next process finds the lease.
func (u *user) settle(v oracle.Verb) error {
	l := u.held[0]
	u.held = u.held[1:]
	return u.Settle(background, u.rand, v, l)
}

// step does something. What it does depends on the number of leases that it holds.
func (u *user) step() error {
	switch n := u.rand.IntN(8); {
	case len(u.held) > 0 && n < 5:
		return u.settle(oracle.AnyVerb(u.rand))
	case n == 5 || n == 6:
		return u.fetch(1 + u.rand.IntN(4))
	case n == 7:
		return u.enqueue(2+u.rand.IntN(3), 0)
	}
	return u.enqueue(1, 0)
}
