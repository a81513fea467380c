package queuetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	jobgroup "github.com/gopawl/pawl/group"
)

func inGroup(name string) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Group = name }
}

// walkGroups are the groups of random walks. They are never closed.
var walkGroups = [...]string{"g1", "g2"}

func (f *fixture) makeWalkGroups() {
	f.Helper()
	for _, name := range walkGroups {
		f.makeGroup(jobgroup.Group{Name: name})
	}
}

// grouping is a queue with groups.
type grouping interface {
	jobgroup.Queue
	jobgroup.Members
}

func (f *fixture) grouping() grouping { return able[grouping](f) }

func (f *fixture) makeGroup(g jobgroup.Group) {
	f.Helper()
	f.ok(jobgroup.Make(f.Context(), f.grouping(), g), "make group "+g.Name)
}

func (f *fixture) closeGroup(name string) {
	f.Helper()
	f.ok(jobgroup.Close(f.Context(), f.grouping(), name), "close group "+name)
}

func (f *fixture) group(name string) jobgroup.Status {
	f.Helper()
	s, err := jobgroup.Get(f.Context(), f.grouping(), name)
	f.ok(err, "get group "+name)
	return s
}

// groupIs requires counts of a group: "total pending succeeded dead removed".
func (f *fixture) groupIs(name, want, when string) {
	f.Helper()
	s := f.group(name)
	equal(f, fmt.Sprint(s.Total, s.Pending, s.Succeeded, s.Dead, s.Removed), want, when+": members in all, pending, succeeded, dead, removed")
}

// callbackKinds are the kinds of the callbacks of the cases.
const (
	onDone    = "done"
	onSuccess = "success"
)

// withCallbacks is a group with both callbacks, on a queue of their own.
func withCallbacks(name string) jobgroup.Group {
	return jobgroup.Group{
		Name:    name,
		Done:    &pawl.Envelope{Kind: onDone, Queue: "callbacks", Payload: []byte(name)},
		Success: &pawl.Envelope{Kind: onSuccess, Queue: "callbacks", Payload: []byte(name)},
	}
}

// callbacksAre requires which callbacks of a group were enqueued, each once.
func (f *fixture) callbacksAre(name string, done, success bool, when string) {
	f.Helper()
	s := f.group(name)
	for _, c := range []struct {
		kind string
		is   jobgroup.Callback
		want bool
	}{{onDone, s.Done, done}, {onSuccess, s.Success, success}} {
		jobs := f.list(pawl.Filter{Kind: c.kind})
		jobs = slices.DeleteFunc(jobs, func(e *pawl.Envelope) bool { return string(e.Payload) != name })
		equal(f, c.is.Enqueued, c.want, when+": the callback "+c.kind+" is enqueued")
		if !c.want {
			equal(f, len(jobs), 0, when+": jobs of kind "+c.kind)
			continue
		}
		equal(f, len(jobs), 1, when+": jobs of kind "+c.kind)
		equal(f, jobs[0].ID, c.is.ID, when+": ID of the callback")
	}
}

