package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// raceResult is what a journal records of a race. A [Branch.Cancel] is a race that all branches lose. An [AllOrNone]
// is a race that the first failure wins.
type raceResult struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Winner int      // -1 for none
	Losers []string // scopes of the losers

	// Unheard are the entries in which losers waited, or were about to wait, for a child. The child may still end and
	// write its result to the entry, but the loser received something else.
	Unheard []uint32

	Branches []string // scopes of all branches, in the order of the code

	losing map[string]bool // Losers as a set, see lost
}

// lost reports whether a scope is a loser, or a branch below a loser. Losers is complete by the
// first call.
func (w *raceResult) lost(scope string) bool {
	if w.losing == nil {
		w.losing = make(map[string]bool, len(w.Losers))
		for _, name := range w.Losers {
			w.losing[name] = true
		}
	}
	for {
		if w.losing[scope] {
			return true
		}
		end := strings.LastIndexByte(scope, '/')
		if end < 0 {
			return false
		}
		scope = scope[:end]
	}
}

// unheard reports whether an entry is one of Unheard. A number under which nothing was written may belong to another
// call now, so unheard checks more than the number.
func (w *raceResult) unheard(e *entry) bool {
	return e.Kind == KindChild && w.lost(e.Scope) && slices.Contains(w.Unheard, e.seq)
}

// Race waits until the first branch ends, with a result or an error, and returns its index and
// the result of its function. The journal remembers the winner. The other branches are
// abandoned: their current steps are interrupted, their calls return [ErrAbandoned], and the
// children they wait for are cancelled.
//
// The commit that decides the race gives back the signals that the losers have received but not used: they are unread
// again, in their order. A branch that gave back a signal has no result, since its Wait returns ErrAbandoned. A branch
// uses its signals when it makes a [Step], a [StepTx], or a [Call] after receiving them, or changes a [Shared] value.
// A scope that waited for the branch uses them in the same way. Used signals stay used even if the branch loses. So
// wait for a signal in the branch, and act on it after the race.
func Race[T any](r *Run, name string, branches ...*Branch[T]) (winner int, out T, err error) {
	if len(branches) == 0 {
		return 0, out, fmt.Errorf("race %q: there is no branch", name)
	}
	all := make([]*branch, len(branches))
	for i, b := range branches {
		all[i] = b.branch
	}
	if winner, err = r.s.race(name, all); err != nil {
		return winner, out, err
	}
	out, err = branches[winner].result()
	return winner, out, err
}

// race finds the branch that ended first, in the journal or now.
func (s *scope) race(name string, all []*branch) (winner int, err error) {
	c, err := s.begin(KindRace, name, nil)
	if err != nil {
		return 0, err
	}
	defer c.end()
	if c.known {
		won, err := c.decided(0, all)
		if err != nil {
			return 0, err
		}
		return won.Winner, s.await(func() bool { return s.follows(all[won.Winner]) })
	}
	won := raceResult{Winner: -1, Branches: namesOf(all)}
	err = s.await(func() bool {
		for i, b := range all {
			if won.Winner < 0 && b.finished && !b.losing {
				won.Winner = i
			}
		}
		return won.Winner >= 0
	})
	if err != nil {
		return 0, err
	}
	return won.Winner, c.decide(&won, all, "the branch that started it has lost a race")
}

// decided returns the journal's record of the call, and requires that the record is about these branches. The winner
// must be at least least.
func (c *call) decided(least int, all []*branch) (won raceResult, err error) {
	if err := c.outcome(func(b []byte) error { return driver.DecodePayload(b, &won) }); err != nil {
		return won, err
	}
	now := namesOf(all)
	if slices.Equal(won.Branches, now) && won.Winner >= least && won.Winner < len(all) {
		return won, nil
	}
	return won, c.x.mismatch(&DeterminismError{Want: fmt.Sprintf("%s of the branches %q", c.e, won.Branches),
		Got: fmt.Sprintf("%s of the branches %q", c.e, now), Seq: c.e.seq, Wrote: c.e.Build, Reason: "keep its branches, and their order"})
}

// decide ends the call: it abandons the branches that did not win. The reason is for their children.
func (c *call) decide(won *raceResult, all []*branch, reason string) error {
	x := c.x
	result, looks, err := x.abandon(c.scope, won, all)
	if err != nil {
		return err
	}
	c.e.finish(result, x.engine.now())
	return x.decide(c.e, won, all, looks, reason)
}

