package redis

import (
	"context"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Restore stores effects, and jobs in the state of their envelopes, atomically. Use it for jobs and
// effects that a list of this queue or another one has returned. Use Enqueue for new jobs.
//
// A job keeps its attempts, crashes, history, the time and reason of its death, and the end of its
// retention. It also keeps its State, with these exceptions:
//
//   - A leased job becomes ready, in its old place. No crash is counted. A waiting or leased job
//     that was cancelled becomes dead.
//   - A delayed job whose time has come becomes ready. A waiting job whose deadline has passed
//     becomes dead, and a completed record whose retention has ended is removed.
//   - A ready job with a NotBefore in the future counts as ready from now on.
//
// A job with a zero ID gets an ID. A job without Queue, Origin, Created or NotBefore gets what an
// enqueue would set. Each job gets a sequence, in the order of jobs. Restore ignores Delay, OnConflict and
// LeasedSince, and leaves its arguments unchanged. For effects the later Until counts. Restore emits
// [pawl.EventEnqueued] for each job, and also [pawl.EventDied] for each job that becomes dead.
//
// Errors: those of [driver.CheckRestore]; [pawl.ErrConflict] if the queue has a job of that ID, or
// if a job and a stored job share a unique key and each is in a state that blocks the other. Jobs of
// one call do not block each other.
func (q *Queue) Restore(ctx context.Context, jobs []*pawl.Envelope, effects []driver.Effect) error {
	if len(jobs)+len(effects) == 0 {
		return nil
	}
	if err := driver.SupportsRestore(abilities, jobs, effects); err != nil {
		return err
	}
	if err := driver.CheckRestore(jobs, effects, q.opts.MaxPayload); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	bytes := 0
	for _, e := range jobs {
		bytes += driver.JobSize(e)
	}
	return q.submit(ctx, &restore{jobs: jobs, effects: effects}, len(jobs)+len(effects), bytes)
}

// restore is a call of Restore.
type restore struct {
	jobs    []*pawl.Envelope
	arrived []pawl.Envelope
	effects []driver.Effect
}

type wireRestore struct {
	Verb    string       `msgpack:"v"`
	Jobs    []stored     `msgpack:"jobs"`
	Effects []wireEffect `msgpack:"effects"`
}

type wireEffect struct {
	Field string `msgpack:"f"`
	Until string `msgpack:"til"`
}

func (op *restore) request(g *group) any {
	w := wireRestore{Verb: "restore", Jobs: make([]stored, len(op.jobs)), Effects: make([]wireEffect, len(op.effects))}
	op.arrived = make([]pawl.Envelope, len(op.jobs))
	for i, given := range op.jobs {
		e := &op.arrived[i]
		*e = *given
		driver.Arrive(e, g.now)
		w.Jobs[i] = storedOf(e)
		for _, f := range e.History {
			w.Jobs[i].History = append(w.Jobs[i].History, failureText(f))
		}
	}
	for i, e := range op.effects {
		w.Effects[i] = wireEffect{e.Kind + "\x00" + e.Key, timeText(e.Until)}
	}
	return w
}

func (op *restore) result(_ *group, b msgpack.RawMessage) error {
	var r refusal
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	switch i := r.Index - 1; r.Error {
	case "taken":
		return fmt.Errorf("restore: job %d, %s: %w: the queue holds a job of this ID already", i, op.arrived[i].ID, pawl.ErrConflict)
	case "unique":
		return fmt.Errorf("restore: job %d, %s: %w: job %s, which is %s, has its unique key %q",
			i, op.arrived[i].ID, pawl.ErrConflict, idOf(r.ID), stateOf(r.State), op.arrived[i].UniqueKey)
	}
	return nil
}
