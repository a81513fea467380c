package sqlite

import (
	"context"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// fetch is a call of Fetch. It is accepted by a transaction, and then waits for one that has jobs
// for it.
type fetch struct {
	pawl.Request
	core.Call // of the fetch, once it waits
	leases    []*pawl.Lease
}

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	f := &fetch{Request: r, Call: core.NewCall(ctx, nil)}
	if err := q.submit(ctx, f); err != nil {
		return nil, err
	}
	err = f.Await(func() { q.intake.Note(f) })
	return f.leases, err
}

func (f *fetch) apply(t *txn) error {
	t.fetches = append(t.fetches, f)
	return nil
}

// serve answers waiting fetches in their order: the fetches for which there are jobs, and those
// that give up.
func (t *txn) serve() {
	waiting, from := slices.Concat(t.q.waiting, t.fetches), len(t.q.waiting)
	for (t.q.stirred || from < len(waiting)) && t.err == nil {
		if t.q.stirred {
			from = 0
		}
		t.q.stirred = false
		left := waiting[:from:from]
		for _, f := range waiting[from:] {
			if !t.offer(f) {
				left = append(left, f)
			}
		}
		waiting, from = left, len(left)
	}
	t.after = append(t.after, func() {
		t.q.waiting = waiting
		for _, f := range waiting {
			f.Reopen()
		}
	})
}

// offer leases jobs to a fetch, or makes it give up. It reports whether the fetch has its answer.
func (t *txn) offer(f *fetch) (answered bool) {
	if f.Ctx.Err() != nil || !f.Accept() {
		return false // it is about to be dismissed
	}
	t.looking = append(t.looking, f)
	s := &selection{t: t, f: f, idle: f.Max - f.Ahead}
	s.run()
	switch {
	case len(s.leases) > 0:
		t.after = append(t.after, func() {
			f.leases = s.leases
			f.Answer(nil)
		})
		return true
	case f.Wait == pawl.WaitForJob, f.Wait != pawl.WaitNot && t.hasWork(f):
		return false
	}
	t.after = append(t.after, func() { f.Answer(pawl.ErrEmpty) })
	return true
}

// hasWork reports whether there is a job that a fetch waits for: a ready or leased job, or,
// depending on the fetch, a delayed job.
func (t *txn) hasWork(f *fetch) bool {
	for _, name := range f.Queues {
		l := t.all().queues[name]
		if l == nil {
			continue
		}
		for kind, id := range l.kinds {
			if driver.Wants(&f.Request, kind) && t.hasJob(id, f.Wait == pawl.WaitFinished) {
				return true
			}
		}
	}
	return false
}

// hasJob reports whether a line has a ready or leased job, or, if delayed is set, a delayed job.
func (t *txn) hasJob(line int64, delayed bool) bool {
	var found, counts int64
	if delayed {
		counts = 1
	}
	t.query(`SELECT EXISTS (SELECT 1 FROM pawl_job WHERE place = 2 AND line = ?1)
	OR EXISTS (SELECT 1 FROM pawl_job WHERE place = 1 AND line = ?1)
	OR EXISTS (SELECT 1 FROM pawl_job WHERE place = 4 AND line = ?1)
	OR ?2 AND EXISTS (SELECT 1 FROM pawl_job WHERE place = 3 AND line = ?1)`, one(&found), line, counts)
	return found != 0
}
