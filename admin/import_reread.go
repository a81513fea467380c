package admin

import (
	"errors"
	"fmt"
	"io"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

var errChanged = errors.New("it is not what it was when it was checked: something else writes to the export")

// reread reads a checked line again, and returns its size in bytes.
func (m *importer) reread(offset int64) (exportLine, int, error) {
	text, err := m.in.at(offset)
	if errors.Is(err, io.EOF) {
		err = errChanged
	}
	if err != nil {
		return exportLine{}, 0, m.unread(offset, err)
	}
	l, err := readLine(text, m.newer())
	if err != nil {
		return l, 0, m.unread(offset, fmt.Errorf("%w: %w", errChanged, err))
	}
	return l, len(text), nil
}

func (m *importer) rereadEffect(offset int64) (e driver.Effect, size int, err error) {
	l, size, err := m.reread(offset)
	if err != nil {
		return e, 0, err
	}
	if l.Effect == nil {
		return e, 0, m.unread(offset, errChanged)
	}
	if e, err = effectToRestore(l.Effect); err != nil {
		return e, 0, m.unread(offset, errChanged)
	}
	return e, size, nil
}

func (m *importer) rereadJob(job storedLine) (e *pawl.Envelope, size int, err error) {
	l, size, err := m.reread(job.offset)
	if err != nil {
		return nil, 0, err
	}
	if l.Job == nil {
		return nil, 0, m.unread(job.offset, errChanged)
	}
	if e, err = envelopeToRestore(l.Job); err != nil || e.ID != job.id {
		return nil, 0, m.unread(job.offset, errChanged)
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
