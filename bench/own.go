package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bench/system"
	"github.com/gopawl/pawl/bolt"
)

// The cases that need more than a Queue, or more time than peers would give them.

const (
	smallestBacklog = 10_000
	portion         = 10_000                 // jobs that a backlog grows by before it shrinks again
	settling        = 2 * time.Second        // until a process that started is idle, at most
	poll            = 2 * time.Millisecond   // of a count that should come to 0
	glance          = 100 * time.Millisecond // from one look at an idle process to the next
	rowSize         = 512                    // bytes in the file for a job of 100 B, roughly
	loneRounds      = 100                    // commits of which the lone one is the median
)

// Units.
const (
	seconds   = "s"
	perMinute = "/min"
	ratio     = "ratio"
)

func ownCases() []benchCase {
	// The names are fixed, the sizes are the trial's: a case whose size the trial
	// leaves out reports nothing.
	cases := []benchCase{{
		name:    "backlog-10k",
		about:   "10 thousand ready jobs: 64 producers add 10 thousand, then 16 no-op workers take as many, again and again",
		peers:   func(t *trial, q system.Queue) error { return t.backlogged(q, smallestBacklog) },
		ceiling: func(t *trial) error { return t.ceilingBacklog(smallestBacklog) },
	}}
	for _, b := range []struct {
		name, words string
		jobs        int
	}{
		{"100k", "100 thousand", 100_000},
		{"1M", "a million", 1_000_000},
		{"10M", "10 million", 10_000_000},
	} {
		cases = append(cases, benchCase{
			name:    "backlog-" + b.name,
			about:   "the same on " + b.words + " ready jobs",
			own:     func(t *trial) error { return t.ownBacklog(b.jobs) },
			once:    b.jobs > 1_000_000,
			ceiling: func(t *trial) error { return t.ceilingBacklog(b.jobs) },
		})
	}
	return append(cases,
		benchCase{
			name:    "due",
			about:   "a million delayed jobs fall due in one second, while one producer goes on; the ceiling is a lone commit",
			own:     fallingDue,
			ceiling: loneCommit,
		},
		benchCase{
			name:  "open",
			about: "opening a file of a million ready jobs: after a clean close, and after kills, with and without 100 thousand leased jobs",
			own:   opening,
		},
		benchCase{
			name:  "idle",
			about: "a process that holds 100 thousand jobs delayed until tomorrow, and 16 idle workers, beside a program that does nothing",
			own:   idling,
			once:  true,
		},
		benchCase{
			name:  "space",
			about: "the file after a million jobs through a backlog of a thousand, and the same with a read transaction held open at first",
			own:   spacing,
			once:  true,
		},
		benchCase{
			name:    "allocs",
			about:   "enqueue and run of a job, 64 a commit; the ceiling moves 64 a commit",
			own:     allocating,
			ceiling: ceilingAllocs,
		},
		benchCase{
			name:    "writes",
			about:   "bytes written to the file for each byte of 64 KiB payloads, from enqueue to ack",
			own:     writing,
			ceiling: ceilingWrites,
		},
	)
}

// ownBacklog is backlogged on pawl alone. A second queue with the smallest backlog takes
// turns with it, so that the ratio of the two leaves out what the disk does meanwhile.
func (t *trial) ownBacklog(jobs int) error {
	if !slices.Contains(t.backlog, jobs) {
		return nil
	}
	if err := t.room(jobs); err != nil {
		return err
	}
	return t.onPawl(filepath.Join(t.dir, "large"), func(large *system.PawlQueue) error {
		return t.onPawl(filepath.Join(t.dir, "small"), func(little *system.PawlQueue) error {
			if err := errors.Join(t.store(jobs, large.EnqueueAll), t.store(smallestBacklog, little.EnqueueAll)); err != nil {
				return err
			}
			var l, s turns
			for l.took() < 2*t.limit {
				if err := errors.Join(t.turn(large, &l), t.turn(little, &s)); err != nil {
					return err
				}
			}
			t.report("enqueue", l.storeRate(), perSecond)
			t.report("drain", l.drainRate(), perSecond)
			t.report("enqueue-to-10k", l.storeRate()/s.storeRate(), ratio)
			t.report("drain-to-10k", l.drainRate()/s.drainRate(), ratio)
			return nil
		})
	})
}

