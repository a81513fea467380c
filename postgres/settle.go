package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Settle implements [pawl.Queue].
func (q *Queue) Settle(ctx context.Context, settlements ...pawl.Settlement) error {
	if err := driver.CheckSettle(settlements); err != nil {
		return err
	}
	op := &settle{settlements: settlements, failures: make([]pawl.Failure, len(settlements)), errs: make([]error, len(settlements))}
	for i := range settlements {
		op.failures[i] = driver.FailureOf(settlements[i].Cause)
	}
	if err := q.submit(ctx, op); err != nil {
		return err
	}
	return driver.SettleErrors(settlements, op.errs)
}

// settle is a call of Settle.
type settle struct {
	settlements []pawl.Settlement
	failures    []pawl.Failure
	errs        []error
}

func (op *settle) needs(n *needs) {
	for i := range op.settlements {
		l := op.settlements[i].Lease
		n.ids = append(n.ids, l.ID)
		n.member(l.Envelope)
	}
}

func (op *settle) apply(t *txn) error {
	for i := range op.settlements {
		op.errs[i] = t.end(&op.settlements[i], op.failures[i])
	}
	return nil
}

// end ends one lease, unless it is stale.
func (t *txn) end(s *pawl.Settlement, failure pawl.Failure) error {
	j, err := t.leased(s.Lease)
	if err != nil {
		acked, failed := t.wereAcked(s.Lease)
		switch {
		case failed != nil:
			return t.breaks(failed)
		case acked[keyOf(s.Lease)]:
			return nil
		}
		return err
	}
	if err := t.beginRest(j, s); err != nil {
		return err
	}
	t.End(j, s, failure)
	return nil
}

// leased returns the job of a lease, if the job still has the token of the lease. Any client may
// settle it.
func (t *txn) leased(l *pawl.Lease) (*job, error) {
	j := t.Get(l.ID)
	if j == nil || j.State != pawl.Leased || uint64(j.token) != l.Token {
		return nil, fmt.Errorf("job %s: %w", l.ID, pawl.ErrLeaseLost)
	}
	return j, nil
}

// Extend implements [pawl.Queue].
func (q *Queue) Extend(ctx context.Context, leases ...*pawl.Lease) (lost []*pawl.Lease, err error) {
	op := &extend{leases: leases}
	if err := q.submit(ctx, op); err != nil {
		return nil, err
	}
	return op.lost, nil
}

// extend is a call of Extend. It writes only the row of the process, whose lease is at least as
// long as the leases of its jobs. It looks at the jobs because other clients may have settled or
// cancelled them.
type extend struct {
	leases, lost []*pawl.Lease
}

func (op *extend) needs(*needs) {}

func (op *extend) apply(t *txn) error {
	var ids []pawl.ID
	for _, l := range op.leases {
		ids = append(ids, l.ID)
	}
	tokens, cancelled, err := t.tokens(ids)
	if err != nil {
		return err
	}
	op.lost = nil
	for _, l := range op.leases {
		h := t.q.held[l.ID]
		if h == nil || uint64(h.token) != l.Token || t.settled[l.ID] || tokens[l.ID] != h.token {
			acked, err := t.wereAcked(l)
			if err != nil {
				return err
			}
			if !acked[keyOf(l)] {
				op.lost = append(op.lost, l)
			}
			continue
		}
		t.extends[l.ID] = true
		t.after = append(t.after, func() { h.expires = t.expiry() })
		if cancelled[l.ID] {
			t.after = append(t.after, h.signal.Fire)
		}
	}
	return nil
}

// tokens reads the tokens of leased jobs, and which of these jobs were cancelled.
func (t *txn) tokens(ids []pawl.ID) (tokens map[pawl.ID]int64, cancelled map[pawl.ID]bool, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	rows, err := t.tx.Query(t.ctx, t.q.sql(sqlTokens), uuids(ids))
	if err != nil {
		return nil, nil, err
	}
	tokens, cancelled = make(map[pawl.ID]int64), make(map[pawl.ID]bool)
	var id pgtype.UUID
	var token int64
	var marked bool
	_, err = pgx.ForEachRow(rows, []any{&id, &token, &marked}, func() error {
		tokens[id.Bytes], cancelled[id.Bytes] = token, marked
		return nil
	})
	return tokens, cancelled, err
}

// expiry returns when a lease that begins or is extended now expires.
func (t *txn) expiry() time.Time { return t.mono.Add(t.q.opts.Lease) }

// Reap implements [pawl.Queue].
func (q *Queue) Reap(ctx context.Context) (int, error) {
	op := new(reap)
	if err := q.submit(ctx, op); err != nil {
		return 0, err
	}
	return op.reaped, nil
}

// reap is a call of Reap. Every transaction takes back the expired leases of its own process, so
// reap only looks for other processes, and counts.
type reap struct{ reaped int }

func (op *reap) needs(*needs) {}

func (op *reap) apply(t *txn) error {
	t.looks = true
	t.after = append(t.after, func() { op.reaped, t.reaped = t.reaped, 0 })
	return nil
}
