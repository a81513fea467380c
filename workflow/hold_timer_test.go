package workflow

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// slowStore is a store whose commits last until they are released.
type slowStore struct {
	Store
	began   atomic.Int64
	stored  atomic.Int64 // rows
	release chan struct{}
}

func (s *slowStore) Mutate(_ context.Context, m driver.Mutation, _ int) error {
	s.began.Add(1)
	tx := &rowCounter{store: s}
	if err := m.Apply(tx); err != nil {
		return err
	}
	<-s.release // the commit
	for _, fn := range tx.durable {
		fn()
	}
	return nil
}

// rowCounter is a transaction that counts rows.
type rowCounter struct {
	driver.Writer
	store   *slowStore
	durable []func()
}

func (w *rowCounter) Put(*driver.Table, []byte, []byte) error {
	w.store.stored.Add(1)
	return nil
}

func (w *rowCounter) OnCommit(fn func()) { w.durable = append(w.durable, fn) }

// Rule: the end of a step that waits is written after longestHold. An end that comes during a commit is written
// longestHold after that commit, whatever the commit is for. Nothing is written twice, or for nothing.
func TestHeldEndIsWrittenBehindACommit(t *testing.T) {
	for _, timed := range []bool{true, false} { // the commit is that of the timer, or another one
		synctest.Test(t, func(t *testing.T) {
			s := &slowStore{release: make(chan struct{})}
			x := newExecution(t.Context(), &Engine{queue: s}, nil, pawl.ID{1}, &pawl.Lease{Envelope: &pawl.Envelope{}})
			hold := func(seq uint32) {
				c := &call{scope: &scope{x: x}, e: &entry{Kind: KindStep, State: EntryDone, seq: seq}}
				require.NoError(t, c.hold(&stepOptions{}))
			}
			after := func(d time.Duration, began, stored int64) {
				t.Helper()
				time.Sleep(d)
				synctest.Wait()
				require.Equal(t, [2]int64{began, stored}, [2]int64{s.began.Load(), s.stored.Load()})
			}
			hold(1)
			if after(longestHold-1, 0, 0); timed {
				after(1, 1, 1)
			} else {
				go func() { _ = x.save() }()
				after(0, 1, 1)
			}
			hold(2)
			after(time.Hour, 1, 1)
			s.release <- struct{}{}
			after(longestHold-1, 1, 1)
			after(1, 2, 2)
			s.release <- struct{}{}
			after(time.Hour, 2, 2)
			hold(3)
			go func() { _ = x.save() }()
			after(0, 3, 3)
			s.release <- struct{}{}
			after(time.Hour, 3, 3)
		})
	}
}

// Rule: once a mutation that cancels a run has looked at what the run holds back, the end of a step is written
// immediately, since that mutation does not write it.
func TestStepThatEndsDuringACancelIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{release: make(chan struct{})}
		x := newExecution(t.Context(), &Engine{queue: s}, nil, pawl.ID{1}, &pawl.Lease{Envelope: &pawl.Envelope{}})
		h := &hub{running: map[pawl.ID]*execution{x.run: x}, cancelling: make(map[pawl.ID]int)}
		var held heldEnds
		held.add(h, nil, x.run)
		require.Empty(t, held.all)
		c := &call{scope: &scope{x: x}, e: &entry{Kind: KindStep, State: EntryDone, seq: 1}}
		ended := make(chan error, 1)
		go func() { ended <- c.hold(&stepOptions{}) }()
		synctest.Wait()
		require.EqualValues(t, 1, s.stored.Load())
		s.release <- struct{}{}
		require.NoError(t, <-ended)
	})
}
