package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/worker"
)

// notesOf reads what is stored of a job.
func notesOf(t *testing.T, q *bolt.Queue, id pawl.ID) (logs []pawl.RunLog, p *pawl.Progress) {
	t.Helper()
	store := driver.NotesOf(q)
	logs, err := store.ReadLogs(t.Context(), id)
	require.NoError(t, err)
	all, err := store.ReadProgress(t.Context(), id)
	require.NoError(t, err)
	if noted, ok := all[id]; ok {
		p = &noted
	}
	return logs, p
}

// mutations counts the mutations of a queue.
type mutations struct {
	*bolt.Queue
	n atomic.Int64
}

func (q *mutations) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	q.n.Add(1)
	return q.Queue.Mutate(ctx, m, size)
}

// Rule: what running jobs note is stored within a second, in one commit for all jobs of a worker.
func TestNotesWhileJobsRun(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		counted := &mutations{Queue: q}
		w := newWorker(counted, worker.Options{Concurrency: 10})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			log := pawl.Log(ctx)
			for n := range 1000 { // 10 s
				job.Progress(int64(n), 1000, job.Args)
				log.Info("row", "n", n)
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		var ids []pawl.ID
		for n := range 10 {
			stored, err := task.Enqueue(t.Context(), q, fmt.Sprint("job ", n))
			require.NoError(t, err)
			ids = append(ids, stored.ID)
		}
		stop := start(t, w)
		time.Sleep(5*time.Second + 5*time.Millisecond)
		require.LessOrEqual(t, counted.n.Load(), int64(7))
		for n, id := range ids {
			logs, p := notesOf(t, q, id)
			require.Equal(t, fmt.Sprint("job ", n), p.Text)
			require.Equal(t, int64(1000), p.Total)
			require.GreaterOrEqual(t, p.Done, int64(398), "what it noted more than a second ago")
			require.Len(t, logs, 1)
			require.True(t, strings.Contains(logs[0].Tail, "msg=row n=398\n"))
		}
		time.Sleep(7 * time.Second)
		for _, id := range ids {
			logs, p := notesOf(t, q, id)
			require.Empty(t, logs, "the notes go with the job")
			require.Nil(t, p)
		}
		require.NoError(t, stop())
	})
}

// Rule: the log of an attempt that failed is there when its job is dead, and so is that of a success whose
// record is kept. A success without a record whose notes were never stored writes none.
func TestNotesOfEnds(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		counted := &mutations{Queue: q}
		w := newWorker(counted, worker.Options{Concurrency: 1})
		failing := pawl.Define[string]("failing", pawl.MaxRetries(0))
		kept := pawl.Define[string]("kept", pawl.Retain(time.Hour))
		say := func(ctx context.Context, job *pawl.Job[string]) error {
			pawl.Log(ctx).Info("said", "args", job.Args)
			if job.Kind == "failing" {
				return errBroken
			}
			return nil
		}
		worker.Handle(w, failing, say)
		worker.Handle(w, kept, say)
		worker.Handle(w, task, say)
		var ids []pawl.ID
		for _, k := range []*pawl.Kind[string]{failing, kept, task} {
			stored, err := k.Enqueue(t.Context(), q, k.Name())
			require.NoError(t, err)
			ids = append(ids, stored.ID)
		}
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		for n, want := range []string{"failing", "kept", ""} {
			logs, _ := notesOf(t, q, ids[n])
			if want == "" {
				require.Empty(t, logs)
				continue
			}
			require.Len(t, logs, 1)
			require.Equal(t, 1, logs[0].Attempt)
			require.Contains(t, logs[0].Head, "level=INFO msg=said args="+want+"\n")
		}
	})
}

// Rule: jobs that note nothing write nothing more.
func TestNotesOfNone(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		counted := &mutations{Queue: q}
		w := newWorker(counted, worker.Options{})
		worker.Handle(w, task, func(_ context.Context, job *pawl.Job[string]) error {
			if job.Last {
				return nil
			}
			return errBroken
		})
		for range 100 {
			_, err := task.Enqueue(t.Context(), q, "job", pawl.MaxRetries(1))
			require.NoError(t, err)
		}
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.Zero(t, counted.n.Load())
	})
}

// stuckDisk is a queue that writes no notes until the disk works again.
type stuckDisk struct {
	*bolt.Queue
	writes chan struct{} // receives for each write that waits
	goesOn chan struct{}
}

func (q *stuckDisk) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	q.writes <- struct{}{}
	<-q.goesOn
	return q.Queue.Mutate(ctx, m, size)
}

func (q *stuckDisk) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	<-q.goesOn
	return q.Queue.Settle(ctx, settlements...)
}

func (q *stuckDisk) Extend(ctx context.Context, leases ...*pawl.Lease) ([]*pawl.Lease, error) {
	<-q.goesOn
	return q.Queue.Extend(ctx, leases...)
}

