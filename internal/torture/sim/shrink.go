package sim

import (
	"slices"
	"time"
)

// Shrink makes a case smaller for as long as it still fails: it leaves out runs of steps,
// then single ones, then jobs, and then whatever a step or a job need not say.
func Shrink(c *Case, fails func(*Case) bool) *Case {
	s := &shrinking{c, fails}
	for before := -1; before != s.size(); {
		before = s.size()
		for n := len(s.Ops) / 2; n > 0; n /= 2 {
			for at := 0; at+n <= len(s.Ops); {
				if !s.try(func(c *Case) { c.Ops = slices.Delete(c.Ops, at, at+n) }) {
					at += n
				}
			}
		}
		for i := range s.Ops {
			s.op(i)
		}
	}
	return s.Case
}

// shrinking is a case that fails.
type shrinking struct {
	*Case
	fails func(*Case) bool
}

// try keeps a change if the case still fails with it.
func (s *shrinking) try(change func(*Case)) bool {
	c := s.clone()
	if change(c); !s.fails(c) {
		return false
	}
	s.Case = c
	return true
}

// clone copies what try may change.
func (c *Case) clone() *Case {
	own := *c
	own.Ops = slices.Clone(c.Ops)
	for i := range own.Ops {
		op := &own.Ops[i]
		op.Beside, op.Jobs = slices.Clone(op.Beside), slices.Clone(op.Jobs)
		for j := range op.Jobs {
			op.Jobs[j].Runs = slices.Clone(op.Jobs[j].Runs)
		}
		if op.Crew != nil {
			crew := *op.Crew
			op.Crew = &crew
		}
	}
	return &own
}

// size counts all that a case says.
func (c *Case) size() (n int) {
	for _, op := range c.Ops {
		n += 1 + len(op.Beside) + said(op.For != 0) + said(op.N > 1)
		for _, j := range op.Jobs {
			n += 1 + len(j.Runs) + said(j.Priority != 0) + said(j.Delay != 0) + said(j.Deadline != 0) + said(j.Retries != 0) + said(j.Timeout != 0) +
				said(j.Retain != 0) + said(j.Unique != "") + said(j.Effect != "") + said(j.TTL != 0) + said(j.Size != 0)
			for _, r := range j.Runs {
				n += said(r.Take != 0) + said(r.Deaf) + said(r.Do != succeeds)
			}
		}
		if op.Crew != nil {
			n += op.Crew.Concurrency + len(op.Crew.Weights) + said(op.Crew.RetryShare != 0) + said(op.Crew.Timeout != 0) + said(op.Crew.Backoff != 0)
		}
	}
	return n
}

func said(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// op makes one step simpler.
func (s *shrinking) op(i int) {
	for n := 0; n < len(s.Ops[i].Beside); {
		if !s.try(func(c *Case) { c.Ops[i].Beside = slices.Delete(c.Ops[i].Beside, n, n+1) }) {
			n++
		}
	}
	for n := 0; n < len(s.Ops[i].Jobs); {
		if !s.try(func(c *Case) { c.Ops[i].Jobs = slices.Delete(c.Ops[i].Jobs, n, n+1) }) {
			s.job(i, n)
			n++
		}
	}
	if s.Ops[i].N > 1 {
		s.try(func(c *Case) { c.Ops[i].N = 1 })
	}
	if d := s.Ops[i].For; d > time.Second && d%time.Second != 0 {
		s.try(func(c *Case) { c.Ops[i].For = d.Round(time.Second) })
	}
	if s.Ops[i].Crew == nil {
		return
	}
	for _, change := range []func(*Crew){
		func(c *Crew) { c.Weights = nil }, func(c *Crew) { c.RetryShare = 0 }, func(c *Crew) { c.Timeout = 0 },
		func(c *Crew) { c.Backoff = 0 }, func(c *Crew) { c.Concurrency = 1 }, func(c *Crew) { c.Kinds, c.Queues = kindNames, queueNames },
	} {
		s.simpler(func(c *Case) { change(c.Ops[i].Crew) })
	}
}

// job makes one job simpler.
func (s *shrinking) job(i, n int) {
	for _, change := range []func(*Job){
		func(j *Job) { j.Unique, j.Reject = "", false }, func(j *Job) { j.Effect, j.TTL = "", 0 }, func(j *Job) { j.TTL = 0 },
		func(j *Job) { j.Retain = 0 }, func(j *Job) { j.Timeout = 0 }, func(j *Job) { j.Deadline = 0 }, func(j *Job) { j.Delay = 0 },
		func(j *Job) { j.Size = 0 }, func(j *Job) { j.Priority = 0 }, func(j *Job) { j.Retries = 0 }, func(j *Job) { j.Runs = nil },
		func(j *Job) { j.Runs = j.Runs[:min(1, len(j.Runs))] },
	} {
		s.simpler(func(c *Case) { change(&c.Ops[i].Jobs[n]) })
	}
	for r := range s.Ops[i].Jobs[n].Runs {
		for _, change := range []func(*Run){func(r *Run) { *r = Run{Do: succeeds} }, func(r *Run) { r.Take = 0 }, func(r *Run) { r.Deaf = false }} {
			s.simpler(func(c *Case) { change(&c.Ops[i].Jobs[n].Runs[r]) })
		}
	}
}

// simpler is try for a change that may change nothing.
func (s *shrinking) simpler(change func(*Case)) {
	c := s.clone()
	if change(c); c.size() < s.size() {
		s.try(change)
	}
}
