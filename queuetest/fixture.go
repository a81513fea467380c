package queuetest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopawl/pawl"
)

var errBoom = errors.New("boom")

// fixture is a queue under test and what the cases do with it.
type fixture struct {
	*testing.T
	config   *Config
	open     Open
	dir      string
	settings Settings
	q        pawl.Queue // nil while it is closed
}

// reopen opens the queue. An earlier queue must be closed.
func (f *fixture) reopen() {
	f.Helper()
	f.q = f.open(f.T, f.dir, f.settings)
	f.Cleanup(f.close)
	synctest.Wait() // for what the queue does by itself at its start
}

func (f *fixture) close() {
	f.Helper()
	if closer, ok := f.q.(io.Closer); ok {
		if err := closer.Close(); err != nil {
			f.Errorf("close: %v", err)
		}
	}
	f.q = nil
}

// restart closes the queue and opens it again.
func (f *fixture) restart() {
	f.Helper()
	if !f.config.Persists {
		f.Fatal("the case restarts the queue, and does not say that it needs this")
	}
	f.close()
	f.reopen()
}

// fresh replaces the queue with an empty one with other settings.
func (f *fixture) fresh(s Settings) {
	f.Helper()
	f.close()
	f.dir, f.settings = f.TempDir(), s
	f.reopen()
}

// able returns the queue as a T, or skips the case.
func able[T any](f *fixture) T {
	q, ok := f.q.(T)
	if !ok {
		f.Skipf("the queue is no %s", reflect.TypeFor[T]().Name())
	}
	return q
}

func (f *fixture) inspector() Inspector { return able[Inspector](f) }
func (f *fixture) retrier() Retrier     { return able[Retrier](f) }
func (f *fixture) canceller() Canceller { return able[Canceller](f) }

// pass lets time pass, and then lets everything happen that is due.
func (f *fixture) pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
	synctest.Wait()
}

// expire waits until every current lease has expired and was reaped.
func (f *fixture) expire(l *pawl.Lease) { f.pass(l.Length) }

// add enqueues a job of kind "k". The function change may modify it.
func (f *fixture) add(change ...func(*pawl.Envelope)) *pawl.Envelope {
	f.Helper()
	e := &pawl.Envelope{Kind: "k", MaxRetries: 3, Payload: []byte("payload")}
	for _, fn := range change {
		fn(e)
	}
	f.enqueue(e)
	return e
}

// enqueue stores jobs that must be accepted, and completes their envelopes; see put.
func (f *fixture) enqueue(jobs ...*pawl.Envelope) []pawl.Enqueued {
	f.Helper()
	most := len(jobs)
	if f.config.MaxBatch > 0 {
		most = f.config.MaxBatch
	}
	var all []pawl.Enqueued
	for len(jobs) > 0 {
		n := min(most, len(jobs))
		done, err := f.put(f.q, jobs[:n]...)
		f.ok(err, "enqueue")
		all, jobs = append(all, done...), jobs[n:]
	}
	return all
}

// try is put for cases that look only at the error.
func (f *fixture) try(jobs ...*pawl.Envelope) error {
	_, err := f.put(f.q, jobs...)
	return err
}

// put enqueues jobs and requires that the call leaves its arguments unchanged. Then it
// completes the envelopes as the queue completes its own copies, except for the sequence. Where
// nothing was stored, it fills in the ID only.
func (f *fixture) put(q pawl.Enqueuer, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	f.Helper()
	leftAlone, now := f.arguments(jobs...), time.Now()
	if f.settings.Now != nil {
		now = f.settings.Now()
	}
	done, err := q.Enqueue(f.Context(), jobs...)
	leftAlone("the enqueue")
	switch {
	case err != nil && len(done) > 0:
		f.Errorf("the enqueue returned %v together with %v", done, err)
	case err == nil && len(done) != len(jobs):
		f.Errorf("the enqueue of %d jobs returned %v", len(jobs), done)
	case err == nil:
		for i, e := range jobs {
			if e.ID = done[i].ID; !done[i].Existing {
				*e = *accepted(e, now)
			}
		}
	}
	return done, err
}

