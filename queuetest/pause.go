package queuetest

import (
	"strings"
	"time"

	"github.com/gopawl/pawl"
)

func (f *fixture) pauser() Pauser { return able[Pauser](f) }

func (f *fixture) pause(queue string) {
	f.Helper()
	f.ok(f.pauser().Pause(f.Context(), queue), "pause")
}

func (f *fixture) resume(queue string) {
	f.Helper()
	f.ok(f.pauser().Resume(f.Context(), queue), "resume")
}

// whilePaused settles a job whose queue was paused after the job was leased.
func whilePaused(v verb) test {
	return newTest(v.name+" while it is paused", "A pause affects no settlement and no job that is already leased.", func(f *fixture) {
		f.add(on("q"))
		l := f.lease("q")
		f.pause("q")
		equal(f, len(f.extend(l)), 0, "leases lost by the pause")
		f.end(v, l)
		if e := f.job(l.ID); v.next != "" {
			equal(f, e.State, v.next, "state")
		} else {
			equal(f, e == nil, true, "the job is gone")
		}
		f.pass(snoozed)
		equal(f, len(f.fetch(9, "q")), 0, "jobs to fetch")
		f.resume("q")
		if v.next != "" && v.next != pawl.Dead {
			equal(f, f.lease("q").ID, l.ID, "job after the resume")
		}
	})
}

