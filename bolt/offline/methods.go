package offline

import (
	"context"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// inspector is what a queue and a file opened for reading have in common.
type inspector interface {
	Stats(ctx context.Context) (pawl.Stats, error)
	Throughput(ctx context.Context, q driver.ThroughputQuery) (driver.Throughput, error)
	Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error)
	ListParts(ctx context.Context, f pawl.Filter, parts driver.Parts, after string, max int) (pawl.Listing, error)
	FindIDs(ctx context.Context, part, after string, most int) ([]pawl.ID, string, error)
	Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error)
	Dependents(ctx context.Context, id pawl.ID) ([]pawl.ID, error)
	Key(ctx context.Context, queue, key string) (pawl.KeyStats, error)
	Keys(ctx context.Context, queue, after string, max int) ([]pawl.KeyStats, error)
	Effects(ctx context.Context, after string, max int) ([]driver.Effect, string, error)
	DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error)
	ViewRows(ctx context.Context, fn func(driver.Reader) error) error
	Check(ctx context.Context) error
	WriteBackup(ctx context.Context, w io.Writer) (int64, error)
}

// looked returns what fn reads.
func looked[T any](f *File, fn func(inspector) (T, error)) (result T, err error) {
	err = f.look(func(i inspector) error {
		result, err = fn(i)
		return err
	})
	return result, err
}

// changed returns the result of the change fn.
func changed[T any](f *File, fn func(*bolt.Queue) (T, error)) (result T, err error) {
	err = f.change(func(q *bolt.Queue) error {
		result, err = fn(q)
		return err
	})
	return result, err
}

// Stats reads how many jobs each queue has in each state.
func (f *File) Stats(ctx context.Context) (pawl.Stats, error) {
	return looked(f, func(i inspector) (pawl.Stats, error) { return i.Stats(ctx) })
}

// Throughput reports what happened to jobs in the last minutes, hours, or days.
func (f *File) Throughput(ctx context.Context, q driver.ThroughputQuery) (driver.Throughput, error) {
	return looked(f, func(i inspector) (driver.Throughput, error) { return i.Throughput(ctx, q) })
}

// Job reads one job.
func (f *File) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	return looked(f, func(i inspector) (*pawl.Envelope, error) { return i.Job(ctx, id) })
}

// Jobs iterates over the jobs that match a filter. It reads them in pages, so the caller may
// change the file within the iteration.
func (f *File) Jobs(ctx context.Context, filter pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		for after, more := "", true; more; {
			page, err := f.ListParts(ctx, filter, driver.AllParts, after, pageJobs)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, listed := range page.Jobs {
				if !yield(listed.Job, listed.Err) {
					return
				}
			}
			after, more = page.Next, page.Next != ""
		}
	}
}

// pageJobs is the most jobs of one page of Jobs.
const pageJobs = 512

// ListParts reads one page of a list, with only some parts of each job.
func (f *File) ListParts(ctx context.Context, filter pawl.Filter, parts driver.Parts, after string, max int) (pawl.Listing, error) {
	return looked(f, func(i inspector) (pawl.Listing, error) { return i.ListParts(ctx, filter, parts, after, max) })
}

// FindIDs returns the IDs of jobs that begin or end with part, as [bolt.Queue.FindIDs] does.
func (f *File) FindIDs(ctx context.Context, part, after string, most int) (ids []pawl.ID, next string, err error) {
	err = f.look(func(i inspector) error {
		ids, next, err = i.FindIDs(ctx, part, after, most)
		return err
	})
	return ids, next, err
}

// Why returns what keeps a job from running.
func (f *File) Why(ctx context.Context, id pawl.ID) ([]pawl.Obstacle, error) {
	all, err := looked(f, func(i inspector) ([]pawl.Obstacle, error) { return i.Why(ctx, id) })
	// No process has the file open, whatever it was opened for here.
	return slices.DeleteFunc(all, func(o pawl.Obstacle) bool { return o.What == pawl.ByNoWorker }), err
}

// Dependents returns the jobs that wait for the success of a job, as [bolt.Queue.Dependents] does.
func (f *File) Dependents(ctx context.Context, id pawl.ID) ([]pawl.ID, error) {
	return looked(f, func(i inspector) ([]pawl.ID, error) { return i.Dependents(ctx, id) })
}