// arguments returns a check that a call has left the jobs that it was given as they are.
func (f *fixture) arguments(jobs ...*pawl.Envelope) (leftAlone func(call string)) {
	given := copies(jobs)
	return func(call string) {
		f.Helper()
		for i, e := range jobs {
			if d := difference(e, given[i]); d != "" {
				f.Errorf("%s changed its argument: %s", call, d)
			} else if e != nil && e.Seq != given[i].Seq {
				f.Errorf("%s gave its argument the sequence %d", call, e.Seq)
			}
		}
	}
}

// accepted returns a job as a queue stores one that it accepts at a time, without its sequence. What
// the fields say about a past in another queue, it does not keep.
func accepted(e *pawl.Envelope, now time.Time) *pawl.Envelope {
	own := &pawl.Envelope{
		ID: e.ID, Kind: e.Kind, Payload: e.Payload, Headers: e.Headers, Priority: e.Priority,
		Timeout: e.Timeout, Deadline: e.Deadline, MaxRetries: e.MaxRetries, Policy: e.Policy, Retain: e.Retain,
		UniqueKey: e.UniqueKey, UniqueIn: e.UniqueIn, OnConflict: e.OnConflict,
		IdempotencyKey: e.IdempotencyKey, IdempotencyTTL: e.IdempotencyTTL, Key: e.Key, Cost: e.Cost, Weight: e.Weight, Group: e.Group, Cursor: e.Cursor, After: e.After, AfterAny: e.AfterAny, KeyID: e.KeyID, Signature: e.Signature,
	}
	if e.Cost == 1 { // as none
		own.Cost = 0
	}
	if e.Weight == 1 {
		own.Weight = 0
	}
	own.Queue = cmp.Or(e.Queue, "default")
	own.Origin = cmp.Or(e.Origin, own.Queue)
	if own.Created = e.Created; e.Created.IsZero() {
		own.Created = now
	}
	if own.NotBefore = now; e.Delay > 0 {
		own.NotBefore = now.Add(e.Delay)
	} else if e.NotBefore.After(now) {
		own.NotBefore = e.NotBefore
	}
	return own
}

// addKinds enqueues a job of each kind, in this order.
func (f *fixture) addKinds(kinds ...string) (ids []pawl.ID) {
	f.Helper()
	for _, kind := range kinds {
		ids = append(ids, f.add(of(kind)).ID)
	}
	return ids
}

// Changes for add.

func of(kind string) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Kind = kind } }
func on(queue string) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Queue, e.Kind = queue, queue }
}
func after(delay time.Duration) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Delay = delay }
}
func priority(p int8) func(*pawl.Envelope) { return func(e *pawl.Envelope) { e.Priority = p } }

func unique(key string, in ...pawl.State) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.UniqueKey, e.UniqueIn = key, in }
}
func answer(c pawl.Conflict) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.OnConflict = c }
}
func effect(key string) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.IdempotencyKey = key }
}
func within(d time.Duration) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Deadline = time.Now().Add(d) }
}
func kept(d time.Duration) func(*pawl.Envelope) {
	return func(e *pawl.Envelope) { e.Retain = d }
}

// fetch leases up to n jobs that may all start at once. It does not wait, and returns
// none when there are none.
func (f *fixture) fetch(n int, queues ...string) []*pawl.Lease {
	f.Helper()
	return f.request(pawl.Request{Queues: queues, Max: n})
}

// request is fetch with any request. A request that would wait forever does not wait.
func (f *fixture) request(r pawl.Request) []*pawl.Lease {
	f.Helper()
	if r.Wait == pawl.WaitForJob {
		r.Wait = pawl.WaitNot
	}
	f.catchUp()
	leases, err := f.q.Fetch(f.patient(), r)
	switch {
	case errors.Is(err, pawl.ErrEmpty):
		if len(leases) > 0 {
			f.Fatalf("fetch gave %d leases together with %v", len(leases), err)
		}
		return nil
	case err != nil:
		f.beyond(err)
		f.Fatalf("fetch: %v", err)
	case len(leases) == 0 || len(leases) > r.Max:
		f.Fatalf("a fetch of at most %d jobs gave %d, without an error", r.Max, len(leases))
	}
	return leases
}

