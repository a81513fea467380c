package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gopawl/pawl"
)

// How much one page of an iteration reads at most, so that it holds back no writer
// for long.
const (
	pageRows  = 1024
	pageJobs  = 512
	pageBytes = 1 << 20
)

// Jobs iterates over the jobs that f chooses, with state, payload and history, in the order
// that f asks for. In the order of the state, ready jobs come queue by queue: first runs
// before retries, then those that crashed, in the end those that wait for an idempotency key.
// The order of creation is that of the IDs.
//
// It reads in short pages, so it holds back no writer however slow the caller is.
// A job that moves meanwhile may be seen before or after the move, or not at all.
//
// A job that cannot be read comes with an error that matches [pawl.ErrCorrupt] and
// an envelope that has its ID alone; the iteration goes on behind it. An error that
// comes with nil is the end.
func (r *reader) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		for p := (page{filter: f, parts: Whole, jobs: pageJobs}); !p.end; {
			if err := r.view(ctx, p.read); err != nil {
				yield(nil, fmt.Errorf("list jobs: %w", err))
				return
			}
			for _, entry := range p.entries {
				if err := ctx.Err(); err != nil {
					yield(nil, fmt.Errorf("list jobs: %w", err))
					return
				}
				if !yield(entry.Job, entry.Err) {
					return
				}
			}
		}
	}
}

// page is one step of an iteration.
type page struct {
	filter pawl.Filter
	parts  Parts  // of each job
	jobs   int    // the most to read
	part   int    // which of the buckets is read
	last   []byte // the key of the last row that was read in it
	end    bool

	entries []Listed
	rows    int // that were read for them
	bytes   int // that the jobs carry
}

// read reads the page behind p.last.
func (p *page) read(s *store) error {
	parts, err := s.rowsOf(p.filter)
	if err != nil {
		return err
	}
	if p.part >= len(parts) {
		return errNoBookmark()
	}
	if p.last != nil && !parts[p.fromFront(len(parts))].mayBegin(p.last) {
		return errNoBookmark()
	}
	p.entries, p.rows, p.bytes = p.entries[:0], 0, 0
	for ; p.part < len(parts); p.part, p.last = p.part+1, nil {
		w := parts[p.fromFront(len(parts))].walk(p.last, p.filter.Newest)
		for k, v := w.next(); k != nil; k, v = w.next() {
			if p.rows >= pageRows || len(p.entries) >= p.jobs || p.bytes > pageBytes {
				return nil
			}
			p.rows++
			p.last = append(p.last[:0], k...)
			if e := p.entry(s, k, v); e.Job != nil {
				p.entries = append(p.entries, e)
				p.bytes += carried(e.Job)
			}
		}
		if w.err != nil {
			return w.err
		}
	}
	p.end = true
	return nil
}

// fromFront is which of so many buckets is read; a list of the newest begins with the last.
func (p *page) fromFront(parts int) int {
	if p.filter.Newest {
		return parts - 1 - p.part
	}
	return p.part
}

// carried is how many bytes a job carries that can be many.
func carried(e *pawl.Envelope) (bytes int) {
	bytes = len(e.Payload)
	for _, f := range e.History {
		bytes += failureOverhead + len(f.Error)
	}
	for key, value := range e.Headers {
		bytes += len(key) + len(value)
	}
	return bytes
}

// failureOverhead is the bytes of an entry of a history besides its text, with its key.
const failureOverhead = 16 + 4 + 4 + timeWidth + sealWidth

// rowState is the state that the rows of the page are about, "" for those of all jobs.
func (p *page) rowState() pawl.State {
	if p.filter.Order == pawl.OrderCreated {
		return ""
	}
	return p.filter.State
}

// entry reads the job of a row. It is empty when the filter leaves the job out.
func (p *page) entry(s *store, k, v []byte) Listed {
	said := p.rowState()
	id, err := rowID(said, k, v)
	if err != nil {
		return Listed{damaged(id, time.Time{}), fmt.Errorf("row %x: %w", k, err)}
	}
	j, err := s.listed(id)
	if err != nil {
		return Listed{damaged(id, time.Time{}), corrupt(err)}
	}
	f := p.filter
	f.State = ""
	if !f.Matches(j.Envelope) { // the other parts of a job that is left out are not read
		return Listed{}
	}
	at, err := s.where(j.Envelope)
	if err == nil && said == "" && p.filter.State != "" && at.state != p.filter.State {
		return Listed{}
	}
	if err == nil && said != "" && at.state != said {
		err = fmt.Errorf("job %s: %w: a row says that it is %s, its record leads to %s", id, pawl.ErrCorrupt, said, at.state)
	}
	var e *pawl.Envelope
	if err == nil {
		e, err = s.complete(j, at, p.parts)
	}
	if err != nil {
		return Listed{damaged(id, time.Time{}), corrupt(err)}
	}
	return Listed{e, nil}
}

// rowID is the ID of the job that a row of a state belongs to: its key, or what its
// value begins with.
func rowID(state pawl.State, k, sealed []byte) (id pawl.ID, err error) {
	v := k
	if state != "" && state != pawl.Leased {
		if v, err = unseal(k, sealed, -1); err != nil {
			return id, err
		}
		v = v[:min(len(v), len(id))]
	}
	if len(v) != len(id) {
		return id, fmt.Errorf("%w: an ID of %d bytes", pawl.ErrCorrupt, len(v))
	}
	return pawl.ID(v), nil
}

// corrupt says of a row whose job is missing that the file is damaged.
func corrupt(err error) error {
	if errors.Is(err, pawl.ErrNotFound) {
		return fmt.Errorf("%w: a row leads to no job: %w", pawl.ErrCorrupt, err)
	}
	return err
}
