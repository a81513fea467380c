package postgres

import (
	"context"
	"encoding/binary"
	"iter"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/core"
)

// listKeys is how many keys are read at a time.
const listKeys = 1000

// Jobs iterates over the jobs that match f, with state, payload, and history, in the order that f
// asks for. It reads them in pages, each in a short transaction that blocks no other. A job that
// moves during the iteration may appear in its old state or in its new one, or not at all.
//
// If the record of a job is damaged, Jobs makes the job dead. An error with a nil envelope ends the
// iteration.
func (q *Queue) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return core.Jobs(ctx, f, func() core.Pager { return &page{q: q, filter: f, parts: driver.AllParts} })
}

// ListParts reads at most max jobs that match f, in the order of [Queue.Jobs], and only the given parts of each. Max is
// 1 to [pawl.MaxListed]. After is a cursor: "" for the beginning, or the Next of an earlier call with the same filter.
// A cursor stays valid after its job is gone. ListParts looks at about 16,000 jobs at most, and stops at 8 MiB of
// payloads, histories, and headers. So it may return fewer than max jobs, even none, before the end. At the end Next is
// "".
//
// It returns [pawl.ErrInvalid] for an unknown state or order, a max out of range, and a cursor of
// another list.
func (q *Queue) ListParts(ctx context.Context, f pawl.Filter, parts driver.Parts, after string, max int) (pawl.Listing, error) {
	return core.List(ctx, f, after, max, &page{q: q, filter: f, parts: parts})
}

// page is a step of a list.
type page struct {
	core.Page
	q      *Queue
	filter pawl.Filter
	parts  driver.Parts
	last   *key // nil at the beginning
}

// key is the position of a job in the order of a list. An order has only some of these columns.
type key struct {
	queue      int32
	prio       int16
	since, seq int64
	id         pgtype.UUID
}

// keySize is the size of a key in a cursor.
const keySize = 4 + 2 + 8 + 8 + 16

func (k *key) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(k.queue))
	b = binary.BigEndian.AppendUint16(b, uint16(k.prio))
	b = binary.BigEndian.AppendUint64(b, uint64(k.since))
	b = binary.BigEndian.AppendUint64(b, uint64(k.seq))
	return append(b, k.id.Bytes[:]...)
}

// Place implements [core.Pager].
func (p *page) Place() []byte { return p.last.append(nil) }

// Resume implements [core.Pager].
func (p *page) Resume(b []byte) bool {
	if len(b) != keySize {
		return false
	}
	p.last = &key{
		queue: int32(binary.BigEndian.Uint32(b)), prio: int16(binary.BigEndian.Uint16(b[4:])),
		since: int64(binary.BigEndian.Uint64(b[6:])), seq: int64(binary.BigEndian.Uint64(b[14:])),
		id: pgtype.UUID{Bytes: [16]byte(b[22:]), Valid: true},
	}
	return true
}

// Read reads at most room jobs after p.last.
func (p *page) Read(ctx context.Context, room int) error {
	var next page
	found, err := p.q.lookSound(ctx, func(tx *viewTx) ([]pawl.Listed, error) {
		next = *p
		ids, err := next.keys(ctx, tx, room)
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		return p.q.read(ctx, tx, ids, p.parts)
	})
	if err != nil {
		return err
	}
	*p = next
	p.Jobs, p.Bytes = nil, 0
	for _, listed := range found {
		if listed.Err == nil && !p.filter.Matches(listed.Job) {
			continue
		}
		p.Jobs = append(p.Jobs, listed)
		p.Bytes += driver.JobSize(listed.Job)
	}
	return nil
}

// keys reads the IDs of at most room jobs that may match the filter, and moves the page past them.
func (p *page) keys(ctx context.Context, tx Tx, room int) (ids []pawl.ID, err error) {
	limit := max(core.ListPage, min(room, listKeys))
	rows, err := tx.Query(ctx, p.q.sql(p.statement()), p.arguments(limit))
	if err != nil {
		return nil, err
	}
	var k, last key
	var chosen, full bool
	var size, bytes int
	p.Rows = 0
	_, err = pgx.ForEachRow(rows, []any{&k.queue, &k.prio, &k.since, &k.seq, &k.id, &chosen, &size}, func() error {
		if chosen && (len(ids) == room || len(ids) > 0 && bytes+size > core.ListBytes) {
			full = true
		}
		if full {
			return nil
		}
		if chosen {
			ids, bytes = append(ids, k.id.Bytes), bytes+size
		}
		last = k
		p.Rows++
		return nil
	})
	if p.End = !full && p.Rows < limit; p.Rows > 0 {
		p.last = &last
	}
	return ids, err
}

// statement returns the statement that reads the keys of the list in the filter's order.
func (p *page) statement() string {
	var text string
	switch f := p.filter; {
	case f.Order == pawl.OrderCreated || f.State == "":
		text = sqlKeysByID
	case f.State == pawl.Ready:
		text = sqlKeysOfReady
	case f.State == pawl.Leased:
		text = sqlKeysOfLeased
	case f.State == pawl.Completed:
		text = sqlKeysOfCompleted
	case f.State == pawl.Delayed:
		text = strings.ReplaceAll(sqlKeysByTime, "<place>", "1")
	case f.Order == pawl.OrderDied:
		text = strings.ReplaceAll(sqlKeysByTime, "<place>", "3")
	default:
		text = sqlKeysOfDead
	}
	after, order := ">", "ASC"
	if p.filter.Newest {
		after, order = "<", "DESC"
	}
	if p.last == nil { // the bounds are the first possible key
		after += "="
	}
	return strings.NewReplacer("<after>", after, "<order>", order, "<onward>", after[:1]+"=").Replace(text)
}

// arguments returns the arguments of the statement.
func (p *page) arguments(limit int) pgx.NamedArgs {
	f := p.filter
	first := key{prio: math.MinInt16, since: math.MinInt64, seq: math.MinInt64, id: pgtype.UUID{Valid: true}}
	if f.Newest {
		first = key{math.MaxInt32, math.MaxInt16, math.MaxInt64, math.MaxInt64, pgtype.UUID{Valid: true}}
		for i := range first.id.Bytes {
			first.id.Bytes[i] = math.MaxUint8
		}
	}
	last := first
	if p.last != nil {
		last = *p.last
	}
	args := pgx.NamedArgs{
		"limit": limit, "queue": orNull(f.Queue), "kind": orNull(f.Kind), "history": p.parts&driver.PartHistory != 0,
		"at": last.queue, "prio": last.prio, "since": last.since, "seq": last.seq, "id": last.id,
		"first_prio": first.prio, "first_since": first.since, "first_seq": first.seq,
		"died_since": nanos(f.DiedSince), "died_before": int64(math.MaxInt64), "place": nil, "leased": nil,
	}
	if !f.DiedBefore.IsZero() {
		args["died_before"] = nanos(f.DiedBefore)
	}
	if f.State != "" {
		args["place"] = placeOf(f.State)
	}
	if f.State == pawl.Ready || f.State == pawl.Leased {
		args["leased"] = f.State == pawl.Leased
	}
	return args
}

// orNull returns a text as a parameter, NULL for none.
func orNull(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}