// Key reads one key of a queue.
func (f *File) Key(ctx context.Context, queue, key string) (pawl.KeyStats, error) {
	return looked(f, func(i inspector) (pawl.KeyStats, error) { return i.Key(ctx, queue, key) })
}

// Keys reads a page of the keys of a queue.
func (f *File) Keys(ctx context.Context, queue, after string, max int) ([]pawl.KeyStats, error) {
	return looked(f, func(i inspector) ([]pawl.KeyStats, error) { return i.Keys(ctx, queue, after, max) })
}

// Effects reads a page of the idempotency keys that count as done.
func (f *File) Effects(ctx context.Context, after string, max int) (effects []driver.Effect, next string, err error) {
	err = f.look(func(i inspector) error {
		effects, next, err = i.Effects(ctx, after, max)
		return err
	})
	return effects, next, err
}

// DryRun returns what Change would return, and changes nothing.
func (f *File) DryRun(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	return looked(f, func(i inspector) ([]error, error) { return i.DryRun(ctx, c, ids...) })
}

// ViewRows runs fn in a read transaction.
func (f *File) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	return f.look(func(i inspector) error { return i.ViewRows(ctx, fn) })
}

// Check compares every row of the file with every other.
func (f *File) Check(ctx context.Context) error {
	return f.look(func(i inspector) error { return i.Check(ctx) })
}

// WriteBackup writes a copy of the file to w.
func (f *File) WriteBackup(ctx context.Context, w io.Writer) (int64, error) {
	return looked(f, func(i inspector) (int64, error) { return i.WriteBackup(ctx, w) })
}

// Enqueue stores jobs.
func (f *File) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	return changed(f, func(q *bolt.Queue) ([]pawl.Enqueued, error) { return q.Enqueue(ctx, jobs...) })
}

// Change applies a change to jobs.
func (f *File) Change(ctx context.Context, c pawl.Change, ids ...pawl.ID) ([]error, error) {
	return changed(f, func(q *bolt.Queue) ([]error, error) { return q.Change(ctx, c, ids...) })
}

// Transfer replaces a dead job.
func (f *File) Transfer(ctx context.Context, job *pawl.Envelope, when pawl.Condition) error {
	return f.change(func(q *bolt.Queue) error { return q.Transfer(ctx, job, when) })
}

// Edit replaces the payload of a job.
func (f *File) Edit(ctx context.Context, id pawl.ID, payload []byte, when pawl.Condition) error {
	return f.change(func(q *bolt.Queue) error { return q.Edit(ctx, id, payload, when) })
}

// Restore stores jobs in their states, and effects.
func (f *File) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	return f.change(func(q *bolt.Queue) error { return q.Restore(ctx, jobs, effects) })
}

// Pause stops all fetching from a queue.
func (f *File) Pause(ctx context.Context, queue string) error {
	return f.change(func(q *bolt.Queue) error { return q.Pause(ctx, queue) })
}

// Resume ends a pause.
func (f *File) Resume(ctx context.Context, queue string) error {
	return f.change(func(q *bolt.Queue) error { return q.Resume(ctx, queue) })
}

// EndRest ends the rest of a key, see [pawl.Throttle].
func (f *File) EndRest(ctx context.Context, queue, key string) error {
	return f.change(func(q *bolt.Queue) error { return q.EndRest(ctx, queue, key) })
}

// SetLimits sets other limits for a queue than its program declares. Nil removes them.
func (f *File) SetLimits(ctx context.Context, queue string, l *pawl.Limits) error {
	return f.change(func(q *bolt.Queue) error { return q.SetLimits(ctx, queue, l) })
}

// Reap takes back every lease, since no process holds one. The first call counts the leases
// that opening the file recovered.
func (f *File) Reap(ctx context.Context) (int, error) {
	n, err := changed(f, func(q *bolt.Queue) (int, error) { return q.Reap(ctx) })
	if err != nil {
		return n, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, f.took = n+f.took, 0
	return n, nil
}

// Mutate carries out a mutation.
func (f *File) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	return f.change(func(q *bolt.Queue) error { return q.Mutate(ctx, m, size) })
}

// Now returns the time by the clock of the options.
func (f *File) Now() time.Time { return f.opts.Now() }

// Done returns a channel that Close closes.
func (f *File) Done() <-chan struct{} { return f.done }
