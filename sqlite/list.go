package sqlite

import (
	"bytes"
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

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

// ListParts reads at most max jobs that match f, in the order of [Queue.Jobs], and only the given
// parts of each. Max is 1 to [pawl.MaxListed]. After is a cursor: "" for the beginning, or the Next of
// an earlier call with the same filter. A cursor stays valid after its job is gone.
//
// ListParts looks at about 16,000 jobs at most, and stops at 8 MiB of payloads, histories, and
// headers. So it may return fewer than max jobs, even none, before the end. At the end Next is "".
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
	queue, prio, since, seq int64
	id                      pawl.ID
}

// keySize is the size of a key in a cursor.
const keySize = 4*8 + len(pawl.ID{})

func (k *key) append(b []byte) []byte {
	for _, n := range []int64{k.queue, k.prio, k.since, k.seq} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return append(b, k.id[:]...)
}

func (k *key) compare(other *key) int {
	return cmp.Or(cmp.Compare(k.queue, other.queue), cmp.Compare(k.prio, other.prio), cmp.Compare(k.since, other.since),
		cmp.Compare(k.seq, other.seq), bytes.Compare(k.id[:], other.id[:]))
}

// Place implements [core.Pager].
func (p *page) Place() []byte { return p.last.append(nil) }

// Resume implements [core.Pager].
func (p *page) Resume(b []byte) bool {
	if len(b) != keySize {
		return false
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[8*i:])) }
	p.last = &key{queue: number(0), prio: number(1), since: number(2), seq: number(3), id: pawl.ID(b[32:])}
	return true
}

