package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// The lines of a child that are not of its story.
const (
	violationLine = "violation" // and what it met
	noteLine      = "note"      // and what the family wants to know
	foundLine     = "found"     // a job of a file that was opened again
	openLine      = "open"      // that all of them were told
)

// start is when the clock of a child's queue begins. Its jobs have the same IDs and times
// in each run, so that each run makes the same system calls.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// user uses a queue, one call after the other.
type user struct {
	q     *bolt.Queue
	rand  *rand.Rand
	held  []*pawl.Lease
	made  uint64 // IDs
	ended bool   // a call was told that the outcome is unknown, or that the queue is poisoned
}

var background = context.Background()

// patience is how long a child may take, many times what it does: one that takes longer hangs.
const patience = time.Minute

// watch ends a child that hangs, with the stacks of its goroutines. Stop is for its end.
func watch() (stop func() bool) {
	return time.AfterFunc(patience, func() {
		debug.SetTraceback("all")
		panic("a call has not returned for " + patience.String())
	}).Stop
}

func newUser(seed uint64) user { return user{rand: rand.New(rand.NewPCG(seed, 0))} }

// options are those of a user's queue.
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

// newJobs makes n jobs whose payload has at least so many bytes.
func (u *user) newJobs(n, least int) (ids []pawl.ID, jobs []*pawl.Envelope) {
	for len(jobs) < n {
		id := u.newID()
		if job := oracle.JobOf(id); len(job.Payload) >= least {
			ids, jobs = append(ids, id), append(jobs, job)
		}
	}
	return ids, jobs
}

func violate(format string, args ...any) {
	harness.Tell(violationLine, fmt.Sprintf(format, args...))
}

// say tells an operation and does it. An error that a caller cannot act on is told as a
// violation; the error returned is one of those that it can.
func (u *user) say(verb string, ids []pawl.ID, do func() error) error {
	words := func(what string) (line []any) {
		line = []any{what, verb, 0}
		for _, id := range ids {
			line = append(line, id)
		}
		return line
	}
	harness.Tell(words("begin")...)
	err := do()
	switch {
	case err == nil:
		harness.Tell(words("done")...)
		if u.ended {
			violate("%s was acknowledged after a sync had failed", verb)
		}
	case errors.Is(err, pawl.ErrUnknownOutcome):
		harness.Tell(words("unknown")...)
		if u.ended {
			violate("%s of a poisoned queue was tried: %v", verb, err)
		}
		u.ended = true
	case errors.Is(err, pawl.ErrPoisoned):
		harness.Tell(words("refused")...)
		u.ended = true
	case errors.Is(err, bolt.ErrDisk):
		harness.Tell(words("refused")...)
		if u.ended {
			violate("%s of a poisoned queue was tried: %v", verb, err)
		}
	default:
		harness.Tell(words("unknown")...)
		violate("%s of %v: the error says neither that nothing happened nor that this is unknown: %v", verb, ids, err)
	}
	return err
}

// enqueue stores n jobs together, whose payloads have at least so many bytes.
func (u *user) enqueue(n, least int) error {
	ids, jobs := u.newJobs(n, least)
	return u.say("enqueue", ids, func() error { return u.q.Enqueue(background, jobs...) })
}

// fetch leases up to n jobs and holds them. That there are none is no error.
func (u *user) fetch(n int) (err error) {
	if u.ended { // the story has room for one fetch whose outcome is unknown
		if _, err = u.q.Fetch(background, pawl.Request{Queues: oracle.Queues, Max: n, Wait: pawl.WaitNot}); !errors.Is(err, pawl.ErrPoisoned) {
			violate("a fetch from a poisoned queue: %v", err)
		}
		return err
	}
	var leases []*pawl.Lease
	harness.Tell("begin fetch 0", n)
	leases, err = u.q.Fetch(background, pawl.Request{Queues: oracle.Queues, Max: n, Wait: pawl.WaitNot})
	switch {
	case err == nil:
		line := []any{"done fetch 0"}
		for _, l := range leases {
			line = append(line, l.ID)
			if err := oracle.SameJob(l.Envelope); err != nil {
				violate("%v", err)
			}
		}
		u.held = append(u.held, leases...)
		harness.Tell(line...)
		return nil
	case errors.Is(err, pawl.ErrEmpty):
		harness.Tell("refused fetch 0")
		return nil
	case errors.Is(err, pawl.ErrUnknownOutcome):
		harness.Tell("unknown fetch 0")
		u.ended = true
	case errors.Is(err, pawl.ErrPoisoned):
		harness.Tell("refused fetch 0")
		u.ended = true
	case errors.Is(err, bolt.ErrDisk):
		harness.Tell("refused fetch 0")
	default:
		harness.Tell("unknown fetch 0")
		violate("fetch: the error says neither that nothing happened nor that this is unknown: %v", err)
	}
	return err
}

var errBoom = errors.New("boom")

// verbs end a lease; those of package oracle, by their names.
var verbs = []struct {
	name string
	do   func(*bolt.Queue, *pawl.Lease) error
}{
	{"ack", func(q *bolt.Queue, l *pawl.Lease) error { return q.Ack(background, l) }},
	{"nack", func(q *bolt.Queue, l *pawl.Lease) error { return q.Nack(background, l, 0, errBoom) }},
	{"later", func(q *bolt.Queue, l *pawl.Lease) error { return q.Nack(background, l, 1000*time.Hour, errBoom) }},
	{"abandon", func(q *bolt.Queue, l *pawl.Lease) error {
		return q.Abandon(background, l, pawl.ReasonPermanent, errBoom)
	}},
	{"release", func(q *bolt.Queue, l *pawl.Lease) error { return q.Release(background, l) }},
	{"snooze", func(q *bolt.Queue, l *pawl.Lease) error { return q.Snooze(background, l, 1000*time.Hour) }},
}

// settle ends the lease that is held first by the verb of that number. A lease that could not
// be settled is held no more: the next process finds it.
func (u *user) settle(verb int) error {
	l := u.held[0]
	u.held = u.held[1:]
	v := verbs[verb]
	return u.say(v.name, []pawl.ID{l.ID}, func() error { return v.do(u.q, l) })
}

// step does something, mostly what fits to how many leases are held.
func (u *user) step() (err error) {
	switch n := u.rand.IntN(8); {
	case len(u.held) > 0 && n < 5:
		verb := u.rand.IntN(len(verbs) + 3)
		if verb >= len(verbs) {
			verb = 0 // an ack
		}
		letter := u.held[0].ID
		if err = u.settle(verb); err == nil && verbs[verb].name == "abandon" {
			switch u.rand.IntN(3) {
			case 0:
				err = u.say("retry", []pawl.ID{letter}, func() error { return u.q.Retry(background, letter, true) })
			case 1:
				err = u.say("delete", []pawl.ID{letter}, func() error { return u.q.Delete(background, letter) })
			}
		}
	case n == 5 || n == 6:
		err = u.fetch(1 + u.rand.IntN(4))
	case n == 7:
		err = u.enqueue(2+u.rand.IntN(3), 0)
	default:
		err = u.enqueue(1, 0)
	}
	return err
}