// namesOf returns the scopes of branches, "" for a branch that could not begin.
func namesOf(all []*branch) (names []string) {
	for _, b := range all {
		name := ""
		if b.scope != nil {
			name = b.scope.name
		}
		names = append(names, name)
	}
	return names
}

// abandon keeps the losers and the branches below them from making more calls. It returns the result of the
// race, with the calls that wait for a child, and the losers' unused signals. If the result is too large to
// store, it abandons nothing. Once the run is cancelled, no race can be won, since a loser may have
// received ErrCancelled. Before the race is decided, a scope that waits for a loser does not see its end.
func (x *execution) abandon(by *scope, won *raceResult, all []*branch) (result []byte, looks []*look, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.mayGoOn(by, KindRace); err != nil {
		return nil, nil, err
	}
	var winner *branch
	if won.Winner >= 0 {
		winner = all[won.Winner]
	}
	for _, b := range all {
		if b != winner && b.scope != nil {
			won.Losers = append(won.Losers, b.scope.name)
		}
	}
	for _, s := range x.scopes {
		if e := s.current; e != nil && e.Kind == KindChild && e.State == EntryPending && won.lost(s.name) {
			won.Unheard = append(won.Unheard, e.seq)
		}
	}
	for _, e := range x.calls { // including entries that their branches have not reached yet
		if e.State == EntryPending && won.lost(e.Scope) && !slices.Contains(won.Unheard, e.seq) {
			won.Unheard = append(won.Unheard, e.seq)
		}
	}
	if result, err = encode("the result of a race", won); err != nil {
		return nil, nil, err
	}
	if winner != nil {
		by.follows(winner)
	}
	for _, b := range all {
		b.losing = b != winner && b.scope != nil
	}
	for _, s := range x.scopes {
		if won.lost(s.name) {
			s.abandoned = true
			s.cancel(ErrAbandoned)
		}
	}
	x.wakeLocked(func(s *scope) bool { return !s.waits.branches && won.lost(s.name) })
	return result, x.unusedLooks(won), nil
}

// decide is the mutation that stores the winner, asks the children of the losers to end, and gives back the
// losers' signals. If a loser is about to start a child, the child either exists already or its mutation comes
// later and is refused, see startChild. The same holds for a signal that a loser is about to take, see takeSignal.
type decide struct {
	checkpoint
	x       *execution
	reason  string   // for the children
	unheard []uint32 // entries
	signals unread

	children cancelled
}

func (x *execution) decide(race *entry, won *raceResult, all []*branch, looks []*look, reason string) error {
	x.mu.Lock()
	d := &decide{checkpoint: checkpoint{x.lease, x.take(race)}, x: x, reason: reason, unheard: won.Unheard, signals: unread{run: x.run, looks: looks}}
	x.mu.Unlock()
	err := x.mutate(x.writing(), d, d.journal.bytes+(len(d.unheard)+len(looks))*requestBytes)
	defer func() { d.children.done(x.engine.hub, err) }()
	if err != nil {
		return x.stop(err)
	}
	x.mu.Lock()
	d.signals.done(x)
	for _, b := range all {
		b.losing = false
	}
	x.news++
	x.wakeLocked(func(s *scope) bool { return s.waits.branches || s.waits.ends || len(s.waits.signals) > 0 })
	x.mu.Unlock()
	return nil
}

// Check requires the lease and makes the children ready.
func (d *decide) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	var open []pawl.ID
	for _, seq := range d.unheard {
		e, err := r.entry(d.x.run, seq)
		if err != nil {
			return err
		}
		if e != nil && e.State == EntryPending {
			open = append(open, e.Child)
		}
	}
	if err := d.children.ask(d.x.engine, ops, open, d.reason); err != nil {
		return err
	}
	if err := d.signals.find(r, ops.Now()); err != nil {
		return err
	}
	return d.checkpoint.Check(ops)
}

// Apply writes the winner, the signals given back, and the requests to the children.
func (d *decide) Apply(tx driver.Writer) error {
	if err := d.checkpoint.Apply(tx); err != nil {
		return err
	}
	if err := d.signals.apply(rowsTo(tx)); err != nil {
		return err
	}
	return d.children.apply(rowsTo(tx))
}
