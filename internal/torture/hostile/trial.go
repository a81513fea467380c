package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// trial is one hostile file and its way through the entry points. Each step has limits. The
// first violation ends the trial.
type trial struct {
	*hostile
	ctx   context.Context
	dir   string
	watch *watch
	err   error
	steps []string // steps so far
	found found

	// salvaged is set for a salvaged file. A bucket of it may have the page of another bucket,
	// and the checksum of a workflow row does not tell them apart: the published values of a
	// run may be its signals.
	salvaged bool
}

// do runs a step, unless an earlier one had a violation.
func (t *trial) do(name string, run func() error) {
	if t.err != nil {
		return
	}
	if t.err = t.watch.step(name, run); t.err != nil {
		t.err = fmt.Errorf("%s, after %q: %w", name, t.steps, t.err)
	}
	t.steps = append(t.steps, name)
}

// run passes a file to all functions that open files.
func (t *trial) run(path string) error {
	if t.err = t.write(path); t.err != nil {
		return t.err
	}
	t.read(path)
	t.do("the file after a reader", func() error { return t.untouched(path) })
	work := filepath.Join(t.dir, "work.db")
	_ = os.Remove(work) // remove the file, so that the new one does not have an old lock
	t.do("a copy", func() error { return t.write(work) })
	t.use(work)
	return t.err
}

// untouched requires that the file is unchanged.
func (t *trial) untouched(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	now := make([]byte, len(t.file))
	if _, err := io.ReadFull(f, now); err != nil && len(now) > 0 {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !bytes.Equal(now, t.file) || info.Size() != max(t.size, int64(len(t.file))):
		return errors.New("it was changed")
	}
	return nil
}

// refusals are the errors that say what is wrong with a file.
var refusals = []error{pawl.ErrCorrupt, bolt.ErrNotQueue, pawl.ErrNewerFormat, bolt.ErrOlderFormat}

// answers are the other errors of operations on a file.
var answers = []error{
	pawl.ErrNotFound, pawl.ErrEmpty, pawl.ErrPoisoned, pawl.ErrUnknownOutcome, pawl.ErrClosed, pawl.ErrLeaseLost,
	pawl.ErrConflict, pawl.ErrInvalid, pawl.ErrQueueFull, bolt.ErrDisk,
}

// refused requires that an error says what is wrong with the file.
func refused(err error) error { return matched(err, refusals) }

// answered requires that a caller can match an error.
func answered(err error) error { return matched(err, refusals, answers) }

func matched(err error, of ...[]error) error {
	if err == nil {
		return nil
	}
	for _, targets := range of {
		for _, target := range targets {
			if errors.Is(err, target) {
				return nil
			}
		}
	}
	return fmt.Errorf("an error that no caller can match: %w", err)
}

// read reads all of a file that no process has open.
func (t *trial) read(path string) {
	var r *bolt.Reader
	t.do("OpenReader", func() (err error) {
		r, err = bolt.OpenReader(path)
		return refused(err)
	})
	if r == nil {
		return
	}
	t.look(r, t.asStored)
	t.do("a whole file", t.whole)
	t.do("jobs of the list", func() error { return t.sameJobs(r) })
	t.lookAtRuns(r, true)
	if t.rand.IntN(4) == 0 {
		t.copies(r)
	}
	t.do("Close of a reader", r.Close)
}

// looks are the common methods of a queue and a reader.
type looks interface {
	Stats(context.Context) (pawl.Stats, error)
	Job(context.Context, pawl.ID) (*pawl.Envelope, error)
	Check(context.Context) error
	Backup(context.Context, string) error
	Compact(context.Context, string) error
	jobsOf
}

// look reads statistics and jobs, and passes each job to compare.
func (t *trial) look(q looks, compare func(*pawl.Envelope) error) {
	t.do("Stats", func() error {
		stats, err := q.Stats(t.ctx)
		t.found.counts = countsOf(stats)
		return answered(err)
	})
	t.do("Jobs", func() error {
		t.found.jobs = make(map[pawl.ID]bool)
		return t.list(q, pawl.Filter{}, func(e *pawl.Envelope, err error) error {
			if err := t.found.listed(e, err); err != nil {
				return err
			}
			return judged(compare)(e, err)
		})
	})
	if t.err == nil && t.rand.IntN(2) == 0 { // the tables of the states lead to the same jobs
		for _, state := range pawl.States() {
			t.do("Jobs that are "+string(state), func() error { return t.list(q, pawl.Filter{State: state}, judged(compare)) })
		}
	}
	t.do("Job", func() error {
		for range 4 {
			id := t.anyID()
			e, err := q.Job(t.ctx, id)
			if err == nil && e.ID != id {
				return fmt.Errorf("silently wrong: job %s was requested, and is %s", id, e.ID)
			}
			if err := judged(compare)(e, err); err != nil {
				return err
			}
		}
		return nil
	})
	t.do("Check", func() error {
		err := q.Check(t.ctx)
		t.found.sound = err == nil
		return answered(err)
	})
}

// judged requires that a job compares well, or that a caller can match the error in its place.
func judged(compare func(*pawl.Envelope) error) func(*pawl.Envelope, error) error {
	return func(e *pawl.Envelope, err error) error {
		if err != nil {
			return answered(err)
		}
		return compare(e)
	}
}

// copies makes a backup and a compact copy.
func (t *trial) copies(q looks) {
	to := filepath.Join(t.dir, "copy.db")
	t.do("Backup", func() error { return answered(q.Backup(t.ctx, to)) })
	_ = os.Remove(to)
	t.do("Compact", func() error { return answered(q.Compact(t.ctx, to)) })
	_ = os.Remove(to)
}
