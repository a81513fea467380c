package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// agenda says when something falls due, for those who look at the queue beside the scheduler.
type agenda struct {
	due    time.Time // by the wall clock
	expiry time.Time // of the first lease, on monotonic time; zero without one
	skew   time.Duration
}

// publish stores the agenda of the scheduler.
func (q *Queue) publish() {
	a := &agenda{due: q.due, skew: q.skew}
	for _, h := range q.held {
		if a.expiry.IsZero() || h.expires.Before(a.expiry) {
			a.expiry = h.expires
		}
	}
	q.agenda.Store(a)
}

// tick is a call that changes nothing. The transaction makes what is due happen.
type tick struct{}

func (tick) needs(*needs)     {}
func (tick) apply(*txn) error { return nil }

// look runs fn on the queue as it is now, in a transaction that only reads: what is due has
// happened.
func (q *Queue) look(ctx context.Context, fn func(tx pgx.Tx) error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case q.intake.isClosed():
		return pawl.ErrClosed
	}
	a := q.agenda.Load()
	wall := time.Now().Add(a.skew)
	if q.opts.Now != nil {
		wall = q.opts.Now()
	}
	if !a.due.After(wall) || !a.expiry.IsZero() && !a.expiry.After(time.Now()) {
		if err := q.submit(ctx, tick{}); err != nil {
			return err
		}
	}
	err := pgx.BeginTxFunc(ctx, q.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case q.intake.isClosed():
		return pawl.ErrClosed
	}
	return explain(err)
}

// Job returns a job with its state, payload and history. [pawl.ErrNotFound] says that it is not in
// the queue: it was never there, or is done.
func (q *Queue) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	found, err := q.read(ctx, []pawl.ID{id})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("job %s: %w", id, pawl.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// listPage is how many jobs of a list are read at a time.
const listPage = 200

// Jobs iterates over the jobs that f chooses, with state, payload and history, in the order that f
// asks for. It reads the IDs at the beginning, 16 bytes for each job, and the jobs in pages: a job
// that is gone when its page is read, or that does not match any more, is left out. Each page and the
// IDs are read in a transaction of their own, which holds nobody up.
//
// An error comes with nil and is the end.
func (q *Queue) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		ids, err := q.list(ctx, f)
		for len(ids) > 0 && err == nil {
			page := ids[:min(len(ids), listPage)]
			ids = ids[len(page):]
			var jobs []*pawl.Envelope
			jobs, err = q.read(ctx, page)
			for _, e := range jobs {
				if err = ctx.Err(); err != nil {
					break
				}
				if f.Matches(e) && !yield(e, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(nil, fmt.Errorf("list jobs: %w", err))
		}
	}
}

// The orders of lists.
const (
	orderCreated = "j.id"
	orderReady   = "q.id, j.prio, j.since, j.seq"
	orderDead    = "q.id, j.since, j.seq"
	orderLeased  = "j.leased_since, j.seq"
	orderSince   = "j.since, j.seq"
)

// orderOf returns the order that a filter asks for.
func orderOf(f pawl.Filter) (order string) {
	switch {
	case f.Order == pawl.OrderCreated || f.State == "":
		order = orderCreated
	case f.State == pawl.Ready:
		order = orderReady
	case f.State == pawl.Dead && f.Order != pawl.OrderDied:
		order = orderDead
	case f.State == pawl.Leased:
		order = orderLeased
	default:
		order = orderSince
	}
	if f.Newest {
		order = strings.ReplaceAll(order, ",", " DESC,") + " DESC"
	}
	return order
}

// list returns the IDs of the jobs that a filter may choose, in its order.
func (q *Queue) list(ctx context.Context, f pawl.Filter) (ids []pawl.ID, err error) {
	if err := driver.CheckFilter(f); err != nil {
		return nil, err
	}
	var place *int16
	var leased *bool
	if f.State != "" {
		place = new(int16)
		*place = placeOf(f.State)
	}
	if f.State == pawl.Ready || f.State == pawl.Leased {
		leased = new(bool)
		*leased = f.State == pawl.Leased
	}
	err = q.look(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, q.sql(sqlList+orderOf(f)), place, leased, orNull(f.Queue), orNull(f.Kind))
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (pawl.ID, error) {
			var id pgtype.UUID
			err := row.Scan(&id)
			return id.Bytes, err
		})
		return err
	})
	return ids, err
}

// orNull returns a text as a parameter, NULL for none.
func orNull(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// read returns the jobs of some IDs that are there, in the order of the IDs.
func (q *Queue) read(ctx context.Context, ids []pawl.ID) (found []*pawl.Envelope, err error) {
	err = q.look(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, q.sql(sqlJob), uuids(ids))
		if err != nil {
			return err
		}
		jobs, err := collectJobs(rows)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if j := jobs[id]; j != nil {
				found = append(found, &j.Envelope)
			}
		}
		return q.readHistories(ctx, tx, found)
	})
	return found, err
}

// readHistories fills in the histories of jobs.
func (q *Queue) readHistories(ctx context.Context, tx pgx.Tx, jobs []*pawl.Envelope) error {
	byID := make(map[pawl.ID]*pawl.Envelope)
	var ids []pawl.ID
	for _, e := range jobs {
		if e.Failures > 0 {
			e.History = nil
			byID[e.ID] = e
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, q.sql(sqlHistory), uuids(ids))
	if err != nil {
		return err
	}
	var id pgtype.UUID
	var attempt int
	var at int64
	var text, stack []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &attempt, &at, &text, &stack}, func() error {
		e := byID[id.Bytes]
		e.History = append(e.History, pawl.Failure{Attempt: attempt, At: timeOf(at), Error: string(text), Stack: string(stack)})
		return nil
	})
	return err
}

// readBodies fills in the payloads and histories of jobs, for a condition that reads them.
func (q *Queue) readBodies(ctx context.Context, tx pgx.Tx, jobs []*pawl.Envelope) error {
	if len(jobs) == 0 {
		return nil
	}
	ids := make([]pawl.ID, len(jobs))
	for i, e := range jobs {
		ids[i] = e.ID
	}
	rows, err := tx.Query(ctx, q.sql(sqlJob), uuids(ids))
	if err != nil {
		return err
	}
	stored, err := collectJobs(rows)
	if err != nil {
		return err
	}
	for _, e := range jobs {
		if j := stored[e.ID]; j != nil {
			e.Payload = j.Payload
		}
	}
	return q.readHistories(ctx, tx, jobs)
}

// Stats counts the jobs of each queue in each state. It reads the whole table of jobs.
func (q *Queue) Stats(ctx context.Context) (stats pawl.Stats, err error) {
	err = q.look(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, q.sql(sqlStats))
		if err != nil {
			return err
		}
		var name []byte
		var paused bool
		var place *int16
		var leased *bool
		var n int
		var oldest *int64
		_, err = pgx.ForEachRow(rows, []any{&name, &paused, &place, &leased, &n, &oldest}, func() error {
			last := len(stats.Queues) - 1
			if last < 0 || stats.Queues[last].Name != string(name) {
				stats.Queues = append(stats.Queues, pawl.QueueStats{Name: string(name), Paused: paused})
				last++
			}
			if place == nil {
				return nil // a queue without a job
			}
			row := &stats.Queues[last]
			state := stateOf(*place, *leased)
			*driver.CountOf(&row.Counts, state) += n
			if state == pawl.Ready {
				row.Oldest = timeOf(*oldest)
			}
			return nil
		})
		return err
	})
	return stats, err
}
