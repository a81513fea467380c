package queuetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	jobgroup "github.com/gopawl/pawl/group"
)

// lastEnds are the ways in which the last member of a group ends while a drain waits. Each makes the member, and returns
// what ends it; nil if the drain itself does.
var lastEnds = []struct {
	name    string
	dead    bool
	delayed bool // the member is delayed, so only WaitFinished waits for it
	member  func(f *fixture, in func(*pawl.Envelope), n int) (end func())
}{
	{"an ack", false, false, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		f.add(in)
		l := f.lease()
		return func() { f.ack(l) }
	}},
	{"an ack of several", false, false, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		f.add(in)
		f.add(in)
		leases := f.leases(2)
		return func() { f.acks(leases) }
	}},
	{"an ack in a mutation", false, false, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		f.add(in)
		l := f.lease()
		return func() { f.mutate(mutation{check: func(ops driver.Ops) error { return ops.Ack(l) }}) }
	}},
	{"an effect that takes place", false, false, func(f *fixture, in func(*pawl.Envelope), n int) func() {
		once := effect(fmt.Sprint(n))
		f.add(in, once)
		l := f.lease()
		f.add(in, once)
		return func() { f.ack(l) }
	}},
	{"an effect that has taken place", false, false, func(f *fixture, in func(*pawl.Envelope), n int) func() {
		once := effect(fmt.Sprint(n))
		f.add(once)
		f.ack(f.lease())
		f.add(in, once)
		return nil
	}},
	{"an abandon", true, false, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		f.add(in)
		l := f.lease()
		return func() { f.abandon(l) }
	}},
	{"a cancellation while it runs", true, false, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		f.add(in)
		l := f.lease()
		f.cancel(l.ID)
		return func() { f.nack(l, 0) }
	}},
	{"a cancellation while it waits", true, true, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		id := f.add(in, after(time.Hour)).ID
		return func() { f.cancel(id) }
	}},
	{"its deadline", true, true, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		f.add(in, after(time.Hour), within(time.Minute))
		return func() { f.pass(time.Minute) }
	}},
	{"a crash", true, false, func(f *fixture, in func(*pawl.Envelope), _ int) func() {
		f.add(in)
		l := f.lease()
		return func() { f.expire(l) }
	}},
}

// drains are fetches that wait for the end of the work, and where the callbacks of a group come from there.
var drains = []struct {
	wait        pawl.Wait
	kinds, seen bool // the fetch names kinds; the callbacks have had jobs before
	apart       bool // the callbacks have a queue of their own
}{
	{wait: pawl.WaitFinished, apart: true},
	{wait: pawl.WaitFinished, apart: true, kinds: true},
	{wait: pawl.WaitFinished, apart: true, kinds: true, seen: true},
	{wait: pawl.WaitFinished, kinds: true},
	{wait: pawl.WaitFinished},
	{wait: pawl.WaitDrained, apart: true},
	{wait: pawl.WaitDrained, kinds: true},
}

func drainTests() (tests []test) {
	for _, by := range lastEnds {
		tests = append(tests, newTest("a drain and "+by.name,
			"A fetch that waits for the end of the work gets the callback of a group whose last member ends meanwhile.", func(f *fixture) {
				for n, d := range drains {
					if by.delayed && d.wait == pawl.WaitDrained {
						continue
					}
					of := n // the names of the callbacks
					if d.seen {
						of--
					}
					g, queues := jobgroup.Group{Name: fmt.Sprint(n)}, []string{"default"}
					g.Done, g.Success = &pawl.Envelope{Kind: fmt.Sprint("done", of)}, &pawl.Envelope{Kind: fmt.Sprint("success", of)}
					if d.apart {
						queues = append(queues, fmt.Sprint("callbacks", of))
						g.Done.Queue, g.Success.Queue = queues[1], queues[1]
					}
					r := pawl.Request{Queues: queues, Max: 1, Ahead: 1, Wait: d.wait}
					if d.kinds {
						r.Kinds = []string{"k", g.Done.Kind, g.Success.Kind}
					}
					f.makeGroup(g)
					end := by.member(f, inGroup(g.Name), n)
					f.closeGroup(g.Name)
					want := g.Done.Kind
					if !by.dead {
						want += " " + g.Success.Kind
					}
					equal(f, f.drained(r, end), want, fmt.Sprintf("kinds of the callbacks of drain %d", n))
				}
			}).with(Settings{MaxCrashes: 1}))
	}
	return append(tests, newTest("a drain of other jobs",
		"A fetch that waits for the end of the work does not wait for a callback that it does not name.", func(f *fixture) {
			for n, r := range []pawl.Request{{}, {Queues: []string{"default", "callbacks"}, Kinds: []string{"k"}}} {
				g := withCallbacks(fmt.Sprint(n))
				f.makeGroup(g)
				f.add(inGroup(g.Name))
				f.closeGroup(g.Name)
				l := f.lease()
				r.Max, r.Wait = 1, pawl.WaitFinished
				_, call := f.fetching(f.patient(), r)
				f.waits(call, "while the last member runs")
				f.ack(l)
				f.ends(call, pawl.ErrEmpty, "the drain")
			}
		}))
}

// drained fetches and acks until no work is left, and returns the kinds of the jobs. End ends what the first fetch
// waits for; nil if it waits for nothing.
func (f *fixture) drained(r pawl.Request, end func()) string {
	f.Helper()
	first, call := f.fetching(f.patient(), r)
	if end != nil {
		f.waits(call, "while the last member has not ended")
		end()
	}
	f.ends(call, nil, "the drain")
	var kinds []string
	for leases := *first; len(leases) > 0; leases = f.request(r) {
		kinds = append(kinds, leases[0].Kind)
		f.ack(leases[0])
	}
	slices.Sort(kinds)
	return strings.Join(kinds, " ")
}