// Rule: a handler never waits for its notes while the disk hangs, and the notes take limited memory. They are
// stored once the disk works again.
func TestNotesWhileTheDiskStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, _ := open(t)
		q := &stuckDisk{inner, make(chan struct{}, 100), make(chan struct{})}
		w := newWorker(q, worker.Options{Concurrency: 1})
		var returned atomic.Bool
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			log := pawl.Log(ctx)
			log.Info("first")
			<-q.writes // the disk stands still now
			began := time.Now()
			for n := range 10_000 {
				job.Progress(int64(n), 10_000, "")
				log.Info("row", "n", n)
			}
			if took := time.Since(began); took != 0 { // the clock of the test only moves while everybody waits
				return pawl.Permanent(fmt.Errorf("it waited for %v", took))
			}
			returned.Store(true)
			return pawl.Permanent(errors.New("to keep the notes"))
		})
		stored, err := task.Enqueue(t.Context(), inner, "job")
		require.NoError(t, err)
		stop := start(t, w)
		synctest.Wait()
		require.True(t, returned.Load(), "the handler has returned while the disk stands still")
		logs, _ := notesOf(t, inner, stored.ID)
		require.Empty(t, logs)
		close(q.goesOn)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		logs, _ = notesOf(t, inner, stored.ID)
		require.Len(t, logs, 1)
		require.Contains(t, logs[0].Head, "msg=first\n")
		require.True(t, strings.HasSuffix(logs[0].Tail, "n=9999\n"))
		require.NoError(t, stop())
	})
}

// heldNotes stores notes once goOn is closed. Began receives when a store begins.
type heldNotes struct {
	*bolt.Queue
	began, goOn chan struct{}
}

func (q heldNotes) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	select {
	case q.began <- struct{}{}:
	default:
	}
	select {
	case <-q.goOn:
	case <-ctx.Done():
		return pawl.ErrNotAccepted
	}
	return q.Queue.Mutate(ctx, m, size)
}

// Rule: the log of an attempt that has ended is stored before the worker has stopped, also if its store was
// under way as the attempt ended.
func TestStopAmidAStoreOfNotes(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		held := heldNotes{q, make(chan struct{}, 1), make(chan struct{})}
		w := newWorker(held, worker.Options{})
		worker.Handle(w, task, func(ctx context.Context, _ *pawl.Job[string]) error {
			pawl.Log(ctx).Info("no address")
			<-held.began
			return pawl.Permanent(errBroken)
		})
		id := enqueue(t, q, "a")
		drained := make(chan error, 1)
		go func() { drained <- w.Drain(t.Context(), pawl.WaitDrained) }()
		_, err := q.Await(t.Context(), id)
		require.NoError(t, err)
		synctest.Wait()
		close(held.goOn)
		require.NoError(t, <-drained)
		logs, _ := notesOf(t, q, id)
		require.Len(t, logs, 1)
		require.Contains(t, logs[0].Head+logs[0].Tail, "no address")
	})
}

// fullDisk is a queue that stores no notes while its disk is full. Acks may still work then: see the known gaps.
type fullDisk struct {
	mutations
	full atomic.Bool
}

func (q *fullDisk) Mutate(ctx context.Context, m driver.Mutation, size int) error {
	if q.full.Load() {
		q.n.Add(1)
		return fmt.Errorf("%w: no space left on device", bolt.ErrDisk)
	}
	return q.mutations.Mutate(ctx, m, size)
}

// Rule: on a full disk a handler does not wait for its notes, its job ends as usual, and the worker logs the
// failure once, not each second and not for each attempt. Once there is room, the notes of attempts that
// still run are stored, also if they note nothing more.
func TestNotesOnAFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		full := &fullDisk{mutations: mutations{Queue: q}}
		full.full.Store(true)
		log := new(logbook)
		w := newWorker(full, worker.Options{Concurrency: 2, Logger: log.from(hclog.Info)})
		goOn := make(chan struct{})
		worker.Handle(w, task, func(ctx context.Context, job *pawl.Job[string]) error {
			began := time.Now()
			for n := range 1000 {
				job.Progress(int64(n), 1000, "")
				pawl.Log(ctx).Info("row", "n", n)
			}
			if took := time.Since(began); took != 0 {
				return pawl.Permanent(fmt.Errorf("it waited for %v", took))
			}
			if job.Args == "long" {
				<-goOn
			}
			return nil
		})
		long := enqueue(t, q, "long")
		stop := start(t, w)
		for range 5 {
			kept, err := task.Enqueue(t.Context(), q, "short", pawl.Retain(time.Hour))
			require.NoError(t, err)
			done, err := q.Await(t.Context(), kept.ID)
			require.NoError(t, err)
			require.Equal(t, pawl.Completed, done.State, "an attempt whose notes could not be stored")
			time.Sleep(5 * time.Second)
		}
		require.GreaterOrEqual(t, full.n.Load(), int64(25), "a try each second")
		require.Equal(t, 1, strings.Count(log.String(), "cannot store progress and logs"), log)

		full.full.Store(false)
		time.Sleep(1500 * time.Millisecond) // a try comes each full second, at which this would wake beside it
		logs, p := notesOf(t, q, long)
		require.Len(t, logs, 1, "the log of an attempt that notes nothing more")
		require.True(t, strings.HasSuffix(logs[0].Tail, "n=999\n"))
		require.Equal(t, int64(999), p.Done)
		require.Equal(t, 1, strings.Count(log.String(), "stored again"), log)
		close(goOn)
		require.NoError(t, w.Drain(t.Context(), pawl.WaitFinished))
		require.NoError(t, stop())
	})
}
