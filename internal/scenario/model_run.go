package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

var errPlanned = errors.New("planned")

// place identifies a function: a run, one of its rounds, and a scope.
type place struct {
	run    string
	round  int
	scope  string
	counts map[string]int
	*execution
}

// step returns the identity of the next call of a name, as [workflow.Entry.Step] writes it.
func (p *place) step(name string) string {
	p.counts[name]++
	step := p.scope + name
	if n := p.counts[name]; n > 1 {
		step += "#" + strconv.Itoa(n)
	}
	return step
}

// branch returns the place of a branch.
func (p *place) branch(name string) *place {
	return &place{p.run, p.round, p.step(name) + "/", make(map[string]int), p.execution}
}

// flow is the flow of all programs.
func (o *oracle) flow() (f *workflow.Flow[program, int]) {
	return workflow.Define("program", func(r *workflow.Run, p program) (int, error) {
		at := &place{r.ID(), p.Round, "", make(map[string]int), o.began(r.ID())}
		at.step("total")
		at.total = workflow.Share(r, "total", 1)
		v, err := o.play(r, o.program, at, p.Nodes, p.Careless)
		if p.Postlude {
			_, late := o.call(r, o.program, at, node{Kind: "step", Name: "postlude", Value: 1})
			err = errors.Join(err, late)
		}
		switch {
		case err != nil:
		case p.Fails:
			err = errPlanned
		case p.Round < p.Rounds:
			p.Round++
			err = workflow.Restart(r, p)
		}
		o.ended(at.execution, v, err)
		return v, err
	})
}

// play makes the calls of a function.
func (o *oracle) play(r *workflow.Run, f *workflow.Flow[program, int], at *place, nodes []node, careless bool) (sum int, err error) {
	for _, n := range nodes {
		v, failed := o.call(r, f, at, n)
		switch {
		case failed == nil:
			sum = (31*sum + v) % 1_000_003
		case careless:
			err = errors.Join(err, failed)
		case n.Heeds || !own(failed):
			return 0, failed
		default:
			sum = (31*sum + 7) % 1_000_003
		}
	}
	return sum, err
}

// own reports whether a function may handle an error as it likes.
func own(err error) bool {
	for _, other := range []error{workflow.ErrSuspended, workflow.ErrCancelled, workflow.ErrTerminated, workflow.ErrAbandoned} {
		if errors.Is(err, other) {
			return false
		}
	}
	var failed *workflow.StepError
	return errors.As(err, &failed) || errors.Is(err, workflow.ErrTimeout) || errors.Is(err, errPlanned)
}

// call makes one call and reports its result to the oracle.
func (o *oracle) call(r *workflow.Run, f *workflow.Flow[program, int], at *place, n node) (v int, err error) {
	if n.Kind == "all" || n.Kind == "race" {
		return o.fork(r, f, at, n)
	}
	if n.Kind == "undo" {
		o.undo(r, at, n)
		return 0, nil
	}
	if n.Kind == "publish" {
		return 0, workflow.Publish(r, n.Name, n.Value)
	}
	if n.Kind == "shared" {
		return o.shared(r, at, n)
	}
	id := identity{at.run, at.round, at.step(n.Name)}
	begun := o.calls(id)
	options := []workflow.StepOption{workflow.MaxRetries(3), workflow.Backoff(pawl.Fixed(max(n.Wait, 0)))}
	if n.Once {
		options = append(options, workflow.AtMostOnce())
	}
	switch n.Kind {
	case "step":
		v, err = workflow.Step(r, n.Name, func(ctx context.Context) (int, error) { return o.attempt(ctx, id, n) }, options...)
	case "tx":
		v, err = workflow.StepTx(r, n.Name, func(tx Tx) (int, error) { return o.inTransaction(tx, id, n) }, options...)
	case "sleep":
		if err = workflow.Sleep(r, n.Name, n.Wait); err == nil {
			o.waited(id, begun, n.Wait)
		}
	case "wait":
		d := n.Wait
		if d < 0 {
			d = workflow.Forever
		}
		v, err = workflow.DefineSignal[int](n.Name).Wait(r, d)
		if errors.Is(err, workflow.ErrTimeout) {
			o.waited(id, begun, d)
		}
	case "version":
		v, err = workflow.Version(r, n.Name, 0, n.Value)
	case "child":
		v, err = workflow.Call(r, n.Name, f, program{Nodes: n.Parts[0], Fails: n.Value%5 == 0})
	}
	o.received(id, v, err)
	return v, err
}

