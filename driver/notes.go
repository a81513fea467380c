package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/runnotes"
)

const notesPortion = 1 << 20 // bytes of a call of StoreNotes

// NoteStore stores and reads the notes of attempts. A queue that keeps them in a form of its own implements it. A
// queue with mutations need not; see [NotesOf].
type NoteStore interface {
	// StoreNotes stores notes of jobs that the queue holds, in one commit. A progress does not replace the progress
	// of a later attempt, or a later progress of the same attempt. The logs of the last four attempts of each job stay.
	//
	// It also removes the notes of jobs that are gone: of those in ended, and of a few others, so that repeated
	// calls find all. It returns those in ended that are still leased.
	StoreNotes(ctx context.Context, notes []runnotes.Notes, ended []pawl.ID) (running []pawl.ID, err error)

	// ReadProgress returns the last progress that is stored of each job, without those that have none.
	ReadProgress(ctx context.Context, ids ...pawl.ID) (map[pawl.ID]pawl.Progress, error)

	// ReadLogs returns what is kept of the logs of the attempts of a job, the oldest first.
	ReadLogs(ctx context.Context, id pawl.ID) ([]pawl.RunLog, error)
}

// NotesOf returns where the notes of the attempts of a queue are stored, nil if it keeps none. If the rows of q can
// be read but not written, as in a closed file, the NoteStore only reads.
func NotesOf(q any) NoteStore {
	if able, declares := q.(Able); declares && able.Abilities()&pawl.RunNotes == 0 {
		return nil
	}
	if s, ok := q.(NoteStore); ok {
		return s
	}
	if rows, ok := q.(rowViewer); ok {
		return &rowNotes{queue: rows}
	}
	return nil
}

// Note notes how far the attempt of a lease is at the given time, as [pawl.Job.Progress] does.
func Note(l *pawl.Lease, done, total int64, text string, at time.Time) {
	root.Note(l, done, total, text, at)
}

// Notes are the notes of the attempts of a worker: collected in memory, and stored with the jobs. A nil
// Notes collects nothing.
type Notes struct {
	store NoteStore
	runs  *runnotes.Runs

	mu    sync.Mutex
	ended map[pawl.ID]bool // jobs that were about to succeed; their notes are removed with them
}

// NewNotes returns the notes for a worker of a queue. It returns nil for a queue without [pawl.RunNotes].
func NewNotes(q pawl.Queue) *Notes {
	if _, declares := q.(Able); !declares {
		return nil
	}
	store := NotesOf(q)
	if store == nil {
		return nil
	}
	return &Notes{store: store, runs: runnotes.New(), ended: make(map[pawl.ID]bool)}
}

// Noted returns a channel that gets a value after an attempt noted something. It is nil for nil Notes.
func (n *Notes) Noted() <-chan struct{} {
	if n == nil {
		return nil
	}
	return n.runs.Noted()
}

// collected returns the collection for the context of an attempt.
func (n *Notes) collected() *runnotes.Runs {
	if n == nil {
		return nil
	}
	return n.runs
}

// End stores the log of an attempt, unless the job will leave no record. A worker calls it when a handler has
// returned, before it settles the job. It does nothing for an attempt that noted nothing.
func (n *Notes) End(ctx context.Context, l *pawl.Lease, leavesRecord bool) error {
	if n == nil {
		return nil
	}
	note, log, stored := n.runs.End(l.ID, l.Started)
	switch {
	case log && leavesRecord:
		_, err := n.storePart(ctx, []runnotes.Notes{note}, nil)
		return err
	case stored && !leavesRecord:
		n.mu.Lock()
		n.ended[l.ID] = true
		n.mu.Unlock()
		n.runs.Wake()
	}
	return nil
}

// Store stores what was noted since the last call, in one commit for each MiB. It also removes the rows of
// jobs that are gone. It reports whether there was anything to do. After an error, the next call tries
// again, and [Notes.Noted] receives.
func (n *Notes) Store(ctx context.Context) (some bool, err error) {
	if n == nil {
		return false, nil
	}
	notes := n.runs.Take()
	n.mu.Lock()
	none := len(notes)+len(n.ended) == 0
	n.mu.Unlock()
	if none {
		return false, nil
	}
	for from := 0; ; {
		to, size := from, 0
		for to < len(notes) && (to == from || size+sizeOf(&notes[to]) <= notesPortion) {
			size += sizeOf(&notes[to])
			to++
		}
		var ended []pawl.ID
		if to == len(notes) {
			ended = n.endedJobs()
		}
		running, err := n.storePart(ctx, notes[from:to], ended)
		if err != nil {
			n.runs.Again(notes[from:])
			return true, err
		}
		if from = to; from >= len(notes) {
			n.forget(ended, running)
			return true, nil
		}
	}
}

func (n *Notes) endedJobs() []pawl.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.ended))
}

// forget forgets ended jobs, except those that are still running.
func (n *Notes) forget(ended, running []pawl.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range ended {
		if !slices.Contains(running, id) {
			delete(n.ended, id)
		}
	}
	if len(n.ended) > 0 {
		n.runs.Wake()
	}
}

func (n *Notes) storePart(ctx context.Context, notes []runnotes.Notes, ended []pawl.ID) (running []pawl.ID, err error) {
	if running, err = n.store.StoreNotes(ctx, notes, ended); err != nil {
		err = fmt.Errorf("store progress and logs: %w", err)
	}
	return running, err
}

func sizeOf(n *runnotes.Notes) int {
	size := 200
	if n.Log != nil {
		size += len(n.Log.Head) + len(n.Log.Tail)
	}
	return size
}
