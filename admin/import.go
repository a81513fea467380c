package admin

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"

	"github.com/gopawl/pawl"
)

// ImportOptions configures an import; nil and the zero value mean the defaults.
type ImportOptions struct {
	// KeepIDs stores the jobs under their exported IDs. Otherwise they get new IDs, so that an
	// export can be imported beside its jobs, or twice; their unique and idempotency keys stay.
	// The IDs that users gave to workflow runs stay too; the IDs of their jobs are new, and
	// Import updates rows that name another run. A signature covers the ID of its job, so Import
	// rejects signed jobs without KeepIDs. A job that a schedule waits for gets an ID that follows
	// from its exported ID, and so do the callbacks of groups.
	KeepIDs bool

	// SkipExisting skips a job if the target has its ID, or another job in the target holds its
	// unique key. It skips a workflow run if its flow has a run with its ID, together with its
	// job and the runs that wait for it. It skips a schedule or a group if the target has one of its name.
	// Otherwise each of these is a conflict, which ends the import.
	SkipExisting bool

	// DryRun stores nothing. It checks the export, and looks up which runs, and with KeepIDs
	// which job IDs, the target has.
	DryRun bool

	// Progress receives how much is done, in bytes: each job is read once to check it and once
	// to store it. Done never decreases, and equals total in the last call of a successful
	// import. It must return quickly.
	Progress func(done, total int64)
}

// Imported counts what an import did.
type Imported struct {
	Version int   // of the export; additions of a version above [ExportVersion] were ignored
	Checked int64 // valid jobs in the export
	Damaged int64 // jobs, runs, schedules and groups that were unreadable at export; the export has only their IDs

	Jobs    int64 // jobs that were stored; in a dry run, jobs that would be
	Skipped int64 // jobs that SkipExisting skipped
	Effects int64 // idempotency keys that now count as done

	Runs        int64 // of workflows that were stored; in a dry run, runs that would be
	RunsSkipped int64 // runs that SkipExisting skipped; their jobs count among Skipped

	Schedules        int64 // that were stored; in a dry run, that would be
	SchedulesSkipped int64 // that SkipExisting skipped

	Groups        int64 // that were stored; in a dry run, that would be
	GroupsSkipped int64 // that SkipExisting skipped

	Paused int64 // queues that were paused
}

// Import stores the jobs of an export in their exported states: dead jobs stay dead, completed
// records are kept until their time, waiting jobs wait. A job that was leased at export becomes
// ready. Jobs are stored in the order of their sequences, after the existing jobs; the target
// assigns its own sequences. Import pauses the paused queues of the export before their first
// job arrives, and resumes none. Keys that count as done are stored before any job.
//
// Workflow runs are stored completely before any job, so that no run continues without its rows.
// A large run takes several commits, and exists after the last one. A run that waits for a
// signal or another run checks once whether that has arrived.
//
// Groups are stored after their members, and count those. One that ended in the meantime enqueues its callbacks.
//
// Schedules are stored last, and continue where they ended: ticks since the export are late, and fire
// as their terms say. Stop the app that had them, since otherwise both apps would fire them.
//
// Import checks the whole input first. If anything is wrong with it, Import stores nothing, and
// the error matches [pawl.ErrInvalid] and names the line. The input is therefore read twice,
// from its beginning, and must not change in between; use [Spool] for a pipe. Memory is bounded
// by the longest line, at most 96 MiB, by two portions of 8 MiB, by 48 bytes for each job, and
// by a few hundred bytes and the names for each run.
//
// Jobs are stored in portions, each completely or not at all. When the import ends early, the
// jobs before the one that the error names are stored, as the result shows, and the others are
// not. With KeepIDs, repeating the import with SkipExisting continues exactly there, except that
// jobs which have since run and left the target are stored again: pause the queues, or stop the
// workers, until the import is complete. Besides the errors of the target, Import returns
// [pawl.ErrConflict] for an ID or a unique key that is taken.
func Import(ctx context.Context, a Admin, r io.ReadSeeker, opts *ImportOptions) (Imported, error) {
	if opts == nil {
		opts = new(ImportOptions)
	}
	m := importer{to: a, opts: opts, in: newLines(r), seed: maphash.MakeSeed()}
	if err := m.all(ctx); err != nil {
		return m.done, fmt.Errorf("import: %w", err)
	}
	return m.done, nil
}

// importer is an import in progress.
type importer struct {
	to   Admin
	opts *ImportOptions
	in   *lines
	seed maphash.Seed // of groups
	done Imported

	// Results of the check.
	paused  []string // queues
	effects []int64  // offsets of their lines
	jobs    []storedLine
	runs    []storedRun // in the order of their IDs

	schedules []namedLine
	awaited   map[pawl.ID]string // jobs that schedules wait for, with the name of one
	groups    []namedLine
	callbacks map[pawl.ID]bool // jobs that are callbacks of groups

	size int64 // bytes of the input
	read int64 // bytes checked and stored
}

func (m *importer) all(ctx context.Context) error {
	var err error
	if m.size, err = m.in.from.Seek(0, io.SeekEnd); err != nil {
		return m.in.seek(0)
	}
	if err := inOrder(ctx, m.check, m.leaveOutRuns, m.leaveOutSchedules, m.leaveOutGroups, m.leaveOutExisting); err != nil {
		return err
	}
	if m.opts.DryRun {
		m.done.Jobs, m.done.Runs = int64(len(m.jobs)), int64(len(m.runs))-m.done.RunsSkipped
		m.done.Schedules, m.done.Groups = int64(len(m.schedules)), int64(len(m.groups))
		m.progress(2 * m.size)
		return nil
	}
	if err := inOrder(ctx, m.pause, m.storeEffects, m.storeRuns, m.storeJobs, m.storeGroups, m.storeSchedules); err != nil {
		return err
	}
	m.progress(2 * m.size)
	return nil
}

// pause pauses the queues that are paused in the export.
func (m *importer) pause(ctx context.Context) error {
	for _, queue := range m.paused {
		if err := m.to.Pause(ctx, queue); err != nil {
			return fmt.Errorf("pause queue %q: %w; no job was stored", queue, err)
		}
		m.done.Paused++
	}
	return nil
}

func (m *importer) storeGroups(ctx context.Context) error {
	return groupRows.store(ctx, m, m.groups, &m.done.Groups)
}

func (m *importer) storeSchedules(ctx context.Context) error {
	return scheduleRows.store(ctx, m, m.schedules, &m.done.Schedules)
}

// progress reports the bytes that are done, of the input read twice.
func (m *importer) progress(done int64) {
	m.read = done
	if m.opts.Progress != nil {
		m.opts.Progress(done, 2*m.size)
	}
}

// Spool copies input that can be read only once, such as standard input, to a temporary file
// that only its owner can read, because [Import] reads its input twice. Closing the file removes
// it. On most systems the file has no name once Spool returns.
func Spool(r io.Reader) (io.ReadSeekCloser, error) {
	f, err := os.CreateTemp("", "pawl-import-*")
	if err != nil {
		return nil, fmt.Errorf("spool the input: %w", err)
	}
	s := &spooled{File: f}
	if err := os.Remove(f.Name()); err != nil {
		s.name = f.Name() // Windows cannot remove an open file
	}
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("spool the input: %w", err), s.Close())
	}
	return s, nil
}

// spooled is a temporary file.
type spooled struct {
	*os.File
	name string // to remove on Close, if any
}

// Close closes and removes the file.
func (s *spooled) Close() error {
	err := s.File.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	return err
}
