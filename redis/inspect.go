package redis

import (
	"context"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Job returns a job with its state, payload, and history. It returns [pawl.ErrNotFound] if the job is
// not in the queue, because it never was or because it is done.
func (q *Queue) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	found, _, err := q.read(ctx, []string{string(id[:])}, driver.AllParts)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	case found[0].Err != nil:
		return nil, found[0].Err
	}
	return found[0].Job, nil
}

// readJobs is how many jobs are read at a time.
const readJobs = 200

// read reads parts of the jobs that exist, in the order of ids, and the rows of all of them.
func (q *Queue) read(ctx context.Context, ids []string, parts driver.Parts) (jobs []pawl.Listed, rows map[string]string, err error) {
	rows = make(map[string]string)
	for len(ids) > 0 {
		n := min(len(ids), readJobs)
		op := &get{parts: parts, wire: wireGet{Verb: "get", IDs: ids[:n]}}
		switch {
		case parts&driver.PartHistory != 0:
			op.wire.History = 2
		case parts&driver.PartLastFailure != 0:
			op.wire.History = 1
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err := q.submit(ctx, op, n, 0); err != nil {
			return nil, nil, err
		}
		for i, found := range op.found {
			rows[ids[i]] = found.Row
		}
		jobs, ids = append(jobs, op.jobs...), ids[n:]
	}
	return jobs, rows, nil
}

// get is a call that reads jobs.
type get struct {
	parts driver.Parts
	wire  wireGet
	found []wireJob
	jobs  []pawl.Listed
}

type wireGet struct {
	Verb    string   `msgpack:"v"`
	IDs     []string `msgpack:"ids"`
	History int      `msgpack:"h"` // 1 for the last entry, 2 for all
}

type wireJob struct {
	Row     string   `msgpack:"m"`
	Record  string   `msgpack:"b"`
	History []string `msgpack:"h"`
}

func (op *get) request(*group) any { return op.wire }

func (op *get) result(_ *group, b msgpack.RawMessage) error {
	var r struct {
		Jobs []wireJob `msgpack:"r"`
	}
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	op.found, op.jobs = r.Jobs, nil
	var reader rowReader
	for i, found := range r.Jobs {
		if found.Row == "" {
			continue
		}
		id := op.wire.IDs[i]
		e, _, err := reader.envelope(id, found.Row, found.Record)
		if err == nil {
			e.History, err = historyOf(id, found.History)
		}
		if err != nil {
			op.jobs = append(op.jobs, pawl.Listed{Job: &pawl.Envelope{ID: idOf(id)}, Err: err})
			continue
		}
		if op.parts&driver.PartPayload == 0 {
			e.Payload = nil
		}
		op.jobs = append(op.jobs, pawl.Listed{Job: e})
	}
	return nil
}

// Stats returns how many jobs each queue has in each state. It reads counts, not jobs.
func (q *Queue) Stats(ctx context.Context) (pawl.Stats, error) {
	if ctx.Err() != nil {
		return pawl.Stats{}, ctx.Err()
	}
	op := new(stats)
	if err := q.submit(ctx, op, 1, 0); err != nil {
		return pawl.Stats{}, err
	}
	op.stats.Storage = pawl.Storage{Format: format, Free: -1}
	return op.stats, nil
}

// stats is a call of Stats.
type stats struct{ stats pawl.Stats }

func (*stats) request(*group) any { return verb{"stats"} }

func (op *stats) result(_ *group, b msgpack.RawMessage) error {
	var r struct {
		Rows []struct {
			Name   string `msgpack:"n"`
			Paused bool   `msgpack:"p"`
			Oldest string `msgpack:"o"`
			Counts
		} `msgpack:"r"`
	}
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	op.stats = pawl.Stats{}
	for _, row := range r.Rows {
		s := pawl.QueueStats{Name: row.Name, Paused: row.Paused, Counts: row.counts()}
		if row.Oldest != "" {
			s.Oldest = timeOf(row.Oldest)
		}
		op.stats.Queues = append(op.stats.Queues, s)
	}
	return nil
}

// Counts are the counts of a queue as the script returns them. It is exported for the decoder.
type Counts struct {
	Ready     int `msgpack:"r"`
	Delayed   int `msgpack:"d"`
	Leased    int `msgpack:"l"`
	Dead      int `msgpack:"x"`
	Completed int `msgpack:"c"`
}

func (c Counts) counts() pawl.Counts {
	return pawl.Counts{Ready: c.Ready, Delayed: c.Delayed, Leased: c.Leased, Dead: c.Dead, Completed: c.Completed}
}