// backlogged measures at a backlog that stays about as large as it is: it grows by a
// portion and shrinks by as much, in turns, until both together took twice the limit.
// A portion is the same at every size, so that what it costs to start workers is too.
func (t *trial) backlogged(q system.Queue, jobs int) error {
	if err := t.store(jobs, q.EnqueueAll); err != nil {
		return err
	}
	var all turns
	for all.took() < 2*t.limit {
		if err := t.turn(q, &all); err != nil {
			return err
		}
	}
	t.report("enqueue", all.storeRate(), perSecond)
	t.report("drain", all.drainRate(), perSecond)
	return nil
}

// turns are portions that went into a queue and out of it.
type turns struct {
	stored, done      int
	storing, draining time.Duration
}

func (s *turns) took() time.Duration { return s.storing + s.draining }

func (s *turns) storeRate() float64 { return float64(s.stored) / s.storing.Seconds() }

func (s *turns) drainRate() float64 { return float64(s.done) / s.draining.Seconds() }

// turn has 64 producers add a portion, and 16 no-op workers take as much.
func (t *trial) turn(q system.Queue, s *turns) error {
	n, took, err := t.produceUpTo(portion, func() error { return q.Enqueue(t.ctx, small) })
	s.stored, s.storing = s.stored+n, s.storing+took
	if err != nil {
		return err
	}
	n, took, err = t.drain(q, workers, n)
	s.done, s.draining = s.done+n, s.draining+took
	return err
}

// room refuses a backlog that the disk may not hold with ease.
func (t *trial) room(jobs int) error {
	free, err := freeSpace(t.dir)
	if need := 3 * int64(jobs) * rowSize; err == nil && free < need {
		return fmt.Errorf("skipped: %d MiB are free on the disk, of %d MiB that are three times the file of %d jobs", free>>20, need>>20, jobs)
	}
	return nil
}

// store calls enqueueAll until it has stored so many jobs.
func (t *trial) store(jobs int, enqueueAll func(context.Context, [][]byte) error) error {
	batch := slices.Repeat([][]byte{small}, bulk)
	for jobs > 0 {
		batch = batch[:min(len(batch), jobs)]
		if err := enqueueAll(t.ctx, batch); err != nil {
			return err
		}
		jobs -= len(batch)
	}
	return nil
}

