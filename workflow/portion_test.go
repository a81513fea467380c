package workflow

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// transaction returns the last transaction of the file.
func (d *desk) transaction() (id int) {
	d.t.Helper()
	require.NoError(d.t, d.file.View(d.t.Context(), func(tx *bbolt.Tx) error {
		id = tx.ID()
		return nil
	}))
	return id
}

// Rule: if much is due at the same time, other callers get their turn between two portions: a
// call that arrives during the removal is in a commit that removes at most one portion.
func TestRemovalLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		run := d.start("a")
		was := d.read(run)
		all := d.fill(run, 1000) // five portions
		d.end(run, Done)
		d.pass(DefaultRetention)

		entered, release := make(chan struct{}), make(chan struct{})
		go func() {
			_ = d.file.Mutate(context.Background(), byHand{apply: func(rows) error {
				close(entered)
				<-release
				return nil
			}}, 0)
		}()
		<-entered
		go d.runSweeper()
		synctest.Wait() // it waits for the writer
		left := 0
		other := make(chan error, 1)
		go func() {
			other <- d.file.Mutate(context.Background(), byHand{apply: func(r rows) error {
				for _, table := range space.Tables() {
					if err := r.each(table, run[:], func(_, _ []byte, _ error) error { left++; return nil }); err != nil {
						return err
					}
				}
				return nil
			}}, 0)
		}()
		synctest.Wait()
		close(release)
		require.NoError(t, <-other)
		require.GreaterOrEqual(t, left, all-portionQuota().rows-headRows)
		synctest.Wait()
		require.Zero(t, d.rowsOf(run, was), "the sweeper goes on without a pause")
		require.Zero(t, d.kept())
	})
}

// Rule: a portion is limited in bytes too: at most one row exceeds the limit.
func TestAPortionIsBoundedInBytes(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	was := d.read(run)
	large := make([]byte, MaxValue)
	d.write(func(r rows) error {
		for i := range uint32(20) {
			if err := r.put(tableBlobs, seqKey(run, i+1), large); err != nil {
				return err
			}
		}
		return nil
	})
	d.end(run, Done)
	d.pass(DefaultRetention)
	d.write(func(r rows) error {
		s := sweep{rows: r, left: portionQuota()}
		err := s.until(d.now())
		require.True(t, s.full)
		require.GreaterOrEqual(t, s.left.bytes, -len(large)-100)
		return err
	})
	require.GreaterOrEqual(t, d.rowsOf(run, was), 20-3)
}

// Rule: a run that ends or restarts while it waits for many children cancels them in several
// commits.
func TestManyChildrenAreCancelledInPortions(t *testing.T) {
	d := newDesk(t)
	const many = 2*portion + 1
	parent := d.start("parent")
	x := newExecution(t.Context(), d.Engine, note, parent, d.lease(parent))
	for i := range many {
		x.calls = append(x.calls, &entry{Kind: KindChild, State: EntryPending, Child: d.start(fmt.Sprint(i))})
	}
	before := d.transaction()
	rest, err := x.lastChildren("enough")
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, 3, d.transaction()-before)
	for _, e := range x.calls {
		require.Equal(t, "enough", d.read(e.Child).Cancel)
	}

	x.calls = x.calls[:portion]
	before = d.transaction()
	rest, err = x.lastChildren("enough")
	require.NoError(t, err)
	require.Len(t, rest, portion, "these are for the commit that ends the run")
	require.Equal(t, before, d.transaction())
}

// restarted makes a run that has restarted and still has its first journal.
func (d *desk) restarted(id string) pawl.ID {
	d.t.Helper()
	run := d.start(id)
	large := make([]byte, maxInline+1)
	d.journal(run, &entry{Name: "old", Kind: KindStep, State: EntryDone, Result: large},
		&entry{Name: "old", At: 1, Occurrence: 2, Kind: KindStep, State: EntryPending})
	d.write(func(r rows) error {
		var j journal
		e := &entry{Name: "new", Occurrence: 1, Kind: KindStep, State: EntryDone, Result: large, Size: len(large), seq: firstSeq(1) + 1}
		j.add(run, e)
		return j.apply(r)
	})
	d.edit(run, func(row *runRow) { row.Restarts, row.Journal = 1, 1 })
	return run
}

// Rule: what a Restart left is not part of a run: a journal, a fork and an export do not have
// it, and a check of the file accepts it.
func TestASpareJournalIsNoPartOfTheRun(t *testing.T) {
	d := newDesk(t)
	run := d.restarted("a")
	require.NoError(t, d.Check(t.Context()))
	journal, err := d.Journal(t.Context(), run, true)
	require.NoError(t, err)
	require.Len(t, journal, 1)
	require.Equal(t, "new", journal[0].Name)
	require.Equal(t, uint32(1), journal[0].Seq)

	fork, err := d.Fork(t.Context(), run, "", "b")
	require.NoError(t, err)
	journal, err = d.Journal(t.Context(), fork, false)
	require.NoError(t, err)
	require.Empty(t, journal)
	_, err = d.Fork(t.Context(), run, "old", "c")
	require.ErrorIs(t, err, pawl.ErrInvalid)

	p, err := d.Rows(t.Context(), run, "")
	require.NoError(t, err)
	require.True(t, p.Last())
	require.Equal(t, p.All, len(p.Rows))
	_, err = new(RowsCheck).Add(&p)
	require.NoError(t, err)
	to := newDesk(t)
	require.NoError(t, to.RestoreRows(t.Context(), &p))
	require.NoError(t, to.Check(t.Context()))
	journal, err = to.Journal(t.Context(), run, true)
	require.NoError(t, err)
	require.Len(t, journal, 1)
}

// Rule: rows in the journal that is not in use are damage unless a Restart has left them, and
// they are not imported.
func TestRowsOfAJournalThatIsNotInUse(t *testing.T) {
	for rule, change := range map[string]func(row *runRow){
		"no restart":      func(row *runRow) { row.Restarts = 0 },
		"a third journal": func(row *runRow) { row.Journal = 2 },
	} {
		d := newDesk(t)
		run := d.restarted("a")
		d.edit(run, change)
		require.ErrorIs(t, d.Check(t.Context()), pawl.ErrCorrupt, rule)
	}
	d := newDesk(t)
	run := d.restarted("a")
	p, err := d.Rows(t.Context(), run, "")
	require.NoError(t, err)
	for _, journal := range []uint8{0, 2} {
		var head runRow
		at := len(p.Rows) - 1
		require.NoError(t, driver.DecodePayload(p.Rows[at].Value, &head))
		head.Journal = journal
		p.Rows[at].Value, err = driver.EncodePayload(&head)
		require.NoError(t, err)
		_, err = new(RowsCheck).Add(&p)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

// Rule: a run whose retention ends after the run that the sweeper waits for does not wake the
// sweeper. A run whose retention ends earlier does.
func TestWhenTheSweeperLooksAgain(t *testing.T) {
	h := &hub{bell: make(chan struct{}, 1)}
	now := time.Now()
	h.removal.Store(now.UnixNano())
	h.sweepBy(now)
	h.sweepBy(now.Add(time.Second))
	require.Empty(t, h.bell)
	h.sweepBy(now.Add(-1))
	h.sweepBy(now.Add(-1))
	require.Len(t, h.bell, 1)
}
