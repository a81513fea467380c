package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// portionBytes limits a portion by the size of a request to a running app. A larger job is a
// portion by itself. Together with the optional parts of each line and the overhead of a
// request, it also keeps a portion below a thousand jobs. Within this process there is no
// request: each portion is a commit, and fewer commits are faster.
const (
	portionBytes = 1 << 20
	localBytes   = 8 << 20
	lineExtra    = 1 << 10
)

// portionOf returns how many bytes are stored at once in a target.
func portionOf(to Admin) int {
	switch to.(type) {
	case local, offlineQueue:
		return localBytes
	}
	return portionBytes
}

// storeEffects stores the effects that count as done. Repeating it is safe: the later time
// counts.
func (m *importer) storeEffects(ctx context.Context) error {
	p := portions[driver.Effect]{m: m, store: func(portion []driver.Effect) error {
		if err := m.to.Restore(ctx, nil, portion); err != nil {
			return fmt.Errorf("store the idempotency keys that count as done: %w; no job was stored", err)
		}
		m.done.Effects += int64(len(portion))
		return nil
	}}
	for _, offset := range m.effects {
		if err := p.add(m.rereadEffect(offset)); err != nil {
			return err
		}
	}
	return p.flush()
}

// portions collects what to store besides jobs, and stores a portion when it is full.
type portions[T any] struct {
	m     *importer
	store func(portion []T) error
	items []T
	size  int
}

// add adds an item that was read again, whose line has n bytes.
func (p *portions[T]) add(item T, n int, err error) error {
	if err != nil {
		return err
	}
	if p.size+n+lineExtra > portionBytes {
		if err := p.flush(); err != nil {
			return err
		}
	}
	p.items, p.size = append(p.items, item), p.size+n+lineExtra
	p.m.read += int64(n)
	return nil
}

// flush stores what is left.
func (p *portions[T]) flush() error {
	if len(p.items) == 0 {
		return nil
	}
	if err := p.store(p.items); err != nil {
		return err
	}
	p.items, p.size = nil, 0
	p.m.progress(p.m.read)
	return nil
}

// storeJobs stores the jobs in their order. A portion ends when it is full, or before a group
// that does not fit into it completely, unless the portion is empty.
//
// It reads the next portion while one is being stored.
func (m *importer) storeJobs(ctx context.Context) (err error) {
	order(m.jobs)
	var p portion
	under := new(storing)
	defer func() {
		if waitErr := m.finish(ctx, under); err == nil {
			err = waitErr
		}
	}()
	most := portionOf(m.to)
	for i, job := range m.jobs {
		e, n, err := m.rereadJob(job)
		if err != nil {
			return err
		}
		if len(p.jobs) > 0 && p.size+n+lineExtra > most {
			end := len(p.jobs)
			for from := i - end; end > 0 && sameGroup(m.jobs, from+end); {
				end--
			}
			if end == 0 {
				end = len(p.jobs)
			}
			full, rest := p.cut(end)
			if err := m.finish(ctx, under); err != nil {
				return err
			}
			under = m.begin(ctx, full)
			m.progress(m.read)
			p = rest
		}
		p.add(e, job, n+lineExtra)
		m.read += int64(n)
	}
	if err := m.finish(ctx, under); err != nil || len(p.jobs) == 0 {
		return err
	}
	under = m.begin(ctx, p)
	return nil
}

// storing is a portion that is being stored.
type storing struct {
	portion
	done chan error // nil while nothing is stored
}

// begin begins to store a portion.
func (m *importer) begin(ctx context.Context, p portion) *storing {
	s := &storing{p, make(chan error, 1)}
	go func() { s.done <- m.to.Restore(ctx, p.jobs, nil) }()
	return s
}

// finish waits once until a portion is stored.
func (m *importer) finish(ctx context.Context, s *storing) error {
	if s.done == nil {
		return nil
	}
	err := <-s.done
	s.done = nil
	return m.stored(ctx, s.portion, err)
}

// portion is stored in one call.
type portion struct {
	jobs  []*pawl.Envelope
	lines []storedLine // of the jobs
	sizes []int        // upper bounds of their sizes in a request
	size  int          // sum of sizes
}

func (p *portion) add(e *pawl.Envelope, line storedLine, size int) {
	p.jobs, p.lines, p.sizes, p.size = append(p.jobs, e), append(p.lines, line), append(p.sizes, size), p.size+size
}

// cut returns the first n jobs, and the others.
func (p *portion) cut(n int) (first, rest portion) {
	for i := range p.jobs {
		part := &first
		if i >= n {
			part = &rest
		}
		part.add(p.jobs[i], p.lines[i], p.sizes[i])
	}
	return first, rest
}

// store stores a portion. If it is refused because of one job, store divides it until that job
// is alone and all jobs before it are stored.
func (m *importer) store(ctx context.Context, p portion) error {
	return m.stored(ctx, p, m.to.Restore(ctx, p.jobs, nil))
}

// stored continues store after Restore returned an error for the portion.
func (m *importer) stored(ctx context.Context, p portion, err error) error {
	if err == nil {
		m.done.Jobs += int64(len(p.jobs))
		return nil
	}
	if causedByJob(err) {
		if cut := m.divide(p.lines); cut > 0 {
			first, rest := p.cut(cut)
			if err := m.store(ctx, first); err != nil {
				return err
			}
			return m.store(ctx, rest)
		}
	}
	if m.opts.SkipExisting && errors.Is(err, pawl.ErrConflict) {
		m.done.Skipped++
		return nil
	}
	return m.notStored(p.lines, err)
}

// divide returns where to divide a portion: as close to its middle as possible without dividing
// a group, or 0 for no division. A group is divided only to find out which of its jobs can be
// skipped.
func (m *importer) divide(lines []storedLine) int {
	middle := len(lines) / 2
	for d := 0; d < len(lines); d++ {
		for _, cut := range [...]int{middle - d, middle + d} {
			if cut > 0 && cut < len(lines) && !sameGroup(lines, cut) {
				return cut
			}
		}
	}
	if m.opts.SkipExisting {
		return middle
	}
	return 0
}

// causedByJob reports whether a single job may be the reason that a portion was refused.
func causedByJob(err error) bool {
	return isAny(err, pawl.ErrConflict, pawl.ErrInvalid, pawl.ErrPayloadTooLarge, pawl.ErrBatchTooLarge)
}

// notStored returns an error that says where an import ended, and how to continue.
func (m *importer) notStored(lines []storedLine, cause error) error {
	what := fmt.Sprintf("line %d: job %s", m.in.number(lines[0].offset), lines[0].id)
	if more := len(lines) - 1; more > 0 {
		what += fmt.Sprintf(" and %d that go with it", more)
	}
	state := "not stored"
	if errors.Is(cause, pawl.ErrUnknownOutcome) || !causedByJob(cause) {
		state = "perhaps not stored"
	}
	advice := "importing again would store these twice; with KeepIDs it would not"
	if m.opts.KeepIDs {
		advice = "importing again with SkipExisting goes on behind them"
	}
	return fmt.Errorf("%s: %s: %w; %d jobs were stored before: %s", what, state, cause, m.done.Jobs, advice)
}
