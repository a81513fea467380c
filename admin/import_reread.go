package admin

import (
	"errors"
	"fmt"
	"io"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

var errChanged = errors.New("it is not what it was when it was checked: something else writes to the export")

// reread reads a checked line again, and returns what take finds in it, and its size in bytes. Take
// reports false if the line has changed.
func reread[T any](m *importer, offset int64, take func(*exportLine) (T, bool)) (found T, size int, err error) {
	text, err := m.in.at(offset)
	if errors.Is(err, io.EOF) {
		err = errChanged
	}
	if err != nil {
		return found, 0, m.unread(offset, err)
	}
	l, err := readLine(text, m.newer())
	if err != nil {
		return found, 0, m.unread(offset, fmt.Errorf("%w: %w", errChanged, err))
	}
	found, same := take(&l)
	if !same {
		return found, 0, m.unread(offset, errChanged)
	}
	return found, len(text), nil
}

func (m *importer) rereadEffect(offset int64) (driver.Effect, int, error) {
	return reread(m, offset, func(l *exportLine) (e driver.Effect, same bool) {
		if l.Effect == nil {
			return e, false
		}
		e, err := effectToRestore(l.Effect)
		return e, err == nil
	})
}

func (m *importer) rereadJob(job storedLine) (*pawl.Envelope, int, error) {
	e, size, err := reread(m, job.offset, func(l *exportLine) (*pawl.Envelope, bool) {
		if l.Job == nil {
			return nil, false
		}
		e, err := envelopeToRestore(l.Job)
		return e, err == nil && e.ID == job.id
	})
	if err != nil {
		return nil, 0, err
	}
	run := m.runOf(job.id)
	_, awaited := m.awaited[job.id]
	switch {
	case run != nil:
		e.ID = m.newID(job.id)
		if run.waits && e.State == pawl.Delayed { // what it waits for may have arrived after its rows
			e.State = pawl.Ready
		}
	case awaited, m.callbacks[job.id]:
		e.ID = m.newID(job.id)
	case !m.opts.KeepIDs:
		e.ID = pawl.ID{}
	}
	return e, size, nil
}

// unread returns the error for a checked line that cannot be stored.
func (m *importer) unread(offset int64, cause error) error {
	return fmt.Errorf("line %d: %w; %d jobs were stored before", m.in.number(offset), cause, m.done.Jobs)
}

// Each line by itself gets the checks of [driver.CheckRestoredJob], so that all jobs are checked
// before any is stored. The exceptions depend on the target: its largest payload, and which IDs
// and keys are taken.

// envelopeToRestore returns the job of a line.
func envelopeToRestore(j *Job) (*pawl.Envelope, error) {
	if j.Delay != 0 || j.OnConflict != "" {
		return nil, invalid("job", "delay and on_conflict are for jobs that are enqueued; an export has not_before")
	}
	e, err := j.Envelope()
	if err != nil {
		return nil, err
	}
	return e, driver.CheckRestoredJob(e)
}

// effectToRestore returns the idempotency key of a line.
func effectToRestore(x *exportEffect) (driver.Effect, error) {
	e := driver.Effect{Kind: string(x.Kind), Key: string(x.Key), Until: x.Until.Time}
	return e, e.Validate()
}
