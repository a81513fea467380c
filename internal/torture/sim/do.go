package sim

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

var queueNames = []string{"x", "y"}

// do runs one step.
func (w *world) do(op Op) {
	ctx, own := context.Background(), &tap{process: w.proc}
	switch op.Do {
	case "enqueue":
		w.enqueue(op.Jobs)
	case "pass":
		// the next step reports a violation, too
		if err := w.pass(op.For); err != nil {
			w.report("%v", err)
		}
	case "beside":
		var all sync.WaitGroup
		for _, one := range op.Beside {
			all.Go(func() { w.do(one) })
		}
		all.Wait()
	case "start":
		if w.proc.hands[op.Worker] == nil {
			w.proc.hire(op.Worker, *op.Crew)
		}
	case "stop":
		if h := w.proc.hands[op.Worker]; h != nil {
			w.stopHand(h)
			w.mu.Lock()
			w.proc.hands[op.Worker] = nil
			w.mu.Unlock()
		}
	case "stall":
		if h := w.proc.hands[op.Worker]; h != nil {
			h.stalled.Store(time.Now().Add(op.For).UnixNano())
			w.mu.Lock()
			h.impair(op.For)
			w.mu.Unlock()
		}
	case "refuse":
		w.refusing.Store(now() + int64(op.For))
		w.mu.Lock()
		for _, h := range w.proc.running() {
			h.impair(op.For)
		}
		w.mu.Unlock()
	case "crash":
		if op.N == 0 {
			w.crash(w.proc)
			return
		}
		w.mu.Lock()
		w.proc.fuse = op.N
		w.mu.Unlock()
	case "clock":
		w.wall.set(op.For, op.Keep)
	case "take":
		leases, err := own.Fetch(ctx, pawl.Request{Queues: []string{op.Queue}, Max: op.N, Wait: pawl.WaitNot})
		if err != nil && !errors.Is(err, pawl.ErrEmpty) && !errors.Is(err, pawl.ErrClosed) {
			w.report("take: %v", err)
		}
		w.registry.Lock()
		w.held = append(w.held, leases...)
		w.registry.Unlock()
	case "end":
		if l := w.lease(op.Job); l != nil {
			w.settle(ctx, own, l, op)
		}
	case "pause", "resume":
		w.setPaused(op.Queue, op.Do == "pause")
	case "reap":
		_, err := own.Reap(ctx)
		w.expect(err)
	default:
		w.operate(ctx, own, op)
	}
}

// stopHand stops a worker, which eventually gives up stuck attempts.
func (w *world) stopHand(h *hand) {
	w.mu.Lock()
	h.stopped = now()
	h.impair(drainTime)
	w.mu.Unlock()
	h.stop()
}

// expect reports an error of a call that may only fail at the end of its process.
func (w *world) expect(err error) {
	if err != nil && !errors.Is(err, pawl.ErrClosed) {
		w.report("%v", err)
	}
}

// lease returns a lease of the simulation, 0 for the newest.
func (w *world) lease(n int) *pawl.Lease {
	w.registry.Lock()
	defer w.registry.Unlock()
	if n >= len(w.held) {
		return nil
	}
	return w.held[len(w.held)-1-n]
}

// settle settles a lease of the simulation. Many of them have ended.
func (w *world) settle(ctx context.Context, own *tap, l *pawl.Lease, op Op) {
	switch op.Verb {
	case "ack":
		_ = own.Settle(ctx, l.Ack())
	case "nack":
		_ = own.Settle(ctx, l.Nack(op.For, errFailed))
	case "abandon":
		_ = own.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errFailed))
	case "release":
		_ = own.Settle(ctx, l.Release())
	case "snooze":
		_ = own.Settle(ctx, l.Snooze(op.For))
	case "extend":
		_, err := own.Extend(ctx, l)
		w.expect(err)
	}
}

// operate is a call of an operator on one job.
func (w *world) operate(ctx context.Context, own *tap, op Op) {
	w.registry.Lock()
	t := w.tracks[op.Job]
	w.registry.Unlock()
	if t == nil {
		return
	}
	r := &record{what: op.Do, job: op.Job, keep: op.Keep}
	_ = own.call(ctx, func() error {
		switch op.Do {
		case "cancel":
			return own.q.Cancel(ctx, t.id)
		case "retry":
			return own.q.Retry(ctx, t.id, op.Keep)
		case "delete":
			return own.q.Delete(ctx, t.id)
		}
		return errors.New("there is no step " + op.Do)
	}, nil, r)
}

func (w *world) setPaused(queue string, paused bool) {
	do := w.proc.q.Resume
	if paused {
		do = w.proc.q.Pause
	}
	before := now()
	err := do(context.Background(), queue)
	w.mu.Lock()
	defer w.mu.Unlock()
	unknown := err != nil || w.proc.dead || slices.ContainsFunc(w.pauses, func(p pausing) bool { return p.queue == queue && p.at == before })
	w.pauses = append(w.pauses, pausing{queue, before, paused, unknown})
}

// enqueue stores a batch.
func (w *world) enqueue(jobs []Job) {
	batch, records := make([]*pawl.Envelope, len(jobs)), make([]*record, len(jobs))
	w.registry.Lock()
	for i := range jobs {
		j := jobs[i]
		e, err := w.envelope(&j)
		if err != nil {
			w.registry.Unlock()
			w.report("job %d: %v", j.N, err)
			return
		}
		t := &track{law: law{rules: &w.rules, Job: &j}, id: e.ID, payload: e.Payload, base: span{now(), []known{{}}}}
		if j.Deadline > 0 {
			t.deadline = e.Deadline.UnixNano()
		}
		w.numbers[e.ID], w.tracks[j.N], w.order = j.N, t, append(w.order, t)
		batch[i], records[i] = e, &record{what: "enqueue", job: j.N}
	}
	w.registry.Unlock()
	own := &tap{process: w.proc}
	var done []pawl.Enqueued
	err := own.call(context.Background(), func() (err error) {
		done, err = own.q.Enqueue(context.Background(), batch...)
		return err
	}, func(err error) {
		if err != nil {
			return
		}
		for i, d := range done {
			if d.Existing {
				records[i].existing = w.numberOf(d.ID)
			}
		}
	}, records...)
	if err != nil && !errors.Is(err, pawl.ErrConflict) {
		w.expect(err)
	}
	w.mu.Lock()
	w.batches = append(w.batches, records)
	w.mu.Unlock()
}

// envelope returns the envelope of a job.
func (w *world) envelope(j *Job) (*pawl.Envelope, error) {
	opts := []pawl.Option{pawl.OnQueue(j.Queue), pawl.Priority(j.Priority), pawl.MaxRetries(j.Retries), pawl.Delay(j.Delay),
		pawl.Timeout(j.Timeout), pawl.Retain(j.Retain), pawl.IdempotencyTTL(j.TTL)}
	if j.Deadline > 0 {
		opts = append(opts, pawl.Deadline(w.wall.Now().Add(j.Deadline)))
	}
	if j.Unique != "" {
		opts = append(opts, pawl.Unique(j.Unique))
	}
	if j.Reject {
		opts = append(opts, pawl.OnConflict(pawl.Reject))
	}
	if j.Effect != "" {
		opts = append(opts, pawl.IdempotencyKey(j.Effect))
	}
	e, err := kindOf[j.Kind].Envelope(args{j.N, fill(j)}, opts...)
	if err == nil {
		e.ID = pawl.NewID(time.Now())
	}
	return e, err
}
