package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// The most that one page of an iteration reads, so that it does not delay a writer for long.
const (
	pageRows  = 1024
	pageJobs  = 512
	pageBytes = 1 << 20
)

// Jobs iterates over the jobs that match f, with state, payload and history, in the order set
// by f. In the order of the state, ready jobs are grouped by queue: first attempts before
// retries, then jobs that crashed, then jobs that wait for an idempotency key. The order of
// creation is the order of IDs.
//
// It reads in short pages, so it delays no writer, however slow the caller is. A job that moves
// during the iteration may appear before or after the move, or not at all.
//
// An unreadable job comes with an error that matches [pawl.ErrCorrupt] and an envelope that has
// only its ID. The iteration continues after it. An error with a nil envelope is the end.
func (r *reader) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		for p := (page{filter: f, parts: driver.AllParts, jobs: pageJobs}); !p.end; {
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
	parts  driver.Parts // of each job
	jobs   int          // limit of jobs
	part   int          // the current range of rows
	last   []byte       // the key of the last row read in it
	end    bool

	entries []pawl.Listed
	rows    int // how many rows were read for the jobs
	bytes   int // size of the jobs' variable parts
}

// read reads the page after p.last.
func (p *page) read(s *store) error {
	parts, err := s.rowsOf(p.filter)
	if err != nil {
		return err
	}
	if p.part >= len(parts) {
		return driver.BadCursor()
	}
	if p.last != nil && !parts[p.fromFront(len(parts))].mayBegin(p.last) {
		return driver.BadCursor()
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
				p.bytes += driver.JobSize(e.Job)
			}
		}
		if w.err != nil {
			return w.err
		}
	}
	p.end = true
	return nil
}

// fromFront returns the index of a range out of n. A list of the newest begins with the last
// range.
func (p *page) fromFront(parts int) int {
	if p.filter.Newest {
		return parts - 1 - p.part
	}
	return p.part
}

// rowState returns the state of the rows of the page, or "" for the rows of all jobs.
func (p *page) rowState() pawl.State {
	if p.filter.Order == pawl.OrderCreated {
		return ""
	}
	return p.filter.State
}

// entry reads the job of a row. It returns an empty entry if the filter excludes the job.
func (p *page) entry(s *store, k, v []byte) pawl.Listed {
	said := p.rowState()
	id, err := rowID(said, k, v)
	if err != nil {
		return pawl.Listed{Job: damaged(id, time.Time{}), Err: fmt.Errorf("row %x: %w", k, err)}
	}
	j, err := s.listed(id)
	if err != nil {
		return pawl.Listed{Job: damaged(id, time.Time{}), Err: corrupt(err)}
	}
	f := p.filter
	f.State = ""
	if !f.Matches(j.Envelope) { // an excluded job's other parts are not read
		return pawl.Listed{}
	}
	at, err := s.where(j.Envelope)
	if err == nil && said == "" && p.filter.State != "" && at.state != p.filter.State {
		return pawl.Listed{}
	}
	if err == nil && said != "" && at.state != said {
		err = fmt.Errorf("job %s: %w: a row says that it is %s, its record leads to %s", id, pawl.ErrCorrupt, said, at.state)
	}
	var e *pawl.Envelope
	if err == nil {
		e, err = s.complete(j, at, p.parts)
	}
	if err != nil {
		return pawl.Listed{Job: damaged(id, time.Time{}), Err: corrupt(err)}
	}
	return pawl.Listed{Job: e}
}

// rowID returns the ID of the job that owns a state row: its key, or the start of its value.
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

// corrupt returns an ErrCorrupt for a row whose job is missing.
func corrupt(err error) error {
	if errors.Is(err, pawl.ErrNotFound) {
		return fmt.Errorf("%w: a row leads to no job: %w", pawl.ErrCorrupt, err)
	}
	return err
}