// produceUpTo is produce by 64 producers, which end early when there are n jobs.
func (t *trial) produceUpTo(n int, enqueue func() error) (int, time.Duration, error) {
	enough := errors.New("enough")
	var begun atomic.Int64
	stored, took, err := t.produce(producers, func() error {
		if begun.Add(1) > int64(n) {
			return enough
		}
		return enqueue()
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return stored, took, err
}

// onPawl runs fn on the queue in a folder, which it makes if need be.
func (t *trial) onPawl(dir string, fn func(*system.PawlQueue) error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	q, err := system.OpenPawl(dir)
	if err != nil {
		return err
	}
	return errors.Join(fn(q), q.Close())
}

// fallingDue has the queue go by a clock that is set to the second in which all jobs
// are due as soon as they are stored: with the real one they might be due before, or
// everybody would have to wait.
func fallingDue(t *trial) error {
	const patience = 5 * time.Minute
	var ahead atomic.Int64 // of the real clock
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	inner, err := bolt.Open(filepath.Join(t.dir, system.PawlFile), &bolt.Options{Logger: hclog.NewNullLogger(), Now: now})
	if err != nil {
		return err
	}
	q := &system.PawlQueue{Queue: inner}
	defer q.Close()
	due := now().Add(24 * time.Hour)
	err = t.store(t.million, func(ctx context.Context, batch [][]byte) error {
		return q.EnqueueWith(ctx, batch, pawl.At(due))
	})
	if err != nil {
		return err
	}

	ctx, stop := context.WithTimeout(t.ctx, patience)
	defer stop()
	var (
		wg       sync.WaitGroup
		allReady time.Duration
		polling  error
		all      []time.Duration
	)
	ahead.Store(int64(time.Until(due)))
	began := time.Now()
	wg.Go(func() {
		polling = until(ctx, q, func(c pawl.Counts) bool { return c.Delayed == 0 })
		allReady = time.Since(began)
		stop()
	})
	for ctx.Err() == nil && err == nil {
		called := time.Now()
		err = q.Enqueue(t.ctx, small)
		all = append(all, time.Since(called))
	}
	stop()
	wg.Wait()
	if err = errors.Join(err, polling); err != nil {
		return err
	}
	slices.Sort(all)
	t.report("enqueue-p50", milli(percentile(all, 50)), milliseconds)
	t.report("enqueue-p99", milli(percentile(all, 99)), milliseconds)
	t.report("all-ready", allReady.Seconds(), seconds)
	return q.Close()
}

// until polls the counts of all queues until they are as wanted.
func until(ctx context.Context, q *system.PawlQueue, wanted func(pawl.Counts) bool) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		stats, err := q.Stats(ctx)
		if err != nil {
			return err
		}
		var counts pawl.Counts
		for _, one := range stats.Queues {
			counts.Add(one.Counts)
		}
		if wanted(counts) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: the queue still has %+v", context.Cause(ctx), counts)
		}
	}
}

// opening times what an app waits for when it starts.
func opening(t *trial) error {
	dir := filepath.Join(t.dir, "queue")
	err := t.onPawl(dir, func(q *system.PawlQueue) error { return t.store(t.million, q.EnqueueAll) })
	if err != nil {
		return err
	}
	var all []opened
	open := func(metric, dir string) error {
		o, err := t.open(dir)
		all = append(all, o)
		t.report(metric, milli(o.took), milliseconds)
		return err
	}
	if err := open("clean-warm", dir); err != nil {
		return err
	}
	// A process that was killed leaves two things to do: to find the free pages, and to
	// take back what it had leased. The first kill leaves the first alone.
	for _, killed := range []struct {
		metric string
		leased int
	}{{"killed-unleased", 0}, {"killed", t.million / 10}} {
		if err := t.killed(dir, killed.leased); err != nil {
			return err
		}
		// Each time on a copy, since opening repairs what the kill left.
		for _, state := range []struct {
			name    string
			prepare func(path string) error
		}{{"warm", readWhole}, {"cold", dropCache}} {
			sub := filepath.Join(t.dir, killed.metric+"-"+state.name)
			path, err := copyQueue(sub, dir)
			if err == nil {
				err = state.prepare(path)
			}
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			if err == nil {
				err = open(killed.metric+"-"+state.name, sub)
			}
			if err = errors.Join(err, os.RemoveAll(sub)); err != nil {
				return err
			}
		}
	}
	most := func(of func(opened) float64) float64 {
		return of(slices.MaxFunc(all, func(a, b opened) int { return cmp.Compare(of(a), of(b)) }))
	}
	t.report("recovered", most(func(o opened) float64 { return milli(o.recovered) }), milliseconds)
	t.report("heap", most(func(o opened) float64 { return o.heap }), mebibytes)
	return nil
}

// opened is what one opening of a queue cost.
type opened struct {
	took      time.Duration
	recovered time.Duration // from then on until nothing was leased any more
	heap      float64       // MiB
}

func (t *trial) open(dir string) (o opened, err error) {
	before := heap()
	began := time.Now()
	q, err := system.OpenPawl(dir)
	o.took = time.Since(began)
	if err != nil {
		return o, err
	}
	err = until(t.ctx, q, func(c pawl.Counts) bool { return c.Leased == 0 })
	o.recovered = time.Since(began) - o.took
	o.heap = mib(max(0, heap()-before))
	return o, errors.Join(err, q.Close())
}

