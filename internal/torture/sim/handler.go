package sim

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

// args are the arguments of every job.
type args struct {
	N    int
	Fill []byte
}

var (
	kindNames = []string{"a", "b", "c"}
	kindOf    = map[string]*pawl.Kind[args]{"a": pawl.Define[args]("a"), "b": pawl.Define[args]("b"), "c": pawl.Define[args]("c")}
)

// fill returns the payload of a job. Every byte follows from its number.
func fill(j *Job) []byte {
	b := make([]byte, j.Size)
	for i := range b {
		b[i] = byte(j.N + i*7)
	}
	return b
}

type runKey struct{}

// around is the middleware of every worker. It records each attempt.
func (h *hand) around(next worker.HandlerFunc) worker.HandlerFunc {
	return func(ctx context.Context, l *pawl.Lease) error {
		r := h.runBegins(l)
		if r == nil {
			return errGone
		}
		defer func() { h.runEnds(r, context.Cause(ctx)) }()
		return next(context.WithValue(ctx, runKey{}, r), l)
	}
}

var (
	errGone   = errors.New("the process is gone")
	errFailed = errors.New("it failed")
)

// runBegins records the start of a handler and plans its action. It returns nil in a dead
// process.
func (h *hand) runBegins(l *pawl.Lease) *run {
	w := h.process.world
	t := w.trackOf(l.ID)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case h.process.dead:
		return nil
	case t == nil:
		w.fault("a job ran that nobody stored: %v", l.Envelope)
		return nil
	}
	r := &run{job: t.N, token: l.Token, from: now(), attempt: l.Attempt(), last: l.LastAttempt(), limit: l.Timeout, plan: Run{Do: succeeds}, by: h}
	if len(t.Runs) > 0 && !w.faultless {
		r.plan = t.Runs[min(w.ran[t.N], len(t.Runs)-1)]
	}
	r.does, r.wait, r.deaf = r.plan.Do, r.plan.For, r.plan.Deaf
	w.ran[t.N]++
	w.runs = append(w.runs, r)
	if h.busy++; h.busy > h.crew.Concurrency {
		w.fault("%d handlers run in a worker for %d", h.busy, h.crew.Concurrency)
	}
	if h.jobs[t.N]++; h.jobs[t.N] > 1 {
		w.fault("job %d runs twice at a time in one worker", t.N)
	}
	return r
}

func (h *hand) runEnds(r *run, cause error) {
	w := h.process.world
	w.mu.Lock()
	defer w.mu.Unlock()
	h.busy--
	h.jobs[r.job]--
	if !h.process.dead {
		r.to, r.cause = now(), cause
	}
}

// handle is the handler of every kind.
func (p *process) handle(ctx context.Context, job *pawl.Job[args]) error {
	r := ctx.Value(runKey{}).(*run)
	p.world.same(r, job)
	ended := ctx.Done()
	if r.plan.Deaf {
		ended = nil
	}
	var long <-chan time.Time
	if r.plan.Take > 0 {
		timer := time.NewTimer(r.plan.Take)
		defer timer.Stop()
		long = timer.C
	} else {
		now := make(chan time.Time)
		close(now)
		long = now
	}
	select {
	case <-p.gone:
		return errGone
	case <-ended:
		r.does = fails
		return ctx.Err()
	case <-long:
	}
	switch r.plan.Do {
	case succeeds:
		return nil
	case retries:
		return pawl.RetryAfter(r.plan.For, errFailed)
	case permanent:
		return pawl.Permanent(errFailed)
	case snoozes:
		return pawl.Snooze(r.plan.For)
	case panics:
		r.does = fails
		panic("as the case wants")
	case exits:
		r.does = fails
		runtime.Goexit()
	case kills:
		p.world.killed <- p
		select {
		case <-p.gone:
			return errGone
		case <-ended:
			r.does = fails
			return ctx.Err()
		}
	}
	return errFailed
}

// same requires that a job is unchanged since it was stored.
func (w *world) same(r *run, job *pawl.Job[args]) {
	t := w.trackOf(job.ID)
	if job.Args.N != t.N || string(job.Args.Fill) != string(fill(t.Job)) || job.Kind != t.Kind || job.Queue != t.Queue ||
		job.Priority != t.Priority || job.Timeout != t.Timeout || job.MaxRetries != t.Retries || job.IdempotencyKey != t.Effect {
		w.report("job %d did not run as it was stored: %+v", t.N, job.Envelope)
	}
}
