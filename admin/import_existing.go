package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopawl/pawl"
)

// leaveOutExisting finds which of the jobs, which are sorted by ID, the target has. Jobs with new IDs are in no target.
func (m *importer) leaveOutExisting(ctx context.Context) error {
	if !m.opts.KeepIDs {
		return nil
	}
	existing := make([]bool, len(m.jobs))
	if err := m.markExisting(ctx, existing); err != nil {
		return fmt.Errorf("look which jobs are there already: %w; nothing was stored", err)
	}
	first := slices.Index(existing, true)
	if first < 0 {
		return nil
	}
	conflict := m.jobs[first]
	left := m.jobs[:0]
	for i, job := range m.jobs {
		if !existing[i] {
			left = append(left, job)
		}
	}
	n := int64(len(m.jobs) - len(left))
	if !m.opts.SkipExisting {
		return fmt.Errorf("line %d: job %s: %w: the target has it already, as it has %d of %d jobs of the export; nothing was stored; SkipExisting leaves them out",
			m.in.number(conflict.offset), conflict.id, pawl.ErrConflict, n, len(m.jobs))
	}
	m.done.Skipped += n
	m.jobs = left
	return nil
}

// markExisting marks the jobs that the target has. It looks up a few jobs one by one, and many
// by a list of all jobs.
func (m *importer) markExisting(ctx context.Context, existing []bool) error {
	if len(m.jobs) <= MaxLimit {
		for i, job := range m.jobs {
			_, err := m.to.Job(ctx, job.id)
			if existing[i] = err == nil || errors.Is(err, pawl.ErrCorrupt); !existing[i] && !errors.Is(err, pawl.ErrNotFound) {
				return err
			}
		}
		return nil
	}
	for e, err := range Jobs(ctx, m.to, Query{Detail: IDs}) {
		if e == nil {
			return err
		}
		i, found := slices.BinarySearchFunc(m.jobs, e.ID, func(job storedLine, id pawl.ID) int {
			return bytes.Compare(job.id[:], id[:])
		})
		if found {
			existing[i] = true
		}
	}
	return nil
}
