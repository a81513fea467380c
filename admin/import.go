package admin

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
)

// ImportOptions are the settings of an import; nil and the zero value are the defaults.
type ImportOptions struct {
	// KeepIDs stores the jobs under the IDs that they have. Otherwise they get new ones, so
	// that an export can be imported beside its jobs, or twice; their unique and their
	// idempotency keys stay. So do the IDs that users gave to runs of workflows; those of
	// their jobs are new, and what names a run in the rows of others is changed. A signature
	// names the ID of its job, so signed jobs are refused without KeepIDs.
	KeepIDs bool

	// SkipExisting leaves out jobs whose ID the target has, and those whose unique key
	// another job of it holds, and runs of workflows whose flow has a run of their ID, with
	// their jobs and the runs that wait for them. Otherwise they are a conflict, which ends
	// the import.
	SkipExisting bool

	// DryRun stores nothing: it checks the export, and looks which runs, and with KeepIDs
	// which of the IDs of jobs, the target has.
	DryRun bool

	// Progress is told how much was done, in bytes: each job is read once to check it and
	// once to store it. Done never falls, and is total in the last call of an import that
	// came through. It must be short.
	Progress func(done, total int64)
}

// Imported is what an import did.
type Imported struct {
	Version int   // of the export; what a version above [ExportVersion] says besides was left out
	Checked int64 // jobs of the export that are sound
	Damaged int64 // jobs and runs that could not be read when it was made; it has nothing of them but their IDs

	Jobs    int64 // jobs that were stored; those that would be in a dry run
	Skipped int64 // jobs that were left out, by SkipExisting
	Effects int64 // idempotency keys that now count as done

	Runs        int64 // of workflows that were stored; those that would be in a dry run
	RunsSkipped int64 // that were left out, by SkipExisting; their jobs count among Skipped

	Paused int64 // queues that were paused
}

// Import stores the jobs of an export, as they stood: dead jobs stay dead, completed
// records are kept until their time, jobs that waited wait. A job that was leased when it
// was exported is ready. They come in the order of their sequences, behind the jobs that
// are there; the target gives them sequences of its own. Queues that were paused are
// paused before their first job comes; none is resumed. Keys that count as done do so
// before any job comes.
//
// Runs of workflows come with all that they had before any job comes, so that none goes on
// without its rows. A large one comes in several commits, and is a run with the last of them.
// One that waits for a signal or another run looks once whether that has come.
//
// The whole input is checked first, and when anything is wrong with it nothing is stored:
// the error matches [pawl.ErrInvalid] and names the line. So it is read twice, from its
// beginning, and must not change meanwhile; [Spool] makes that possible for a pipe. Memory is
// bounded by the longest line, of at most 96 MiB, by two portions of 8 MiB, and by 48 bytes for each job and some hundred, with
// its names, for each run.
//
// Jobs are stored in portions, each whole or not at all. When the import ends early,
// those before the one that the error names are stored, as the result says, and the
// others are not. With KeepIDs, importing again with SkipExisting goes on there exactly,
// but jobs that have run and left the target meanwhile come again: pause the queues, or
// stop the workers, until all is in. Errors besides those of the target: [pawl.ErrConflict]
// for an ID or a unique key that is taken.
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

// importer is an import under way.
type importer struct {
	to   Admin
	opts *ImportOptions
	in   *lines
	seed maphash.Seed // of groups
	done Imported

	// What the check has found.
	paused  []string // queues
	effects []int64  // offsets of their lines
	jobs    []storedLine
	runs    []storedRun // in the order of their IDs

	size int64 // bytes of the input
	read int64 // bytes checked and stored
}

func (m *importer) all(ctx context.Context) error {
	var err error
	if m.size, err = m.in.from.Seek(0, io.SeekEnd); err != nil {
		return m.in.seek(0)
	}
	if err := m.check(ctx); err != nil {
		return err
	}
	if err := m.leaveOutRuns(ctx); err != nil {
		return err
	}
	if m.opts.KeepIDs {
		if err := m.leaveOutExisting(ctx); err != nil {
			return err
		}
	}
	if m.opts.DryRun {
		m.done.Jobs, m.done.Runs = int64(len(m.jobs)), int64(len(m.runs))-m.done.RunsSkipped
		m.progress(2 * m.size)
		return nil
	}
	for _, queue := range m.paused {
		if err := m.to.Pause(ctx, queue); err != nil {
			return fmt.Errorf("pause queue %q: %w; no job was stored", queue, err)
		}
		m.done.Paused++
	}
	if err := m.storeEffects(ctx); err != nil {
		return err
	}
	if err := m.storeRuns(ctx); err != nil {
		return err
	}
	if err := m.storeJobs(ctx); err != nil {
		return err
	}
	m.progress(2 * m.size)
	return nil
}

// progress tells that so many bytes are done, of the input read twice.
func (m *importer) progress(done int64) {
	m.read = done
	if m.opts.Progress != nil {
		m.opts.Progress(done, 2*m.size)
	}
}
