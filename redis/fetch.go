package redis

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The limits of one fetch.
const (
	fetchJobs  = pawl.MaxBatchJobs
	fetchBytes = 8 << 20 // bytes of payloads; one job may have more
)

// Fetch implements [pawl.Queue]. A call leases at most [pawl.MaxBatchJobs] jobs, and stops at 8 MiB of payloads.
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	r, err := driver.CheckRequest(r)
	if err != nil {
		return nil, err
	}
	op := &fetch{Request: r, token: 1 + rand.Uint64N(1<<63-1)}
	if err := q.submit(ctx, op, min(r.Max, groupJobs), 0); err != nil {
		return nil, err
	}
	if len(op.leases) == 0 {
		return q.Fetch(ctx, r) // all leased jobs were damaged
	}
	return op.leases, nil
}

// fetch is a call of Fetch.
type fetch struct {
	pawl.Request
	token  uint64 // the token of all its leases
	leases []*pawl.Lease
}

type wireFetch struct {
	Verb   string          `msgpack:"v"`
	Queues []wireQueue     `msgpack:"q"`
	Kinds  map[string]bool `msgpack:"kinds,omitempty"`
	Max    int             `msgpack:"max"`
	Ahead  int             `msgpack:"ahead"`
	Share  float64         `msgpack:"share"`
	Wait   pawl.Wait       `msgpack:"wait"`
	Size   int             `msgpack:"size"`
	Token  string          `msgpack:"tk"`
	Ends   string          `msgpack:"ex"`
}

type wireQueue struct {
	Name   string `msgpack:"n"`
	Weight int    `msgpack:"w"`
}

func (op *fetch) request(g *group) any {
	w := wireFetch{
		Verb: "fetch", Max: min(op.Max, fetchJobs), Share: op.RetryShare, Wait: op.Wait, Size: fetchBytes,
		Token: tokenText(op.token), Ends: timeText(g.mono.Add(g.q.opts.Lease)),
	}
	w.Ahead = w.Max - max(min(op.Max-op.Ahead, w.Max), 0) // that many jobs can start immediately
	for _, name := range op.Queues {
		if !slices.ContainsFunc(w.Queues, func(q wireQueue) bool { return q.Name == name }) {
			w.Queues = append(w.Queues, wireQueue{name, driver.Weight(&op.Request, name)})
		}
	}
	if op.Kinds != nil {
		w.Kinds = make(map[string]bool, len(op.Kinds))
		for _, kind := range op.Kinds {
			w.Kinds[kind] = true
		}
	}
	return w
}

func (op *fetch) result(g *group, b msgpack.RawMessage) error {
	var r struct {
		IDs  []string `msgpack:"ids"`
		None bool     `msgpack:"none"`
	}
	if err := msgpack.Unmarshal(b, &r); err != nil {
		return err
	}
	switch {
	case r.None:
		return pawl.ErrEmpty
	case len(r.IDs) == 0:
		return errWait
	}
	var reader rowReader
	token := tokenText(op.token)
	for _, id := range r.IDs {
		e, m, err := reader.envelope(id, g.leased[0], g.leased[1])
		g.leased = g.leased[2:]
		if err != nil {
			g.q.setDamaged(id, token, err)
			continue
		}
		e.State, e.LeasedSince = "", timeOf("")
		l := &pawl.Lease{
			Envelope: e, Token: op.token, Length: g.q.opts.Lease, Expires: g.sent.Add(g.q.opts.Lease),
			Cancelled: new(driver.Cancellation),
		}
		held.Store(heldKey{e.ID, token}, l.Cancelled)
		if m.Cancelled != 0 {
			l.Cancelled.Fire()
		}
		op.leases = append(op.leases, l)
	}
	return nil
}

// held are the signals of the leases of this process, by heldKey. They are not part of a Queue: a lease
// outlasts the Queue that granted it, and another Queue of the process may cancel its job. The holder removes
// its lease when it settles the lease, or finds it lost.
var held sync.Map

// heldKey is a lease of this process. Its token is random.
type heldKey struct {
	id    pawl.ID
	token string
}

// setDamaged makes a leased job with an unreadable record dead.
func (q *Queue) setDamaged(id, token string, err error) {
	cause := pawl.Failure{Error: "its record is damaged: " + err.Error()}
	op := &settle{list: []wireSettlement{{ID: id, Token: token, Outcome: pawl.OutcomeAbandon, Reason: pawl.ReasonCorrupt, Error: cause.Error, Free: true}}}
	_ = q.intake.Put(newCall(context.Background(), op, 1, 0)) // if this fails, the lease expires
}
