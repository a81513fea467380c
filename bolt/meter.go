package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/driver"
)

// Throughput reports what happened to jobs in the last minutes, hours or days; see [driver.Throughput]. The counts are
// stored with the first commit of a later minute, and at Close. Damaged rows are left out.
func (r *reader) Throughput(ctx context.Context, q driver.ThroughputQuery) (t driver.Throughput, err error) {
	err = r.View(ctx, func(tx *bbolt.Tx) error {
		t, err = r.meter.Read(&tables{tx: tx}, uint64(tx.ID()), r.now(), q)
		return err
	})
	if err != nil {
		return driver.Throughput{}, fmt.Errorf("read throughput: %w", err)
	}
	return t, nil
}

// storeCounts stores the counts of earlier minutes in a transaction that no caller relies on: a caller whose call is
// rolled back because the counts are damaged is tried again, without them.
func (s *scheduler) storeCounts(t *txn) error {
	if t.err != nil || !s.meter.Due(t.now) {
		return nil
	}
	t.changed = true
	return s.putCounts(t.others())
}

func (s *scheduler) putCounts(ts *tables) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.guard.Damaged(p)
		}
		switch {
		case errors.Is(err, ErrOverwritten): // the queue must stop
			err = dbfile.Faulted{Err: err}
		case err != nil:
			s.log.Error("the counts of the throughput are damaged; the queue counts no more", "error", err)
		}
	}()
	return s.meter.Store(ts, s.now(), uint64(ts.tx.ID()))
}

// storeLast stores what was counted since the last store, when the queue of an app's database closes. That of a file
// is stored with the list of free pages.
func (s *scheduler) storeLast() {
	if !s.shared || s.fatal != nil || !s.meter.Waits() {
		return
	}
	err := s.transact(func(t *txn) error {
		t.changed = true
		return s.putCounts(t.others())
	})
	s.meter.Stored(err == nil)
}
