package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// check reads the whole export, and records where the items to store are. It stores nothing.
func (m *importer) check(ctx context.Context) error {
	if err := m.in.seek(0); err != nil {
		return err
	}
	c := checking{importer: m, queues: make(map[Text]bool), named: make(map[string]bool), grouped: make(map[string]bool)}
	m.awaited, m.callbacks = make(map[pawl.ID]string), make(map[pawl.ID]bool)
	for number := int64(1); ; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		offset := m.in.next
		text, err := m.in.read()
		switch {
		case errors.Is(err, io.EOF):
			return c.end()
		case err == nil:
			err = c.line(text, offset)
		case !errors.Is(err, errLongLine):
			return fmt.Errorf("line %d: %w; nothing was stored", number, err)
		}
		if err != nil {
			return fmt.Errorf("%w export: line %d: %w; nothing was stored", pawl.ErrInvalid, number, err)
		}
		if m.in.next-m.read >= progressBytes {
			m.progress(m.in.next)
		}
	}
}

// progressBytes is the number of bytes between calls of Progress.
const progressBytes = 1 << 20

// checking is the check in progress.
type checking struct {
	*importer
	queues  map[Text]bool   // queues that have a line
	named   map[string]bool // schedules that have a line
	grouped map[string]bool // groups that have a line
	seen    exportEnd       // lines so far
	rows    workflow.RowsCheck
	runAt   int64 // where the current run begins
	ended   bool  // the last line was read
}

// end checks what only the whole export shows.
func (c *checking) end() error {
	if !c.ended {
		return fmt.Errorf("%w export: it does not end with a line {\"end\": …}, so it was cut; nothing was stored: export again", pawl.ErrInvalid)
	}
	c.progress(c.size)
	c.done.Checked, c.done.Damaged = c.seen.Jobs, c.seen.Damaged
	if err := c.refuseTwinRuns(); err != nil {
		return err
	}
	return c.refuseTwins()
}

// line checks the line that begins at an offset.
func (c *checking) line(text []byte, offset int64) error {
	if c.ended {
		return errors.New("it stands behind the last line {\"end\": …}; import one export at a time")
	}
	if err := strictJSON(text, lineElements, fieldLevels); err != nil {
		return err
	}
	if offset == 0 {
		h, err := readHeader(text)
		c.done.Version = h.Version
		return err
	}
	l, err := readLine(text, c.newer())
	if err != nil {
		return err
	}
	if l.Run == nil && c.rows.Within() {
		return errApart
	}
	switch {
	case l.Queue != nil:
		c.seen.Queues++
		return c.queue(*l.Queue)
	case l.Job != nil:
		c.seen.Jobs++
		return c.job(l.Job, offset)
	case l.Run != nil:
		return c.run(l.Run, offset)
	case l.Schedule != nil:
		c.seen.Schedules++
		return c.schedule(l.Schedule, offset)
	case l.Group != nil:
		c.seen.Groups++
		return c.exportedGroup(l.Group, offset)
	case l.Damaged != nil:
		c.seen.Damaged++
	case l.Effect != nil:
		c.seen.Effects++
		c.effects = append(c.effects, offset)
		_, err = effectToRestore(l.Effect)
		return err
	case *l.End != c.seen:
		return fmt.Errorf("it counts %d queues, %d jobs, %d effects, %d damaged jobs, %d runs, %d schedules and %d groups, but there are %d, %d, %d, %d, %d, %d and %d: lines were lost or added",
			l.End.Queues, l.End.Jobs, l.End.Effects, l.End.Damaged, l.End.Runs, l.End.Schedules, l.End.Groups,
			c.seen.Queues, c.seen.Jobs, c.seen.Effects, c.seen.Damaged, c.seen.Runs, c.seen.Schedules, c.seen.Groups)
	default:
		c.ended = true
	}
	return nil
}

func (c *checking) queue(q exportQueue) error {
	if err := driver.CheckQueue(string(q.Name)); err != nil {
		return err
	}
	if c.queues[q.Name] {
		return fmt.Errorf("queue %q has a line already", q.Name)
	}
	c.queues[q.Name] = true
	if q.Paused {
		c.paused = append(c.paused, string(q.Name))
	}
	return nil
}

func (c *checking) job(j *Job, offset int64) error {
	e, err := envelopeToRestore(j)
	if err != nil {
		return err
	}
	switch {
	case len(e.Signature) > 0 && !c.opts.KeepIDs:
		return fmt.Errorf("job %s is signed, and its signature names its ID: import with KeepIDs", e.ID)
	case e.ID.IsZero() && c.opts.KeepIDs:
		return invalid("id", "there is none to keep")
	}
	line := storedLine{id: e.ID, rank: e.Seq, offset: offset}
	c.group(&line, e)
	c.jobs = append(c.jobs, line)
	return nil
}

// newer reports whether the export may contain fields that this version does not know.
func (m *importer) newer() bool { return m.done.Version > ExportVersion }

// refuseTwins looks for duplicate IDs in the export, and leaves the jobs sorted by ID.
func (m *importer) refuseTwins() error {
	slices.SortFunc(m.jobs, func(a, b storedLine) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.offset, b.offset))
	})
	for i := 1; i < len(m.jobs); i++ {
		first, second := m.jobs[i-1], m.jobs[i]
		if first.id == second.id && !first.id.IsZero() {
			return m.twins(first.offset, second.offset, fmt.Sprintf("job %s", second.id))
		}
	}
	return nil
}

// twins is the error for something that is on two lines.
func (m *importer) twins(first, second int64, what string) error {
	return fmt.Errorf("%w export: line %d: %s is in line %d already; nothing was stored", pawl.ErrInvalid, m.in.number(second), what, m.in.number(first))
}
