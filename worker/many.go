package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// Defaults of [Many].
const (
	DefaultManyMax  = 100
	DefaultManyWait = 10 * time.Millisecond
)

// Many says how many jobs one call of a handler gets.
type Many struct {
	// Max is the most jobs of a call; 0 means [DefaultManyMax]. Each job takes a slot, so a call has at
	// most Options.Concurrency jobs: raise it to have large calls.
	Max int

	// Wait is how long the first job of a call waits for others; 0 means [DefaultManyWait].
	Wait time.Duration
}

// Each is the error of a handler of many jobs if some of them failed: the error of each, by its index in
// jobs. The jobs that it does not name have succeeded.
type Each map[int]error

// Error describes the first error.
func (e Each) Error() string {
	first := -1
	for i, err := range e {
		if err != nil && (first < 0 || i < first) {
			first = i
		}
	}
	if first < 0 {
		return "no job failed"
	}
	return fmt.Sprintf("%d of the jobs failed, first job %d: %v", len(e), first, e[first])
}

// HandleMany is [Handle] for a handler that gets many jobs in one call, in the order in which they
// started. Each job has its own end: nil acks all jobs, [Each] fails those that it names, and any other
// error, or a panic, fails all. [pawl.Snooze], [pawl.Permanent], and the like work in Each too.
//
// The context of the call ends once the contexts of all its jobs have ended: the timeout of each job
// counts from its start, and a stop ends all. A job that is cancelled during the call does not end it, and
// ends with the call: it is acked if it succeeds, and dead if it fails. If it has a deadline or a timeout, be it
// Options.Timeout, the worker makes it dead Options.StuckGrace after the earlier of the two, and does not
// wait for the call.
// Middleware wraps each job.
func HandleMany[T any](w *Worker, k *pawl.Kind[T], m Many, fn func(ctx context.Context, jobs []*pawl.Job[T]) error) {
	if m.Max < 0 || m.Wait < 0 {
		w.refuse(fmt.Errorf("handler of kind %q: %w", k.Name(),
			&pawl.InvalidError{Field: "Many", Reason: fmt.Sprintf("a maximum of %d or a wait of %v is negative", m.Max, m.Wait)}))
		return
	}
	if fn == nil {
		Handle[T](w, k, nil)
		return
	}
	b := &batcher[T]{
		most: min(cmp.Or(m.Max, DefaultManyMax), w.opts.Concurrency),
		wait: cmp.Or(m.Wait, DefaultManyWait),
		fn:   fn,
	}
	Handle(w, k, b.handle)
}

// batcher combines attempts of single jobs into calls.
type batcher[T any] struct {
	most int
	wait time.Duration
	fn   func(ctx context.Context, jobs []*pawl.Job[T]) error

	mu   sync.Mutex
	next *batch[T] // the call that takes jobs; nil if there is none
}

// batch is a call, from its first job to its end.
type batch[T any] struct {
	timer *time.Timer
	done  chan struct{} // closed once errs is set
	errs  map[*pawl.Job[T]]error

	// Until the call starts the batcher's mu guards these.
	jobs []*pawl.Job[T]
	ctxs []context.Context
}

// handle runs one job as part of a call.
func (b *batcher[T]) handle(ctx context.Context, job *pawl.Job[T]) error {
	b.mu.Lock()
	c := b.next
	if c == nil {
		c = &batch[T]{done: make(chan struct{})}
		c.timer = time.AfterFunc(b.wait, func() { b.start(c) })
		b.next = c
	}
	c.jobs, c.ctxs = append(c.jobs, job), append(c.ctxs, ctx)
	if len(c.jobs) == b.most { // so that no other job joins
		b.startLocked(c)
	}
	b.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		if b.leave(c, job) {
			return ctx.Err()
		}
		<-c.done // the handler has the job already
	}
	return c.errs[job]
}

// leave removes a job from a call that has not started.
func (b *batcher[T]) leave(c *batch[T], job *pawl.Job[T]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != c {
		return false
	}
	i := slices.Index(c.jobs, job)
	c.jobs, c.ctxs = slices.Delete(c.jobs, i, i+1), slices.Delete(c.ctxs, i, i+1)
	if len(c.jobs) == 0 {
		c.timer.Stop()
		b.next = nil
	}
	return true
}

// start starts a call, unless it has started or all its jobs have left.
func (b *batcher[T]) start(c *batch[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == c {
		b.startLocked(c)
	}
}

// startLocked starts a call that takes jobs. The caller holds the mutex.
func (b *batcher[T]) startLocked(c *batch[T]) {
	b.next = nil
	c.timer.Stop()
	go c.run(b.fn)
}

// run calls the handler, and gives each job its error.
func (c *batch[T]) run(fn func(ctx context.Context, jobs []*pawl.Job[T]) error) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.ctxs[0]))
	defer cancel(nil)
	defer c.watch(cancel)()
	var err error
	returned := false
	defer func() {
		if !returned {
			err = panicked(recover())
		}
		c.errs = c.errorsOf(err)
		close(c.done)
	}()
	err = fn(ctx, slices.Clone(c.jobs))
	returned = true
}

// watch ends the context of the call once the contexts of all its jobs have ended.
func (c *batch[T]) watch(cancel context.CancelCauseFunc) (stop func()) {
	var mu sync.Mutex
	left := len(c.ctxs)
	var stops []func() bool
	for _, ctx := range c.ctxs {
		stops = append(stops, context.AfterFunc(ctx, func() {
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				cancel(context.Cause(ctx))
			}
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// errorsOf returns the error of each job that failed.
func (c *batch[T]) errorsOf(err error) map[*pawl.Job[T]]error {
	errs := make(map[*pawl.Job[T]]error)
	each, some := err.(Each)
	for i := range each {
		if i < 0 || i >= len(c.jobs) {
			some, err = false, fmt.Errorf("the handler names job %d of %d: %w", i, len(c.jobs), err)
		}
	}
	for i, job := range c.jobs {
		switch {
		case err == nil:
		case some:
			errs[job] = each[i]
		default:
			errs[job] = err
		}
	}
	return errs
}