// heap is what is left of it after a collection. The second one takes what the first
// left to finalizers and pools.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// killed leaves the queue in a folder as a process leaves it that was killed while it
// had leased so many jobs.
func (t *trial) killed(dir string, leased int) error {
	p, err := t.start(roleLease, dir, fmt.Sprint(leased))
	if err != nil {
		return err
	}
	p.kill()
	return nil
}

// copyQueue copies the file of a queue to a new folder and syncs it.
func copyQueue(to, from string) (path string, err error) {
	if err := os.Mkdir(to, 0o755); err != nil {
		return "", err
	}
	in, err := os.Open(filepath.Join(from, system.PawlFile))
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(to, system.PawlFile))
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	return out.Name(), errors.Join(err, out.Close())
}

// readWhole brings a file into the page cache.
func readWhole(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// idling watches two processes from outside: one with a queue, and one without, whose
// wake-ups are the runtime's own.
func idling(t *trial) error {
	err := t.onPawl(t.dir, func(q *system.PawlQueue) error {
		return t.store(t.million/10, func(ctx context.Context, batch [][]byte) error {
			return q.EnqueueWith(ctx, batch, pawl.Delay(24*time.Hour))
		})
	})
	if err != nil {
		return err
	}
	queue, err := t.start(roleIdle, t.dir)
	if err != nil {
		return err
	}
	defer queue.kill()
	empty, err := t.start(roleEmpty)
	if err != nil {
		return err
	}
	defer empty.kill()

	file := filepath.Join(t.dir, system.PawlFile)
	if err := t.wait(min(settling, t.idle)); err != nil {
		return err
	}
	from, err := lastCommit(file)
	if err != nil {
		return err
	}
	w, none := watch{pid: queue.pid()}, watch{pid: empty.pid()}
	ticker := time.NewTicker(glance)
	defer ticker.Stop()
	for ; w.last.at.Sub(w.first.at) < t.idle; <-ticker.C {
		if err := errors.Join(w.look(), none.look(), t.ctx.Err()); err != nil {
			return err
		}
	}
	to, err := lastCommit(file)
	t.report("commits", float64(to-from)/w.minutes(), perMinute)
	for _, p := range []struct {
		suffix string
		watch
	}{{"", w}, {"-empty-program", none}} {
		t.report("wake-ups"+p.suffix, float64(p.wakeUps)/p.minutes(), perMinute)
		t.report("switches"+p.suffix, float64(p.last.switches-p.first.switches)/p.minutes(), perMinute)
		t.report("cpu"+p.suffix, milli(p.last.cpu-p.first.cpu)/p.minutes(), "ms/min")
	}
	return err
}

func (t *trial) wait(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// usage is what a process has used up to a moment.
type usage struct {
	at       time.Time
	switches int64         // voluntary ones of the context, in all threads
	cpu      time.Duration // of all threads
}

// watch is what was seen of a process at glances.
//
// A single timer of a Go program makes dozens of switches, since a thread of the runtime
// looks after the others in short naps until all sleep again. So the switches between two
// glances are one wake-up, and those around one glance too.
type watch struct {
	pid         int
	first, last usage
	wakeUps     int
	awake       int // the glances in a row that found switches
}

func (w *watch) look() error {
	u, err := usageOf(w.pid)
	if err != nil {
		return err
	}
	switch {
	case w.first.at.IsZero():
		w.first = u
	case u.switches == w.last.switches:
		w.awake = 0
	default:
		if w.awake%2 == 0 {
			w.wakeUps++
		}
		w.awake++
	}
	w.last = u
	return nil
}

func (w *watch) minutes() float64 { return w.last.at.Sub(w.first.at).Minutes() }

// spacing ends each run by a clean close, which may add a list of the free pages. The
// reader comes when a tenth of the jobs is done, so that it meets the queue at work.
func spacing(t *trial) error {
	const backlog = 1000
	for _, run := range []struct {
		metric string
		held   time.Duration
	}{{"file", 0}, {"file-reader", t.reader}} {
		dir := filepath.Join(t.dir, run.metric)
		err := t.onPawl(dir, func(q *system.PawlQueue) error {
			var (
				wg      sync.WaitGroup
				done    atomic.Int64
				reading error
			)
			err := t.flow(q, producers, t.million, backlog, small, func(n int64) {
				done.Store(n)
				if n == int64(t.million/10) && run.held > 0 {
					wg.Go(func() { reading = t.hold(q, run.held, &done) })
				}
			})
			wg.Wait()
			return errors.Join(err, reading)
		})
		if err != nil {
			return err
		}
		n, err := fileSize(filepath.Join(dir, system.PawlFile))
		if err != nil {
			return err
		}
		t.report(run.metric, mib(n), mebibytes)
	}
	return nil
}

// hold keeps a read transaction open, and reports how many jobs were done meanwhile.
func (t *trial) hold(q *system.PawlQueue, d time.Duration, done *atomic.Int64) error {
	return q.View(t.ctx, func(*bbolt.Tx) error {
		from, began := done.Load(), time.Now()
		err := t.wait(d)
		t.rate("jobs-reader", int(done.Load()-from), time.Since(began))
		return err
	})
}

// flow takes so many jobs through a queue, by producers and 16 no-op workers, with at
// most room of them in it. Ran is told how many have run, after each.
func (t *trial) flow(q system.Queue, producers, jobs, room int, payload []byte, ran func(n int64)) error {
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	inside := make(chan struct{}, room)
	var (
		wg    sync.WaitGroup
		begun atomic.Int64
		done  atomic.Int64
		first firstError
	)
	for range producers {
		wg.Go(func() {
			for begun.Add(1) <= int64(jobs) {
				select {
				case inside <- struct{}{}:
				case <-ctx.Done():
					return
				}
				if err := q.Enqueue(t.ctx, payload); err != nil {
					first.set(err)
					stop()
					return
				}
			}
		})
	}
	err := q.Work(ctx, workers, func([]byte) {
		<-inside
		n := done.Add(1)
		ran(n)
		if n == int64(jobs) {
			stop()
		}
	})
	stop()
	wg.Wait()
	return cmp.Or(first.err, err, t.ctx.Err())
}

// allocating has 128 producers: while those of one commit wait, those of the next
// gather, so that a commit stores somewhat less than 64 jobs, and leases and completes as
// many.
func allocating(t *trial) error {
	return t.onPawl(t.dir, func(q *system.PawlQueue) error {
		return t.allocated(func(jobs int) error {
			return t.flow(q, 2*producers, jobs, 8*producers, small, func(int64) {})
		})
	})
}

// allocated reports what a job allocates in run, once pools and caches are warm.
func (t *trial) allocated(run func(jobs int) error) error {
	jobs := min(50_000, t.million/5)
	if err := run(jobs / 20); err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := run(jobs)
	runtime.ReadMemStats(&after)
	t.report("allocs", float64(after.Mallocs-before.Mallocs)/float64(jobs), "allocs/job")
	t.report("bytes", float64(after.TotalAlloc-before.TotalAlloc)/float64(jobs), "B/job")
	return err
}

func writing(t *trial) error {
	return t.onPawl(t.dir, func(q *system.PawlQueue) error {
		return t.written(func(jobs int, payload []byte) error {
			return t.flow(q, producers, jobs, 2*producers, payload, func(int64) {})
		})
	})
}

// written reports what this process writes in run for a byte of payload. Nothing else
// in it writes meanwhile.
func (t *trial) written(run func(jobs int, payload []byte) error) error {
	const payload = 64 << 10
	jobs := max(256, t.million/500)
	before, err := bytesWritten()
	if err != nil {
		return err
	}
	if err := run(jobs, make([]byte, payload)); err != nil {
		return err
	}
	after, err := bytesWritten()
	t.report("written", float64(after-before)/float64(jobs*payload), "B/B")
	return err
}
