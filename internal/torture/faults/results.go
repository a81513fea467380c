package faults

import (
	"context"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/torture/harness"
	"github.com/gopawl/pawl/internal/torture/oracle"
)

// Results kills a run of jobs with results at each of its writes. Consecutive seeds try all.
var Results = &harness.Family{
	Name:  "results",
	Goals: "R2",
	Method: "SIGKILL at each write and sync of a run that acks jobs with results, and amid each write; " +
		"a completed job has its entire result, and no other job has one",
	Unit: "kills",
	PR:   killsOfResults, Nightly: 20_000, Share: 15, Parallel: 4,
	Missing: missingSupervision,
	Prepare: func(env *harness.Env) (func(*harness.Try) error, error) {
		all, err := killsAtWrites(env.Ctx, resultScript)
		return func(t *harness.Try) error { return faulty(t, resultScript, pick(all, t.Seed)) }, err
	},
}

// resultScript is the run of [Results], and killsOfResults an upper bound of its kills.
var resultScript = scripted{"faults-results", 1}

const killsOfResults = 600

func init() { harness.Role("faults-results", resultRole) }

// killsAtWrites returns a kill before each write and sync of a run, and one within each
// write.
func killsAtWrites(ctx context.Context, s scripted) (all []at, err error) {
	every, err := everyFault(ctx, s)
	for _, a := range every {
		write := a.kind == "pwrite64" || a.kind == "write"
		if a.kill && (write || isSync(a.call) || a.kind == "ftruncate") {
			all = append(all, a)
			if write {
				a.fault = fault{name: "killed when half of it is written", part: true, kill: true}
				all = append(all, a)
			}
		}
	}
	return all, err
}

// resultRole enqueues jobs with retention, and settles them. Most attempts succeed.
func resultRole(args harness.Args) error {
	defer harness.EndAfter(childTimeout)()
	s := &script{path: args[0], user: newUser(args.Uint(1))}
	retained := func(e *pawl.Envelope) bool { return e.Retain > 0 && e.Delay == 0 }
	s.open()
	for range resultRounds {
		s.try(func() error { return s.enqueueSome(1+s.rand.IntN(6), 0, retained) })
		s.try(func() error { return s.fetch(6) })
		for len(s.held) > 0 {
			if s.rand.IntN(4) == 0 {
				s.try(func() error { return s.settle(oracle.AnyVerb(s.rand)) })
			} else {
				s.try(s.ackAll)
			}
		}
	}
	s.close()
	return nil
}

// resultRounds is the number of rounds of the run.
const resultRounds = 12

// ackAll acks all leases that it holds, in one commit.
func (s *script) ackAll() error {
	acks, ids := oracle.Acks(s.held), make([]pawl.ID, len(s.held))
	for i, l := range s.held {
		ids[i] = l.ID
	}
	s.held = nil
	return s.Do(background, "ack", ids, func() error { return s.Queue.Settle(background, acks...) })
}
