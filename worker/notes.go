package worker

import (
	"context"
	"errors"
	"time"

	"github.com/gopawl/pawl"
)

// notesEvery is the least time between two stores of the progress and the logs of a worker's jobs.
const notesEvery = time.Second

// storeNotes stores the notes of attempts until ctx ends, and then the remaining ones. Handlers do not
// wait for it.
func (s *session) storeNotes(ctx context.Context) {
	for {
		select {
		case <-s.notes.Noted():
		case <-ctx.Done():
			s.storeNotesOnce()
			return
		}
		s.storeNotesOnce()
		select {
		case <-time.After(notesEvery):
		case <-ctx.Done():
		}
	}
}

// storeNotesOnce stores notes even while the worker stops, because the notes of an ended
// attempt are nowhere else.
func (s *session) storeNotesOnce() {
	if some, err := s.notes.Store(s.settling); err != nil {
		s.notesFailed(err)
	} else if some && s.noteless.Swap(false) {
		s.w.opts.Logger.Info("progress and logs are stored again")
	}
}

// endNotes stores the log of an attempt that has ended, before its job is settled. So a reader that sees
// the failure also finds its log. An error of endNotes does not fail the attempt.
func (s *session) endNotes(a *attempt, leavesRecord bool) {
	if err := s.notes.End(s.settling, a.Lease, leavesRecord); err != nil {
		s.notesFailed(err)
	}
}

// notesFailed logs the first of several failures: on a full disk there is one each second.
func (s *session) notesFailed(err error) {
	if s.settling.Err() == nil && !errors.Is(err, pawl.ErrClosed) && !s.noteless.Swap(true) {
		s.w.opts.Logger.Warn("cannot store progress and logs; trying again each second", "error", err)
	}
}