// memberEnds are the ways in which a member ends, with the counts of its group then.
var memberEnds = []struct {
	name    string
	prepare func(e *pawl.Envelope)
	end     func(f *fixture, id pawl.ID)
	counts  string
}{
	{"an ack", kept(0), func(f *fixture, _ pawl.ID) { f.ack(f.lease()) }, "1 0 1 0 0"},
	{"an ack with a retention", kept(time.Hour), func(f *fixture, _ pawl.ID) { f.ack(f.lease()) }, "1 0 1 0 0"},
	{"an abandon", kept(0), func(f *fixture, _ pawl.ID) { f.abandon(f.lease()) }, "1 0 0 1 0"},
	{"a cancellation while it waits", kept(0), func(f *fixture, id pawl.ID) { f.cancel(id) }, "1 0 0 1 0"},
	{"a cancellation while it runs", kept(0), func(f *fixture, id pawl.ID) {
		l := f.lease()
		f.cancel(id)
		f.groupIs("g", "1 1 0 0 0", "while a cancelled member runs")
		f.nack(l, 0)
	}, "1 0 0 1 0"},
	{"its deadline", within(time.Minute), func(f *fixture, _ pawl.ID) { f.pass(time.Minute) }, "1 0 0 1 0"},
	{"its deadline before it came", func(e *pawl.Envelope) { e.Deadline = time.Now().Add(-time.Second) }, func(*fixture, pawl.ID) {}, "1 0 0 1 0"},
	{"its crashes", kept(0), func(f *fixture, _ pawl.ID) {
		for range 5 {
			f.expire(f.lease())
		}
	}, "1 0 0 1 0"},
	{"its effect, which had taken place", effect("x"), func(f *fixture, id pawl.ID) {
		f.ack(f.lease())
		second := f.add(inGroup("g"), effect("x"))
		equal(f, len(f.fetch(1)), 0, "jobs to fetch")
		equal(f, f.job(second.ID) == nil, true, "the second job is gone")
	}, "2 0 2 0 0"},
	{"a transfer to a job that is no member", kept(0), func(f *fixture, id pawl.ID) {
		f.abandon(f.lease())
		f.ok(f.transferer().Transfer(f.Context(), &pawl.Envelope{ID: id, Kind: "k", Queue: "other"}, nil), "transfer")
	}, "1 0 0 0 1"},
	{"a deletion after its death", kept(0), func(f *fixture, id pawl.ID) {
		f.abandon(f.lease())
		f.remove(id)
	}, "1 0 0 0 1"},
}