// shared changes the value that all branches of the run share, perhaps once it has a value, and has a step remember
// what it was. The journal keeps the order of what was seen.
func (o *oracle) shared(r *workflow.Run, at *place, n node) (v int, err error) {
	next := func(total *int) { v, *total = *total, (3**total+n.Value)%1_000_003 }
	if n.Value%2 == 0 {
		at.step("total")
		err = at.total.Change(r, next)
	} else {
		at.step(n.Name)
		err = at.total.Wait(r, n.Name, func(total *int) bool { next(total); return v > 0 })
	}
	if err != nil {
		return 0, err
	}
	seen, err := workflow.Step(r, "see "+n.Name, func(context.Context) (int, error) { return v, nil })
	if at.step("see " + n.Name); err == nil && seen != v {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.complain("%s saw a total of %d, and it is %d now", at.scope+n.Name, seen, v)
	}
	return seen, err
}

// attempt is one attempt of a step.
func (o *oracle) attempt(ctx context.Context, id identity, n node) (int, error) {
	attempt := o.attempted(id, n)
	if n.Slow > 0 {
		var ended <-chan struct{}
		if !n.Deaf {
			ended = ctx.Done()
		}
		select {
		case <-time.After(n.Slow):
		case <-ended:
			return 0, ctx.Err()
		}
	}
	if n.Fails < 0 || attempt <= n.Fails {
		return 0, fmt.Errorf("attempt %d: %w", attempt, errPlanned)
	}
	return n.Value, nil
}

func (o *oracle) inTransaction(tx Tx, id identity, n node) (int, error) {
	if _, err := tx.Count(id.String()); err != nil {
		return 0, err
	}
	if attempt := o.attempted(id, n); n.Fails < 0 || attempt <= n.Fails {
		return 0, fmt.Errorf("attempt %d: %w", attempt, errPlanned)
	}
	return n.Value, nil
}

func (o *oracle) undo(r *workflow.Run, at *place, n node) {
	id := identity{at.run, at.round, "undo " + at.step(n.Name)}
	o.named(at.execution, id)
	r.Undo(n.Name, func(ctx context.Context) error {
		_, err := o.attempt(ctx, id, n)
		return err
	}, workflow.MaxRetries(3), workflow.Backoff(pawl.Fixed(n.Wait)))
}

// fork runs branches, for all of their results or for the first.
func (o *oracle) fork(r *workflow.Run, f *workflow.Flow[program, int], at *place, n node) (int, error) {
	var branches []*workflow.Branch[int]
	var places []*place
	for _, nodes := range n.Parts {
		b := at.branch(n.Name)
		places = append(places, b)
		branches = append(branches, workflow.Go(r, n.Name, func(r *workflow.Run) (int, error) { return o.play(r, f, b, nodes, false) }))
	}
	if n.Kind == "all" {
		sum := 0
		all, err := workflow.All(r, branches...)
		for i, v := range all {
			sum += (i + 1) * v
		}
		o.received(identity{at.run, at.round, places[0].scope}, sum, err)
		return sum, err
	}
	id := identity{at.run, at.round, at.step(n.Name)}
	won, v, err := workflow.Race(r, n.Name, branches...)
	o.gaveBack(r.Run(), at.run, at.round)
	if err == nil || own(err) {
		o.received(id, won, nil)
	}
	if err == nil && n.Value%2 == 0 { // wait for the losers too
		for i, b := range branches {
			if i == won {
				continue
			}
			lost, err := b.Wait(r)
			if o.received(identity{at.run, at.round, places[i].scope}, lost, err); err != nil && !own(err) && !errors.Is(err, workflow.ErrAbandoned) {
				return 0, err
			}
		}
	}
	return 1000*won + v, err
}