// Read reads at most room jobs after p.last.
func (p *page) Read(ctx context.Context, room int) error {
	var next page
	found, err := p.q.lookSound(ctx, func(c conn) ([]pawl.Listed, error) {
		next = *p
		ids, err := next.keys(c, room)
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		return readParts(c, ids, p.parts)
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

// keyRow is a row of a stream.
type keyRow struct {
	key
	line, place int64
	bytes       int
}

// keys reads the IDs of at most room jobs that may match the filter, and moves the page past them.
func (p *page) keys(c conn, room int) (ids []pawl.ID, err error) {
	ls, err := readLines(c)
	if err != nil {
		return nil, err
	}
	limit := max(core.ListPage, min(room, listKeys))
	p.Rows = 0
	for _, streams := range p.streams(ls) {
		left := limit - p.Rows
		if left <= 0 {
			return ids, nil
		}
		rows, err := p.merge(c, streams, left)
		if err != nil {
			return nil, err
		}
		size := 0
		for i := range rows {
			r := &rows[i]
			chosen := p.chooses(ls, r)
			if chosen && (len(ids) == room || len(ids) > 0 && size+r.bytes > core.ListBytes) {
				return ids, nil
			}
			if chosen {
				ids, size = append(ids, r.id), size+r.bytes
			}
			p.last = &r.key
			p.Rows++
		}
		if len(rows) == left {
			return ids, nil
		}
	}
	p.End = true
	return ids, nil
}

// chooses reports whether a job may match the filter.
func (p *page) chooses(ls *lines, r *keyRow) bool {
	f, name := p.filter, ls.names[r.line]
	return (f.State == "" || f.State == stateOf(r.place)) && (f.Kind == "" || name.kind == f.Kind) &&
		(f.Queue == "" || name.queue != nil && name.queue.name == f.Queue)
}

// merge reads the first rows of several streams, in the order of the list.
func (p *page) merge(c conn, streams []stream, limit int) (rows []keyRow, err error) {
	for _, s := range streams {
		last := p.last
		if last == nil || s.queue != 0 && last.queue != s.queue {
			last = s.first(p.filter.Newest)
		}
		err := c.query(s.statement(p), func(v []sqldriver.Value) error {
			r := keyRow{key: key{queue: s.queue, prio: number(v[0]), since: number(v[1]), seq: number(v[2])},
				line: number(v[4]), place: number(v[5]), bytes: int(number(v[6]))}
			copy(r.id[:], bytesOf(v[3]))
			rows = append(rows, r)
			return nil
		}, append(s.arguments(p, last), int64(limit))...)
		if err != nil {
			return nil, err
		}
	}
	if len(streams) > 1 {
		slices.SortFunc(rows, func(a, b keyRow) int {
			if p.filter.Newest {
				return b.compare(&a.key)
			}
			return a.compare(&b.key)
		})
	}
	return rows[:min(len(rows), limit)], nil
}

// stream is a set of rows that an index has in the order of a list.
type stream struct {
	queue int64  // if the list goes queue by queue
	where string // condition for the rows
	order string // the columns of the order
	args  []sqldriver.Value
}

// streams returns the streams of the list, in groups. The groups follow one another, and the streams
// of a group are merged.
func (p *page) streams(ls *lines) (groups [][]stream) {
	f := p.filter
	died := []sqldriver.Value{nanos(f.DiedSince), int64(math.MaxInt64)}
	if !f.DiedBefore.IsZero() {
		died[1] = nanos(f.DiedBefore)
	}
	of := func(l *line) (streams []stream) {
		for kind, id := range l.kinds {
			switch {
			case f.Kind != "" && f.Kind != kind:
			case f.State == pawl.Ready:
				for lane := range int64(6) {
					for _, where := range []string{"place = 2 AND line = ? AND lane = ?", "place = 1 AND line = ? AND lane = ?"} {
						streams = append(streams, stream{l.id, where, "prio, since, seq", []sqldriver.Value{id, lane}})
					}
				}
			case f.State == pawl.Dead && f.Order == pawl.OrderDied:
				streams = append(streams, stream{0, "place = 5 AND line = ? AND since BETWEEN ? AND ?", "since, seq", append([]sqldriver.Value{id}, died...)})
			case f.State == pawl.Dead:
				streams = append(streams, stream{l.id, "place = 5 AND line = ? AND since BETWEEN ? AND ?", "since, seq", append([]sqldriver.Value{id}, died...)})
			case f.State == pawl.Delayed:
				streams = append(streams, stream{0, "place = 3 AND line = ?", "since, seq", []sqldriver.Value{id}})
			case f.State == pawl.Leased:
				streams = append(streams, stream{0, "place = 4 AND line = ?", "leased_since, seq", []sqldriver.Value{id}})
			}
		}
		return streams
	}
	switch {
	case f.Order == pawl.OrderCreated || f.State == "":
		return [][]stream{{{0, "true", "id", nil}}}
	case f.State == pawl.Completed:
		return [][]stream{{{0, "place = 6", "since, seq", nil}}}
	}
	queues := slices.SortedFunc(maps.Values(ls.queues), func(a, b *line) int {
		if f.Newest {
			a, b = b, a
		}
		return cmp.Compare(a.id, b.id)
	})
	apart := f.State == pawl.Ready || f.State == pawl.Dead && f.Order != pawl.OrderDied
	var all []stream
	for _, l := range queues {
		switch {
		case f.Queue != "" && f.Queue != l.name:
		case !apart:
			all = append(all, of(l)...)
		case p.last == nil || l.id == p.last.queue || (l.id > p.last.queue) != f.Newest:
			groups = append(groups, of(l))
		}
	}
	if !apart {
		groups = append(groups, all)
	}
	return groups
}

// statement returns the statement that reads a stream after a key.
func (s stream) statement(p *page) string {
	after, order := ">", " ASC"
	if p.filter.Newest {
		after, order = "<", " DESC"
	}
	if p.last == nil || s.queue != 0 && p.last.queue != s.queue {
		after += "="
	}
	columns := strings.Split(s.order, ", ")
	since, prio := "0", "0"
	for _, column := range columns {
		switch column {
		case "since", "leased_since":
			since = column
		case "prio":
			prio = column
		}
	}
	size := "length(payload)"
	if p.parts&driver.PartHistory != 0 {
		size += " + COALESCE((SELECT sum(40 + length(error) + length(stack)) FROM pawl_history h WHERE h.seq = j.seq), 0)"
	}
	return fmt.Sprintf("SELECT %s, %s, %s, id, line, place, %s FROM pawl_job j WHERE %s AND (%s) %s (%s) ORDER BY %s LIMIT ?",
		prio, since, seqOf(columns), size, s.where, s.order, after, strings.Repeat(", ?", len(columns))[2:],
		strings.Join(columns, order+", ")+order)
}

// seqOf returns the sequence if the order has it, which is then a part of the key.
func seqOf(columns []string) string {
	if slices.Contains(columns, "seq") {
		return "seq"
	}
	return "0"
}

// arguments returns the arguments of the statement, without its limit.
func (s stream) arguments(p *page, last *key) []sqldriver.Value {
	args := slices.Clone(s.args)
	for _, column := range strings.Split(s.order, ", ") {
		switch column {
		case "prio":
			args = append(args, last.prio)
		case "since", "leased_since":
			args = append(args, last.since)
		case "seq":
			args = append(args, last.seq)
		case "id":
			args = append(args, last.id[:])
		}
	}
	return args
}

// first returns the first key that a stream can have, or the last one if newest is set.
func (s stream) first(newest bool) *key {
	if !newest {
		return &key{prio: math.MinInt64, since: math.MinInt64, seq: math.MinInt64}
	}
	k := &key{prio: math.MaxInt64, since: math.MaxInt64, seq: math.MaxInt64}
	for i := range k.id {
		k.id[i] = math.MaxUint8
	}
	return k
}