func pauseTests() (tests []test) {
	for _, v := range verbs {
		tests = append(tests, whilePaused(v))
	}
	return append(tests, []test{
		newTest("gives no job", "A paused queue gives no job to any fetch until it is resumed. Then its jobs come in their "+
			"usual order.", func(f *fixture) {
			f.add(on("q"), of("b"))
			f.pass(time.Second)
			f.pause("q")
			f.add(on("q"), of("c"))
			f.add(on("q"), of("a"), priority(1))
			f.pass(time.Hour)
			equal(f, len(f.fetch(9, "q")), 0, "jobs of a fetch")
			equal(f, len(f.request(pawl.Request{Queues: []string{"q"}, Max: 9, RetryShare: 0.5, Weights: weights{"q": 9}})), 0, "jobs of another")
			f.resume("q")
			equal(f, kinds(f.fetch(9, "q")), "abc", "jobs after the resume")
		}),
		newTest("the others go on",
			"A pause affects one queue. The others give their jobs, also to a fetch that names both.", func(f *fixture) {
				names := []string{"a", "ab", "a\x01", "a\xff", "b", pawl.DefaultQueue}
				f.fill(1, names...)
				f.pause("a")
				for _, name := range names[1:] {
					equal(f, kinds(f.fetch(9, "a", name)), name, "jobs")
				}
				f.resume("a")
				equal(f, kinds(f.fetch(9, names...)), "a", "jobs after the resume")
			}),
		newTest("a fetch that waits", "A waiting fetch continues to wait during a pause, and the resume wakes it.", func(f *fixture) {
			for _, early := range []bool{true, false} { // the fetch, or the pause
				if !early {
					f.pause("q")
				}
				leases, call := f.fetching(f.Context(), pawl.Request{Queues: []string{"q"}, Max: 9})
				f.waits(call, "while there is no job")
				if early {
					f.pause("q")
				}
				id := f.add(on("q")).ID
				f.pass(time.Hour)
				f.waits(call, "while its queue is paused")
				f.resume("q")
				f.ack(f.gets(call, leases, id, "fetch"))
			}
		}),
		newTest("a drain waits",
			"WaitDrained and WaitFinished wait for the jobs of a paused queue. If it has no jobs, they end.", func(f *fixture) {
				for _, wait := range []pawl.Wait{pawl.WaitDrained, pawl.WaitFinished} {
					f.pause("q")
					r := pawl.Request{Queues: []string{"q"}, Max: 9, Wait: wait}
					_, call := f.fetching(f.Context(), r)
					f.ends(call, pawl.ErrEmpty, waits[wait]+" without a job")
					f.add(on("q"))
					leases, call := f.fetching(f.Context(), r)
					f.waits(call, waits[wait]+" while a job is ready")
					f.resume("q")
					f.ends(call, nil, waits[wait])
					f.ack((*leases)[0])
				}
				f.add(on("q"))
				f.pause("q")
				equal(f, len(f.request(pawl.Request{Queues: []string{"q"}, Max: 1, Wait: pawl.WaitNot})), 0, "jobs of a fetch that does not wait")
			}),
		newTest("time goes on", "On a paused queue, jobs still become due, leases still expire, and deadlines still pass.", func(f *fixture) {
			delayed := f.add(on("q"), after(time.Minute)).ID
			late := f.add(on("q"), priority(-1), func(e *pawl.Envelope) { e.Deadline = time.Now().Add(time.Hour) }).ID
			crash := f.add(on("q"), priority(1)).ID
			f.leases(1, "q")
			f.pause("q")
			f.pass(time.Minute)
			equal(f, f.must(delayed).State, pawl.Ready, "state of the delayed job")
			equal(f, f.must(crash).State, pawl.Ready, "state of the suspect")
			equal(f, f.must(crash).Crashes, 1, "its crashes")
			f.pass(time.Hour)
			equal(f, f.must(late).State, pawl.Dead, "state of the job that is past its deadline")
			f.countsAre("q", pawl.Counts{Ready: 2, Dead: 1}, "all that")
		}),
		newTest("operators go on", "Jobs of a paused queue can be cancelled, retried, and deleted.", func(f *fixture) {
			id := f.held(pawl.Dead, on("q"))
			f.pause("q")
			f.retry(id, false)
			equal(f, f.must(id).State, pawl.Ready, "state after the retry")
			f.cancel(id)
			equal(f, f.must(id).State, pawl.Dead, "state after the cancel")
			f.remove(id)
			equal(f, f.job(id) == nil, true, "the job is gone")
		}),
		newTest("a queue that never had a job", "A queue can be paused before its first job, and is known from then on.", func(f *fixture) {
			f.pause("new")
			if f.config.Counts != nil {
				counts, known := f.counts()["new"]
				equal(f, known, true, "the queue is known")
				equal(f, counts, pawl.Counts{}, "its counts")
			}
			f.add(on("new"))
			equal(f, len(f.fetch(9, "new")), 0, "jobs to fetch")
			f.resume("new")
			f.lease("new")
		}),
		newTest("twice", "A second pause changes nothing: one resume ends both. Resume of a queue that is not paused does "+
			"nothing.", func(f *fixture) {
			f.resume("q")
			f.resume(pawl.DefaultQueue)
			f.add(on("q"))
			f.pause("q")
			f.pause("q")
			equal(f, len(f.fetch(9, "q")), 0, "jobs after the second pause")
			f.resume("q")
			f.lease("q")
			f.resume("q")
		}),
		restartTest("after a restart", "A pause is durable, and so is its end.", func(f *fixture) {
			f.pauser()
			f.fill(1, "a", "b")
			f.pause("a")
			f.pause("b")
			f.pause("never seen")
			f.resume("b")
			f.restart()
			equal(f, kinds(f.fetch(9, "a", "b")), "b", "jobs after the restart")
			f.fill(1, "never seen")
			equal(f, len(f.fetch(9, "a", "never seen")), 0, "jobs of the paused queues")
			f.resume("a")
			f.resume("never seen")
			f.restart()
			equal(f, len(f.fetch(9, "a", "never seen")), 2, "jobs after the resume and another restart")
		}),
		newTest("refused", "An invalid queue name gives ErrInvalid.", func(f *fixture) {
			for _, name := range []string{"", "a\x00b", strings.Repeat("a", pawl.MaxNameBytes+1)} {
				f.invalid(f.pauser().Pause(f.Context(), name), "pause")
				f.invalid(f.pauser().Resume(f.Context(), name), "resume")
			}
		}),
		newTest("not accepted",
			"A pause or resume whose context has ended returns ErrNotAccepted and changes nothing. After Close, both "+
				"return ErrClosed.", func(f *fixture) {
				p := f.pauser()
				ctx := f.ended()
				f.fill(2, "q")
				f.is(p.Pause(ctx, "q"), pawl.ErrNotAccepted, "pause")
				f.leases(1, "q")
				f.pause("q")
				f.is(p.Resume(ctx, "q"), pawl.ErrNotAccepted, "resume")
				equal(f, len(f.fetch(1, "q")), 0, "jobs to fetch")
				f.closed()
				f.is(p.Pause(f.Context(), "q"), pawl.ErrClosed, "pause")
				f.is(p.Resume(f.Context(), "q"), pawl.ErrClosed, "resume")
			}),
	}...)
}
