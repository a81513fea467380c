package queuetest

import (
	"context"
	"slices"
	"time"

	"github.com/gopawl/pawl"
)

// Explainer is a queue that says what keeps a job from running, and what its keys do.
type Explainer interface {
	// Why returns what keeps a job from running now, or pawl.ErrNotFound.
	Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error)

	// Key reads one key of a queue, or returns pawl.ErrNotFound.
	Key(ctx context.Context, queue, key string) (pawl.KeyStats, error)

	// Keys reads up to max keys of a queue with limits per key, after a key. Short keys come first.
	Keys(ctx context.Context, queue, after string, max int) ([]pawl.KeyStats, error)
}

// why returns what keeps a job from running, without a missing worker: an engine need not know it.
func (f *fixture) why(id pawl.ID) (all []pawl.Obstacle) {
	f.Helper()
	found, err := able[Explainer](f).Why(f.Context(), id)
	f.ok(err, "why")
	for _, o := range found {
		if o.What != pawl.ByNoWorker {
			all = append(all, o)
		}
	}
	return all
}

// obstructed requires the kinds of what keeps a job from running.
func (f *fixture) obstructed(id pawl.ID, when string, want ...pawl.ObstacleKind) []pawl.Obstacle {
	f.Helper()
	all := f.why(id)
	equal(f, len(all), len(want), "obstacles of "+when)
	for i, o := range all {
		equal(f, o.What, want[i], "obstacle of "+when)
		equal(f, o.Queue, pawl.DefaultQueue, "its queue")
	}
	return all
}

// keysAre requires the keys of the default queue.
func (f *fixture) keysAre(when string, want ...pawl.KeyStats) {
	f.Helper()
	q := able[Explainer](f)
	all, err := q.Keys(f.Context(), pawl.DefaultQueue, "", 9)
	f.ok(err, "list keys")
	equal(f, len(all), len(want), "keys "+when)
	for i, k := range all {
		w := want[i]
		equal(f, k.Key, w.Key, "key "+when)
		equal(f, k.Running, w.Running, "running jobs of "+k.Key+" "+when)
		equal(f, k.Ready, w.Ready, "ready jobs of "+k.Key+" "+when)
		equal(f, k.Blocked, w.Blocked, "blocked jobs of "+k.Key+" "+when)
		equal(f, k.Head, w.Head, "head of "+k.Key+" "+when)
		equal(f, k.Held, w.Held, "a dead job holds "+k.Key+" "+when)
		f.sameTime(k.Next, w.Next, "next start of "+k.Key+" "+when)
		f.sameTime(k.Rests, w.Rests, "rest of "+k.Key+" "+when)
		one, err := q.Key(f.Context(), pawl.DefaultQueue, k.Key)
		f.ok(err, "read a key")
		equal(f, len(one.Holders), k.Running, "holders of "+k.Key+" "+when)
		for _, id := range one.Waiting {
			equal(f, f.must(id).Key, k.Key, "key of a blocked job "+when)
			equal(f, f.must(id).State, pawl.Ready, "state of a blocked job "+when)
			equal(f, slices.Contains(one.Holders, id) || id == k.Head && one.Running == 0 && k.Blocked < k.Ready, false, "a job that may run is named as blocked "+when)
		}
		equal(f, len(one.Waiting), min(k.Blocked, pawl.MaxHolders), "blocked jobs of "+k.Key+" "+when)
		one.Holders, one.Waiting = nil, nil
		equal(f, one.Running+one.Ready+one.Blocked, k.Running+k.Ready+k.Blocked, "the key by itself "+when)
	}
}

func whyTests() []test {
	return []test{
		newTest("why, by state", "What keeps a job from running follows from its state: nothing keeps a ready job, a delayed one waits for its time, and "+
			"a leased, completed, or dead one does not run again by itself.", func(f *fixture) {
			able[Explainer](f)
			delayed := f.held(pawl.Delayed)
			f.sameTime(f.obstructed(delayed, "a delayed job", pawl.ByDelay)[0].Until, f.must(delayed).NotBefore, "its time")
			f.obstructed(f.held(pawl.Leased), "a leased job", pawl.IsRunning)
			dead := f.held(pawl.Dead)
			o := f.obstructed(dead, "a dead job", pawl.IsDead)[0]
			equal(f, o.Reason, f.must(dead).Death.Reason, "its reason")
			f.obstructed(f.held(pawl.Ready), "a ready job")
			_, err := able[Explainer](f).Why(f.Context(), pawl.NewID(time.Now()))
			f.is(err, pawl.ErrNotFound, "why, for a job that is not there")
		}),
		newTest("why, in a paused queue", "A paused queue keeps its jobs from running, besides what else does.", func(f *fixture) {
			able[Explainer](f)
			ready, delayed := f.held(pawl.Ready), f.held(pawl.Delayed)
			p := f.pauser()
			f.ok(p.Pause(f.Context(), pawl.DefaultQueue), "pause")
			f.obstructed(ready, "a ready job", pawl.ByPause)
			f.obstructed(delayed, "a delayed job", pawl.ByDelay, pawl.ByPause)
			f.ok(p.Resume(f.Context(), pawl.DefaultQueue), "resume")
			f.obstructed(ready, "a ready job")
		}),
		newTest("why, for an effect", "A job waits for a leased job with its idempotency key.", func(f *fixture) {
			able[Explainer](f)
			f.add(effect("e"))
			waits := f.add(effect("e")).ID
			l := f.lease()
			equal(f, f.obstructed(waits, "a job", pawl.ByEffect)[0].Holders[0], l.ID, "holder")
		}),
	}
}