func groupTests() []test {
	tests := []test{
		newTest("a group",
			"A group counts its members in the transition that moves them. The last end of a closed group enqueues its callbacks.", func(f *fixture) {
				f.makeGroup(withCallbacks("g"))
				f.makeGroup(withCallbacks("other"))
				for range 3 {
					f.add(inGroup("g"))
				}
				f.add(func(e *pawl.Envelope) { e.Queue = "none" })
				f.groupIs("g", "3 3 0 0 0", "after the enqueue")
				f.closeGroup("g")
				f.callbacksAre("g", false, false, "closed")
				f.ack(f.fetch(1)[0])
				f.nack(f.fetch(1)[0], 0)
				f.release(f.fetch(1)[0])
				f.snooze(f.fetch(1)[0], 0)
				f.groupIs("g", "3 2 1 0 0", "after an ack")
				f.callbacksAre("g", false, false, "while members are pending")
				f.acks(f.leases(2))
				f.groupIs("g", "3 0 3 0 0", "at the end")
				f.callbacksAre("g", true, true, "at the end")
				equal(f, f.group("g").Ended.Equal(time.Now()), true, "the group ended now")
				f.groupIs("other", "0 0 0 0 0", "the other group")
				f.acks(f.leases(2, "callbacks"))
			}),
		newTest("not closed", "A group that is not closed enqueues no callback, though no member is pending.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			f.add(inGroup("g"))
			f.ack(f.lease())
			f.callbacksAre("g", false, false, "before Close")
			f.add(inGroup("g"))
			f.ack(f.lease())
			f.closeGroup("g")
			f.callbacksAre("g", true, true, "after Close")
			f.closeGroup("g")
			f.callbacksAre("g", true, true, "after another Close")
		}),
		newTest("empty", "Close enqueues the callbacks of a group without members.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			f.closeGroup("g")
			f.callbacksAre("g", true, true, "after Close")
		}),
		newTest("wakes a fetch", "A fetch that waits gets the callback at once.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			f.add(inGroup("g"))
			f.closeGroup("g")
			leases, call := f.fetching(f.Context(), pawl.Request{Queues: []string{"callbacks"}, Max: 1})
			f.waits(call, "the fetch")
			f.ack(f.lease())
			f.gets(call, leases, f.group("g").Done.ID, "the callback")
		}),
		newTest("late members", "A member may add members while it runs, also to a closed group.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			f.add(inGroup("g"))
			f.closeGroup("g")
			l := f.lease()
			f.add(inGroup("g"))
			f.ack(l)
			f.callbacksAre("g", false, false, "while the late member is pending")
			f.ack(f.lease())
			f.callbacksAre("g", true, true, "at the end")
			f.is(f.try(&pawl.Envelope{Kind: "k", Group: "g"}), pawl.ErrConflict, "a member after the end")
			f.groupIs("g", "2 0 2 0 0", "after the refusal")
		}),
		newTest("a retry after the end",
			"A dead member that is retried is pending again. No callback comes twice, and success comes when all have succeeded.", func(f *fixture) {
				f.makeGroup(withCallbacks("g"))
				id := f.add(inGroup("g")).ID
				f.add(inGroup("g"))
				f.closeGroup("g")
				f.abandon(f.fetch(1)[0])
				f.ack(f.lease())
				f.groupIs("g", "2 0 1 1 0", "with a dead member")
				f.callbacksAre("g", true, false, "with a dead member")
				f.retry(id, false)
				f.groupIs("g", "2 1 1 0 0", "after the retry")
				equal(f, f.group("g").Ended.IsZero(), true, "the group has not ended")
				f.abandon(f.lease())
				f.callbacksAre("g", true, false, "with a member that is dead again")
				f.retry(id, false)
				f.ack(f.lease())
				f.groupIs("g", "2 0 2 0 0", "after its success")
				f.callbacksAre("g", true, true, "after its success")
			}),
		newTest("a removed member", "A group with a member that was removed never has its success.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			id := f.add(inGroup("g")).ID
			f.closeGroup("g")
			f.abandon(f.lease())
			f.remove(id)
			f.groupIs("g", "1 0 0 0 1", "after the removal")
			f.callbacksAre("g", true, false, "after the removal")
		}),
		newTest("refused members", "A job of a group that does not exist, or whose name is bad, is refused, with its batch.", func(f *fixture) {
			f.makeGroup(jobgroup.Group{Name: "g"})
			f.is(f.try(&pawl.Envelope{Kind: "k", Group: "g"}, &pawl.Envelope{Kind: "k", Group: "none"}), pawl.ErrNotFound, "no such group")
			f.is(f.try(&pawl.Envelope{Kind: "k", Group: "a\x00b"}), pawl.ErrInvalid, "a NUL byte")
			f.is(f.try(&pawl.Envelope{Kind: "k", Group: string(make([]byte, 256))}), pawl.ErrInvalid, "a long name")
			f.groupIs("g", "0 0 0 0 0", "after the refusals")
			equal(f, len(f.list(pawl.Filter{})), 0, "jobs")
		}),
		newTest("refused groups", "Make refuses a name that exists, and a callback that no queue could store later.", func(f *fixture) {
			f.makeGroup(jobgroup.Group{Name: "g"})
			f.is(jobgroup.Make(f.Context(), f.grouping(), jobgroup.Group{Name: "g"}), pawl.ErrConflict, "a name that exists")
			f.is(jobgroup.Close(f.Context(), f.grouping(), "none"), pawl.ErrNotFound, "close no group")
			_, err := jobgroup.Get(f.Context(), f.grouping(), "none")
			f.is(err, pawl.ErrNotFound, "get no group")
			id := pawl.NewID(time.Now())
			for what, g := range map[string]jobgroup.Group{
				"no name":                {},
				"a negative retention":   {Name: "h", Retain: -1},
				"a callback of no kind":  {Name: "h", Done: &pawl.Envelope{}},
				"a large callback":       {Name: "h", Done: &pawl.Envelope{Kind: "k", Payload: make([]byte, pawl.MaxGroupCallback+1)}},
				"a delayed callback":     {Name: "h", Success: &pawl.Envelope{Kind: "k", Delay: 1}},
				"a unique callback":      {Name: "h", Success: &pawl.Envelope{Kind: "k", UniqueKey: "u"}},
				"a callback in a group":  {Name: "h", Success: &pawl.Envelope{Kind: "k", Group: "g"}},
				"two callbacks of an ID": {Name: "h", Done: &pawl.Envelope{Kind: "k", ID: id}, Success: &pawl.Envelope{Kind: "k", ID: id}},
			} {
				f.is(jobgroup.Make(f.Context(), f.grouping(), g), pawl.ErrInvalid, what)
			}
			list, err := jobgroup.List(f.Context(), f.grouping(), "", jobgroup.MaxListed)
			f.ok(err, "list")
			equal(f, len(list), 1, "groups")
		}),
		newTest("its retention", "A group is kept for its time after the end, and while it has dead members. Then its name is free.", func(f *fixture) {
			again := func() error {
				return jobgroup.Make(f.Context(), f.grouping(), jobgroup.Group{Name: "g", Retain: time.Hour})
			}
			f.ok(again(), "make")
			id := f.add(inGroup("g")).ID
			f.closeGroup("g")
			f.abandon(f.lease())
			f.pass(2 * time.Hour)
			f.is(again(), pawl.ErrConflict, "while a member is dead")
			f.remove(id)
			f.ok(again(), "once nothing is left of it")
			f.groupIs("g", "0 0 0 0 0", "the new group")
			f.closeGroup("g")
			f.pass(time.Hour - 1)
			f.is(again(), pawl.ErrConflict, "before its time")
			f.pass(1)
			f.makeGroup(jobgroup.Group{Name: "other"})
			_, err := jobgroup.Get(f.Context(), f.grouping(), "g")
			f.is(err, pawl.ErrNotFound, "a group whose time is over, after another one was made")
		}),
		newTest("a cancelled group", "Cancel ends all members that are pending, and the group with them.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			for range 3 {
				f.add(inGroup("g"))
			}
			other := f.add().ID
			f.closeGroup("g")
			f.ack(f.fetch(1)[0])
			l := f.fetch(1)[0]
			n, err := jobgroup.Cancel(f.Context(), f.grouping(), "g")
			f.ok(err, "cancel")
			equal(f, n, 2, "members cancelled")
			f.groupIs("g", "3 1 1 1 0", "while one runs")
			f.nack(l, 0)
			f.groupIs("g", "3 0 1 2 0", "at the end")
			f.callbacksAre("g", true, false, "at the end")
			equal(f, f.must(other).State, pawl.Ready, "state of a job in no group")
		}),
		newTest("a filter", "A filter of a group chooses its members.", func(f *fixture) {
			f.makeWalkGroups()
			f.add(inGroup(walkGroups[0]))
			f.add()
			id := f.add(inGroup(walkGroups[1])).ID
			jobs := f.list(pawl.Filter{Group: walkGroups[1]})
			equal(f, len(jobs) == 1 && jobs[0].ID == id, true, "the member is listed alone")
		}),
		newTest("a walk", "The counts equal a walk over the jobs after every commit, and each callback is enqueued exactly when it is due.", func(f *fixture) {
			for seed := range uint64(10) {
				f.fresh(Settings{})
				f.walkGroup(rand.New(rand.NewPCG(seed, 0)))
			}
		}),
		restartTest("over a restart", "A group survives a restart.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			f.add(inGroup("g"))
			f.closeGroup("g")
			f.restart()
			f.groupIs("g", "1 1 0 0 0", "after the restart")
			f.ack(f.lease())
			f.restart()
			f.callbacksAre("g", true, true, "after another restart")
		}),
		aloneTest("a crash of the last member", "The open that finds the last member dead of its crashes enqueues the callback.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			f.add(inGroup("g"))
			f.closeGroup("g")
			for range 5 {
				f.lease()
				f.restart()
			}
			f.groupIs("g", "1 0 0 1 0", "at the end")
			f.callbacksAre("g", true, false, "at the end")
		}),
	}
	for _, by := range memberEnds {
		tests = append(tests, newTest("an end by "+by.name, "Each end of a member counts, and the last one enqueues the callback.", func(f *fixture) {
			f.makeGroup(withCallbacks("g"))
			id := f.add(inGroup("g"), by.prepare).ID
			by.end(f, id)
			f.groupIs("g", by.counts, "at the end")
			f.closeGroup("g")
			f.callbacksAre("g", true, by.counts[len(by.counts)-3:] == "0 0", "at the end")
		}))
	}
	return tests
}
