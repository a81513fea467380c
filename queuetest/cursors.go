package queuetest

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// cursor gives a job a cursor.
func cursor(at string) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Cursor = []byte(at) }
}

// save saves the cursor of a job. The rows agree with each other during the lease, too.
func (f *fixture) save(l *pawl.Lease, at string) {
	f.Helper()
	f.ok(able[pawl.CursorSaver](f).SaveCursor(f.Context(), l, []byte(at)), "save the cursor")
	f.sound("while the lease that saved a cursor lasts")
}

// sound checks the rows of a queue that is a Checker.
func (f *fixture) sound(when string) {
	f.Helper()
	if q, ok := f.q.(Checker); ok {
		f.ok(q.Check(f.Context()), "check "+when)
	}
}

// saved is what saved a cursor while it ran, and what happened to the job since.
type saved struct {
	name string
	end  func(f *fixture, l *pawl.Lease)
}

// survives is what a cursor outlasts. The job is ready after it.
var survives = []saved{
	{"a failed run", func(f *fixture, l *pawl.Lease) { f.nack(l, 0) }},
	{"a failed run and a delay", func(f *fixture, l *pawl.Lease) { f.nack(l, time.Minute); f.pass(time.Minute) }},
	{"a release", func(f *fixture, l *pawl.Lease) { f.release(l) }},
	{"a snooze", func(f *fixture, l *pawl.Lease) {
		f.ok(f.q.Settle(f.Context(), l.Snooze(time.Minute)), "snooze")
		f.pass(time.Minute)
	}},
	{"a crash", func(f *fixture, l *pawl.Lease) { f.expire(l) }},
	{"its death and a retry", func(f *fixture, l *pawl.Lease) { f.abandon(l); f.retry(l.ID, false) }},
	{"its death by crashes and a retry", func(f *fixture, l *pawl.Lease) {
		f.expire(l)
		for range 4 {
			f.expire(f.lease())
		}
		equal(f, f.must(l.ID).Death.Reason, pawl.ReasonPoison, "reason")
		f.retry(l.ID, true)
	}},
	{"a cancellation and a retry", func(f *fixture, l *pawl.Lease) { f.cancel(l.ID); f.nack(l, 0); f.retry(l.ID, false) }},
}

