package redis

import (
	"context"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Enqueue implements [pawl.Queue].
func (q *Queue) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	if err := driver.SupportsJobs(abilities, jobs...); err != nil {
		return nil, err
	}
	bytes, err := driver.CheckBatch(jobs, q.opts.MaxPayload)
	if err != nil {
		return nil, err
	}
	op := &put{jobs: make([]pawl.Envelope, len(jobs)), plain: true}
	for i, e := range jobs {
		op.jobs[i] = *e
		op.plain = op.plain && isPlain(e)
	}
	err = q.submit(ctx, op, len(jobs), bytes)
	return op.done, err
}

// put is a call of Enqueue.
type put struct {
	jobs  []pawl.Envelope // as given; once sent, as stored
	plain bool            // all jobs are plain; see isPlain
	done  []pawl.Enqueued
}

// pack adds the plain jobs of a call to a group.
func (op *put) pack(g *group, runs []plainRun, args []any) ([]plainRun, []any) {
	for i := range op.jobs {
		e := &op.jobs[i]
		driver.Accept(e, g.now)
		runs = addPlain(runs, e, g.now)
		args = append(args, e.ID[:], driver.AppendRecord(nil, e, 0))
	}
	return runs, args
}

type wirePut struct {
	Verb string   `msgpack:"v"`
	Jobs []stored `msgpack:"jobs"`
}

func (op *put) request(g *group) any {
	w := wirePut{Verb: "put", Jobs: make([]stored, len(op.jobs))}
	for i := range op.jobs {
		e := &op.jobs[i]
		driver.Accept(e, g.now)
		w.Jobs[i] = storedOf(e)
	}
	return w
}

// refusal is why the script changed nothing.
type refusal struct {
	Error string `msgpack:"e"`
	Index int    `msgpack:"i"`
	ID    string `msgpack:"id"`
	State string `msgpack:"st"`
	Again bool   `msgpack:"again"`
}

func (op *put) result(_ *group, b msgpack.RawMessage) error {
	var r struct {
		refusal
		Jobs [][]msgpack.RawMessage `msgpack:"r"`
	}
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	switch r.Error {
	case "taken":
		return fmt.Errorf("job %s: %w: the queue holds a job of this ID already", idOf(r.ID), pawl.ErrConflict)
	case "unique":
		return fmt.Errorf("unique key %q: %w: job %s, which is %s, has it", op.jobs[r.Index-1].UniqueKey, pawl.ErrConflict, idOf(r.ID), stateOf(r.State))
	}
	op.done = make([]pawl.Enqueued, len(r.Jobs))
	for i, pair := range r.Jobs {
		var id string
		if err := msgpack.Unmarshal(pair[0], &id); err != nil {
			return err
		}
		if err := msgpack.Unmarshal(pair[1], &op.done[i].Existing); err != nil {
			return err
		}
		op.done[i].ID = idOf(id)
	}
	return nil
}

// presume sets the results that the jobs have if they are stored.
func (op *put) presume() {
	op.done = make([]pawl.Enqueued, len(op.jobs))
	for i := range op.jobs {
		op.done[i].ID = op.jobs[i].ID
	}
}
