package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// life is one process of a soak.
type life struct {
	*ledger
	path     string
	kills    int // processes that were killed in this round
	q        *bolt.Queue
	deadJobs deadJobs
	seq      atomic.Uint64 // the highest sequence of a job so far
	lastSeq  uint64        // the highest sequence when the queue was last opened

	progress atomic.Int64 // rises with every event
	waiting  atomic.Bool  // it waits for the next round

	off func() error // ends the work; nil without work

	wrongs sync.Mutex
	found  []error
}

// leaseLength exceeds any delay of a live process, so no lease may expire.
const leaseLength = time.Minute

func (l *life) options() *bolt.Options {
	return &bolt.Options{Logger: hclog.NewNullLogger(), Lease: leaseLength, OnEvent: l.event}
}

// open opens the queue.
func (l *life) open() (err error) {
	l.lastSeq = l.seq.Load()
	l.q, err = bolt.Open(l.path, l.options())
	return err
}

// wrong records a violation. The round ends soon.
func (l *life) wrong(err error) {
	l.wrongs.Lock()
	defer l.wrongs.Unlock()
	if len(l.found) < 5 {
		l.found = append(l.found, err)
	}
}

// violation returns the violations, nil for none.
func (l *life) violation() error {
	l.wrongs.Lock()
	defer l.wrongs.Unlock()
	return errors.Join(l.found...)
}

// work starts two workers, the operator and a reader. Workers handle all kinds, or all but
// one.
func (l *life) work(all bool) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, o := range []worker.Options{
		{Concurrency: 8, Weights: map[string]int{"a": 3}},
		{Concurrency: 2, RetryShare: 0.5},
	} {
		o.Queues, o.Logger, o.Policy = queues, hclog.NewNullLogger(), pawl.Fixed(time.Millisecond)
		o.Drain = time.Millisecond
		w := worker.New(l.q, &o)
		worker.Handle(w, kind, l.handle)
		if all {
			worker.Handle(w, lateKind, l.handle)
		}
		running.Go(func() {
			if err := w.Run(ctx); err != nil {
				l.wrong(fmt.Errorf("a worker ended: %w", err))
			}
			if n := w.Stuck(); n > 0 {
				l.wrong(fmt.Errorf("%d handlers are stuck", n))
			}
		})
	}
	running.Go(func() { l.operate(ctx) })
	running.Go(func() { l.read(ctx) })
	l.off = func() error {
		cancel()
		running.Wait()
		l.off = nil
		return l.violation()
	}
}

// rest ends the work. Every lease has been released or settled.
func (l *life) rest() error {
	if l.off == nil {
		return nil
	}
	return l.off()
}
