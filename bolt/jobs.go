package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
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
	pageJobs  = 64
	pageBytes = 1 << 20
)

// Jobs iterates over the jobs that f chooses, with state, payload and history. With
// a state in the filter they come in the order of that state: ready ones queue by
// queue as they would be fetched, first runs before retries, those that crashed behind
// both, and in the end those that wait for an idempotency key; dead ones queue by
// queue as they died; completed ones as their records end. Otherwise they come in the order of their IDs, which
// is that in which they were made.
//
// It reads in short pages, so it holds back no writer however slow the caller is.
// A job that moves meanwhile may be seen before or after the move, or not at all.
//
// A job that cannot be read comes with an error that matches [pawl.ErrCorrupt] and
// an envelope that has its ID alone; the iteration goes on behind it. An error that
// comes with nil is the end.
func (r *reader) Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error] {
	return func(yield func(*pawl.Envelope, error) bool) {
		for p := (page{filter: f, jobs: pageJobs}); !p.end; {
			if err := r.view(ctx, p.read); err != nil {
				yield(nil, fmt.Errorf("list jobs: %w", err))
				return
			}
			for _, entry := range p.entries {
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
	jobs   int    // the most to read
	part   int    // which of the ranges of rows is read
	last   []byte // the key of the last row that was read in it
	end    bool

	entries []Listed
	rows    int // that were read for them
	bytes   int // that the jobs carry
}

// read reads the page behind p.last.
func (p *page) read(s *store) error {
	ranges, err := s.rangesOf(p.filter)
	if err != nil {
		return err
	}
	if p.part >= len(ranges) || p.last != nil && !bytes.HasPrefix(p.last, ranges[p.part].prefix) {
		return errNoBookmark()
	}
	p.entries, p.rows, p.bytes = p.entries[:0], 0, 0
	for ; p.part < len(ranges); p.part, p.last = p.part+1, nil {
		prefix := ranges[p.part].prefix
		c := ranges[p.part].bucket.Cursor()
		k, v := c.Seek(prefix)
		if p.last != nil {
			if k, v = c.Seek(p.last); bytes.Equal(k, p.last) {
				k, v = c.Next()
			}
		}
		for ; k != nil && bytes.HasPrefix(k, prefix); k, v = c.Next() {
			if p.last != nil && bytes.Compare(k, p.last) <= 0 {
				return fmt.Errorf("%w: the keys of a page are out of order", pawl.ErrCorrupt)
			}
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
	}
	p.end = true
	return nil
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

// rows are those of a bucket whose keys have a prefix.
type rows struct {
	bucket *table
	prefix []byte
}

// rangesOf is where the jobs of a filter are found.
func (s *store) rangesOf(f pawl.Filter) ([]rows, error) {
	var prefix []byte
	if f.Queue != "" && (f.State == pawl.Ready || f.State == pawl.Dead) {
		n, _, err := s.number(f.Queue) // 0, which no queue has, for one that is not there
		if err != nil {
			return nil, err
		}
		prefix = binary.BigEndian.AppendUint32(nil, uint32(n))
	}
	switch f.State {
	case "":
		return []rows{{s.jobs, nil}}, nil
	case pawl.Ready:
		return []rows{{s.ready, prefix}, {s.delayed, []byte{waitsForKey}}}, nil
	case pawl.Delayed:
		return []rows{{s.delayed, []byte{waitsForTime}}}, nil
	case pawl.Parked:
		return []rows{{s.delayed, []byte{waitsForKind}}}, nil
	case pawl.Leased:
		return []rows{{s.leased, nil}}, nil
	case pawl.Dead:
		return []rows{{s.failed, prefix}}, nil
	case pawl.Completed:
		return []rows{{s.completed, nil}}, nil
	}
	return nil, &pawl.InvalidError{Field: "state", Reason: fmt.Sprintf("%q is none of %v", f.State, pawl.States())}
}

// entry reads the job of a row. It is empty when the filter leaves the job out.
func (p *page) entry(s *store, k, v []byte) Listed {
	id, err := rowID(p.filter.State, k, v)
	if err != nil {
		return Listed{damaged(id, time.Time{}), fmt.Errorf("row %x: %w", k, err)}
	}
	f := p.filter
	f.State = ""              // which the row is about
	if f != (pawl.Filter{}) { // payload and history of a job that is left out are not read
		j, err := s.record(id)
		if err != nil {
			return Listed{damaged(id, time.Time{}), corrupt(err)}
		}
		if !f.Matches(j.Envelope) {
			return Listed{}
		}
	}
	e, err := s.job(id)
	if err != nil {
		return Listed{damaged(id, time.Time{}), corrupt(err)}
	}
	if said := p.filter.State; said != "" && e.State != said {
		return Listed{damaged(id, time.Time{}), fmt.Errorf("job %s: %w: a row says that it is %s, its record leads to %s", id, pawl.ErrCorrupt, said, e.State)}
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