// whyLimitTests are those of queues with limits.
func whyLimitTests() []test {
	full := pawl.Limits{Running: 2, RunningPerKey: 1}
	slow := pawl.Limits{Rate: pawl.Rate{Starts: 2, Per: time.Minute}, RatePerKey: pawl.Rate{Starts: 1, Per: time.Hour}}
	tests := []test{
		limitTest("why, at a limit", "A job waits for its key if the key is at its limit, and for its queue if the queue is. The obstacle names the jobs that run.",
			full, func(f *fixture) {
				ids := f.addKeys("aab")
				l := f.fetch(1)[0]
				equal(f, l.ID, ids[0], "leased job")
				o := f.obstructed(ids[1], "the second job", pawl.ByKey)[0]
				equal(f, o.Key, "a", "key")
				equal(f, o.Running, 1, "running jobs")
				equal(f, o.Limit, 1, "limit")
				equal(f, len(o.Holders), 1, "holders")
				equal(f, o.Holders[0], l.ID, "holder")
				f.obstructed(ids[2], "a job of another key")
				equal(f, len(f.fetch(9)), 1, "jobs of another fetch")
				f.obstructed(ids[1], "the second job of a full queue", pawl.ByQueue, pawl.ByKey)
				f.ack(l)
				f.obstructed(ids[1], "the second job after an ack")
			}),
		limitTest("why, at a rate", "A job waits for the rates of its key and its queue until the times at which they let the next job start.", slow, func(f *fixture) {
			ids := f.addKeys("aa")
			began := time.Now()
			f.ack(f.lease())
			all := f.obstructed(ids[1], "the second job", pawl.ByQueueRate, pawl.ByKeyRate)
			f.sameTime(all[0].Until, began.Add(30*time.Second), "next start of the queue")
			f.sameTime(all[1].Until, began.Add(time.Hour), "next start of the key")
			f.pass(time.Minute)
			f.obstructed(ids[1], "the second job, a minute later", pawl.ByKeyRate)
			f.pass(time.Hour)
			f.obstructed(ids[1], "the second job, an hour later")
		}),
		limitTest("keys", "A list of keys has those with ready and leased jobs, the short ones first, page by page. Keys of queues without limits per key are not counted.",
			full, func(f *fixture) {
				f.addKeys("bbba")
				f.add(key("aa"))
				f.add(on("other"), key("x"))
				f.fetch(9)
				f.keysAre("while two jobs run",
					pawl.KeyStats{Key: "a", Running: 1}, pawl.KeyStats{Key: "b", Running: 1, Ready: 2, Blocked: 2}, pawl.KeyStats{Key: "aa", Ready: 1})
				q := able[Explainer](f)
				page, err := q.Keys(f.Context(), pawl.DefaultQueue, "a", 1)
				f.ok(err, "list keys")
				equal(f, len(page), 1, "keys of a page of one")
				equal(f, page[0].Key, "b", "key after a")
				for _, queue := range []string{"other", "never"} {
					page, err = q.Keys(f.Context(), queue, "", 9)
					f.ok(err, "list keys")
					equal(f, len(page), 0, "keys of queue "+queue)
					_, err = q.Key(f.Context(), queue, "x")
					f.is(err, pawl.ErrNotFound, "read a key of queue "+queue)
				}
				_, err = q.Keys(f.Context(), pawl.DefaultQueue, "", 0)
				f.invalid(err, "list no keys")
			}),
		limitTest("keys with a rate", "A key is counted as long as its rate is used up, with the time of its next start.", slow, func(f *fixture) {
			f.addKeys("a")
			began := time.Now()
			f.ack(f.lease())
			f.keysAre("after a start", pawl.KeyStats{Key: "a", Next: began.Add(time.Hour)})
			f.pass(time.Hour)
			f.keysAre("an hour later")
		}),
	}
	for i := range tests {
		tests[i] = tests[i].alsoRequiring(pawl.LimitKeys)
	}
	return tests
}