// leases is fetch for cases with at least n jobs.
func (f *fixture) leases(n int, queues ...string) []*pawl.Lease {
	f.Helper()
	leases := f.fetch(n, queues...)
	if len(leases) != n {
		f.Fatalf("a fetch of %d jobs got %d", n, len(leases))
	}
	return leases
}

// lease leases the only job that can be fetched now.
func (f *fixture) lease(queues ...string) *pawl.Lease {
	f.Helper()
	leases := f.fetch(2, queues...)
	if len(leases) != 1 {
		f.Fatalf("%d jobs can be fetched, want exactly one", len(leases))
	}
	return leases[0]
}

// job reads a job. It returns nil when the job is gone.
func (f *fixture) job(id pawl.ID) *pawl.Envelope {
	f.Helper()
	e, err := f.inspector().Job(f.Context(), id)
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	f.ok(err, "read job")
	return e
}

// must is job for a job that must exist.
func (f *fixture) must(id pawl.ID) *pawl.Envelope {
	f.Helper()
	e := f.job(id)
	if e == nil {
		f.Fatalf("job %s is gone", id)
	}
	return e
}

// list reads the jobs that a filter chooses.
func (f *fixture) list(filter pawl.Filter) (jobs []*pawl.Envelope) {
	f.Helper()
	for e, err := range f.inspector().Jobs(f.Context(), filter) {
		f.ok(err, "list jobs")
		jobs = append(jobs, e)
	}
	return jobs
}

// started runs fn on its own goroutine and sends its error. It returns when fn has
// returned or waits for something.
func (f *fixture) started(fn func() error) <-chan error {
	errs := make(chan error, 1)
	go func() { errs <- fn() }()
	synctest.Wait()
	return errs
}

// waits requires that a started call still waits.
func (f *fixture) waits(call <-chan error, what string) {
	f.Helper()
	select {
	case err := <-call:
		f.Fatalf("%s: it returned (error: %v), it should wait", what, err)
	default:
	}
}

// ends requires that a started call has returned an error that matches want.
func (f *fixture) ends(call <-chan error, want error, what string) {
	f.Helper()
	synctest.Wait()
	if len(call) == 0 {
		f.pass(f.config.Reduced.Waits)
	}
	select {
	case err := <-call:
		f.is(err, want, what)
	default:
		f.Fatalf("%s: it waits, it should have returned", what)
	}
}

// gets requires that a fetch which waited has returned a job, and returns its lease.
func (f *fixture) gets(call <-chan error, leases *[]*pawl.Lease, id pawl.ID, what string) *pawl.Lease {
	f.Helper()
	f.ends(call, nil, what)
	equal(f, (*leases)[0].ID, id, "job of "+what)
	return (*leases)[0]
}

// diedOf requires that a job is dead for a reason.
func (f *fixture) diedOf(id pawl.ID, reason pawl.Reason, what string) {
	f.Helper()
	e := f.must(id)
	equal(f, e.State, pawl.Dead, what)
	equal(f, e.Death.Reason, reason, "reason, "+what)
}

// ended returns a context that has ended.
func (f *fixture) ended() context.Context {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	return ctx
}

// waitLimit is how long the cases wait, in virtual time, for something that must
// happen. It is longer than every delay in them. It keeps a queue that forgets a caller
// from stopping all later cases.
const waitLimit = 1000 * time.Hour

// patient is a context that ends when waitLimit does.
func (f *fixture) patient() context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), waitLimit)
	f.Cleanup(cancel)
	return ctx
}

// await waits until a started call succeeds.
func (f *fixture) await(call <-chan error) {
	f.Helper()
	select {
	case err := <-call:
		f.ok(err, "the call that waits")
	case <-time.After(waitLimit):
		f.Fatalf("the call still waits after %v", waitLimit)
	}
}

// fetching starts a waiting fetch of one job. The leases are there when the call has
// ended.
func (f *fixture) fetching(ctx context.Context, r pawl.Request) (*[]*pawl.Lease, <-chan error) {
	leases := new([]*pawl.Lease)
	return leases, f.started(func() (err error) {
		*leases, err = f.q.Fetch(ctx, r)
		return err
	})
}