func cursorTests() []test {
	tests := []test{
		newTest("what is saved", "SaveCursor stores the bytes that it gets, in place of those before, and changes nothing else of a job.",
			func(f *fixture) {
				for _, size := range []int{1, 1000, 5000, pawl.MaxCursor, 2} {
					id := f.add(func(e *pawl.Envelope) { e.Payload = make([]byte, 3000) }).ID
					l := f.lease()
					f.save(l, "first")
					want, at := f.must(id), bytes.Repeat([]byte{'c'}, size)
					f.ok(able[pawl.CursorSaver](f).SaveCursor(f.Context(), l, at), "save")
					clear(at) // is the caller's
					want.Cursor = bytes.Repeat([]byte{'c'}, size)
					f.same(f.must(id), want, fmt.Sprint("a job with a cursor of ", size))
					f.ack(l)
				}
			}),
		newTest("none", "A job that saved no cursor has none.", func(f *fixture) {
			id := f.add().ID
			equal(f, f.must(id).Cursor == nil, true, "a new job has no cursor")
			f.nack(f.lease(), 0)
			l := f.lease()
			equal(f, l.Cursor == nil, true, "nor has its lease")
		}),
		newTest("a stale lease", "A stale lease saves no cursor, before and after another attempt saves one. A cursor never goes back.", func(f *fixture) {
			q := able[pawl.CursorSaver](f)
			id := f.add().ID
			stale := f.lease()
			f.save(stale, "1")
			f.expire(stale)
			f.is(q.SaveCursor(f.Context(), stale, []byte("2")), pawl.ErrLeaseLost, "while the job is ready")
			l := f.lease()
			f.is(q.SaveCursor(f.Context(), stale, []byte("2")), pawl.ErrLeaseLost, "while another has the job")
			equal(f, string(f.must(id).Cursor), "1", "cursor")
			f.save(l, "3")
			f.is(q.SaveCursor(f.Context(), stale, []byte("2")), pawl.ErrLeaseLost, "after another has saved one")
			equal(f, string(f.must(id).Cursor), "3", "cursor")
			f.nack(l, time.Hour)
			f.is(q.SaveCursor(f.Context(), l, []byte("4")), pawl.ErrLeaseLost, "after the attempt")
			equal(f, string(f.must(id).Cursor), "3", "cursor")
		}),
		newTest("refused", "SaveCursor refuses a cursor that is empty or above MaxCursor, and a missing lease, and changes nothing.", func(f *fixture) {
			q := able[pawl.CursorSaver](f)
			f.add()
			l := f.lease()
			f.save(l, "1")
			unchanged := f.unchanged()
			f.is(q.SaveCursor(f.Context(), l, nil), pawl.ErrInvalid, "an empty cursor")
			f.is(q.SaveCursor(f.Context(), l, make([]byte, pawl.MaxCursor+1)), pawl.ErrInvalid, "a large cursor")
			f.is(q.SaveCursor(f.Context(), nil, []byte("2")), pawl.ErrInvalid, "no lease")
			f.is(f.try(&pawl.Envelope{Kind: "k", Cursor: make([]byte, pawl.MaxCursor+1)}), pawl.ErrInvalid, "a job with a large cursor")
			unchanged("after the refusals")
		}),
		newTest("a success", "A success removes the cursor.", func(f *fixture) {
			id := f.add(kept(time.Hour)).ID
			l := f.lease()
			f.save(l, "1")
			f.ack(l)
			e := f.must(id)
			equal(f, e.State, pawl.Completed, "state")
			equal(f, e.Cursor == nil, true, "it has no cursor")
		}).alsoRequiring(pawl.Retention),
		newTest("gets on", "SaveCursor renews the lease, and forgets earlier crashes in a row.", func(f *fixture) {
			id := f.add().ID
			for range 3 {
				f.crash(id)
			}
			l := f.lease()
			for range 3 {
				f.pass(l.Length * 2 / 3)
				f.save(l, "1")
			}
			equal(f, f.must(id).Crashes, 0, "crashes")
			f.ack(l)
		}),
		newTest("after a failure", "A job that fails, saves a cursor in its next attempt, and succeeds leaves nothing behind. A new job with its ID has its own history alone.",
			func(f *fixture) {
				id := f.add().ID
				for range 2 {
					f.nack(f.lease(), 0)
				}
				l := f.lease()
				f.save(l, "1")
				equal(f, len(f.must(id).History), 2, "failures")
				f.ack(l)
				f.sound("after the success")
				equal(f, f.add(func(e *pawl.Envelope) { e.ID = id }).ID, id, "ID of a new job")
				f.nack(f.lease(), 0)
				equal(f, len(f.must(id).History), 1, "failures of the new job")
				f.sound("after its failure")
			}),
		newTest("of a suspect", "A job that saves a cursor is no suspect any more, so the next repeat suspect may be leased.", func(f *fixture) {
			f.crashedJobs(2, "ab")
			first := f.fetch(9)
			equal(f, kinds(first), "a", "jobs of the first fetch")
			equal(f, kinds(f.fetch(9)), "", "jobs beside it")
			f.save(first[0], "1")
			equal(f, kinds(f.fetch(9)), "b", "jobs after the save")
		}),
		newTest("in a mutation", "A mutation saves a cursor together with its rows, or neither.", func(f *fixture) {
			id := f.add().ID
			l := f.lease()
			save := func(ops driver.Ops) error { return ops.Save(l, []byte("1")) }
			f.is(f.mutator().Mutate(f.Context(), mutation{save, boomAfter(put("row"))}, 0), errBoom, "mutate")
			equal(f, f.must(id).Cursor == nil, true, "it has no cursor")
			f.mutate(mutation{save, put("row")})
			equal(f, string(f.must(id).Cursor), "1", "cursor")
			f.rowsAre("row", "after the mutation")
			f.nack(l, 0)
			equal(f, string(f.lease().Cursor), "1", "cursor of the next lease")
		}).needing(mutating),
		newTest("of many jobs", "Jobs save their cursors at the same time, each its own.", func(f *fixture) {
			const jobs, times = 50, 5
			q := able[pawl.CursorSaver](f)
			f.enqueue(newBatch(jobs)...)
			leases := f.leases(jobs)
			var all sync.WaitGroup
			for _, l := range leases {
				all.Go(func() {
					for i := range times {
						if err := q.SaveCursor(f.Context(), l, fmt.Appendf(nil, "%s %d", l.ID, i)); err != nil {
							f.Errorf("save: %v", err)
						}
					}
				})
			}
			all.Wait()
			for _, l := range leases {
				equal(f, string(f.must(l.ID).Cursor), fmt.Sprintf("%s %d", l.ID, times-1), "cursor")
			}
		}),
		newTest("enqueued and restored", "A job that is enqueued, transferred, or restored with a cursor begins there.", func(f *fixture) {
			for _, by := range []int{1, 0} { // a transfer first, which begins with a job of its own
				f.ok(storings[by].prepare(f)(&pawl.Envelope{Kind: "begins", Cursor: []byte("9")}), storings[by].name)
			}
			f.enqueue(&pawl.Envelope{Kind: "begins", Cursor: []byte("9")})
			leases, err := f.q.Fetch(f.Context(), pawl.Request{Kinds: []string{"begins"}, Max: 9, Wait: pawl.WaitNot})
			f.ok(err, "fetch")
			equal(f, len(leases), 3, "jobs")
			for _, l := range leases {
				equal(f, string(l.Cursor), "9", "cursor")
			}
			bad := &pawl.Envelope{Kind: "k", State: pawl.Completed, Completed: time.Now(), Retain: time.Hour, Cursor: []byte("9")}
			f.is(f.restorer().Restore(f.Context(), []*pawl.Envelope{bad}, nil), pawl.ErrInvalid, "restore of a completed job with a cursor")
		}).alsoRequiring(pawl.Retention),
		restartTest("after a restart", "A cursor survives a restart, whether its job waits, is dead, or was leased.", func(f *fixture) {
			var ids []pawl.ID
			for range 3 {
				ids = append(ids, f.add().ID)
			}
			for i, l := range f.leases(3) {
				f.save(l, fmt.Sprint(l.ID))
				switch i {
				case 0:
					f.nack(l, time.Hour)
				case 1:
					f.abandon(l)
				}
			}
			f.restart()
			for _, id := range ids {
				equal(f, string(f.must(id).Cursor), fmt.Sprint(id), "cursor")
			}
		}),
	}
	for _, by := range survives {
		tests = append(tests, newTest("over "+by.name,
			"The next attempt finds the cursor that was saved last, whatever ended the attempts before it.", func(f *fixture) {
				id := f.add().ID
				l := f.lease()
				f.save(l, "1")
				f.save(l, "2")
				by.end(f, l)
				l = f.lease()
				equal(f, l.ID, id, "job")
				equal(f, string(l.Cursor), "2", "cursor")
				f.nack(l, 0) // an attempt that saves nothing
				equal(f, string(f.lease().Cursor), "2", "cursor, an attempt later")
			}))
	}
	return tests
}
