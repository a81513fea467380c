package workflow

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// until removes runs whose removal time has come.
func (s *sweep) until(now time.Time) error {
	due, err := s.due(now)
	if err == nil {
		err = s.these(now, due)
	}
	return err
}

// fill gives a run n rows in every bucket with rows of runs, and returns the total number of
// rows.
func (d *desk) fill(run pawl.ID, n int) int {
	d.t.Helper()
	row := d.read(run)
	d.write(func(r rows) error {
		for i := range uint32(n) {
			for _, err := range []error{
				r.put(tableSteps, seqKey(run, i+1), []byte("e")),
				r.put(tableBlobs, seqKey(run, i+1), []byte("b")),
				r.put(tableSignals, signalKey(run, "s", uint64(i)), []byte("p")),
				r.put(tableSeen, runAnd(run, fmt.Sprint(i)), []byte("1")),
				r.put(tablePublished, runAnd(run, fmt.Sprint(i)), []byte("v")),
			} {
				if err != nil {
					return err
				}
			}
		}
		return r.put(tableBlocked, run[:], []byte("1"))
	})
	require.Equal(d.t, 5*n+3, d.rowsOf(run, row))
	return 5*n + 3
}

// rowsOf counts the rows of the run described by row, except the row in ended.
func (d *desk) rowsOf(run pawl.ID, row *runRow) (n int) {
	d.t.Helper()
	require.NoError(d.t, d.file.ViewRows(d.t.Context(), func(tx driver.Reader) error {
		r := rowsOf(tx)
		for _, table := range space.Tables() {
			prefix := run[:]
			switch table {
			case tableIDs:
				prefix = idKey(row.Flow, row.ID)
			case tableEnded:
				continue
			}
			if err := r.each(table, prefix, func([]byte, []byte, error) error { n++; return nil }); err != nil {
				return err
			}
		}
		return nil
	}))
	return n
}

// kept returns how many rows are in table ended.
func (d *desk) kept() (n int) {
	d.t.Helper()
	require.NoError(d.t, d.file.ViewRows(d.t.Context(), func(tx driver.Reader) error {
		return rowsOf(tx).each(tableEnded, nil, func([]byte, []byte, error) error { n++; return nil })
	}))
	return n
}

// sweep removes up to most due rows in its own commit.
func (d *desk) sweep(most int) (removed int) {
	d.t.Helper()
	d.write(func(r rows) error {
		s := sweep{rows: r, left: quota{rows: most, bytes: 1 << 20}}
		err := s.until(d.now())
		removed = most - s.left.rows
		return err
	})
	return removed
}

// A run is removed at the end of its retention, not before, from every bucket, without
// affecting other runs.
func TestRetention(t *testing.T) {
	d := newDesk(t)
	run, open, forever := d.start("a"), d.start("b"), d.start("c")
	rowsOfRun, rowsOfOpen := d.read(run), d.read(open)
	d.edit(forever, func(row *runRow) { row.Retain = 0 })
	n := d.fill(run, 2)
	m := d.fill(open, 2)
	d.end(run, Done)
	d.end(forever, Done)

	d.pass(DefaultRetention - 1)
	require.Zero(t, d.sweep(1000))
	require.Equal(t, n, d.rowsOf(run, rowsOfRun))
	d.pass(1)
	require.NotZero(t, d.sweep(1000))
	require.Zero(t, d.rowsOf(run, rowsOfRun))
	require.Zero(t, d.kept())
	require.Equal(t, m, d.rowsOf(open, rowsOfOpen))
	_, err := d.Info(t.Context(), forever)
	require.NoError(t, err)
	_, err = d.Info(t.Context(), run)
	require.ErrorIs(t, err, ErrNotFound)
	require.Zero(t, d.sweep(1000))
}

// A large run is removed in portions of limited size. From the first portion on it is not
// found, so no reader sees half of it, and its ID is free.
func TestALargeRunGoesInPortions(t *testing.T) {
	for _, most := range []int{headRows, headRows + 1, 10, 50} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			d := newDesk(t)
			var runs []pawl.ID
			var was []*runRow
			for i := range 3 {
				run := d.start(fmt.Sprint(i))
				runs, was = append(runs, run), append(was, d.read(run))
				d.fill(run, 7)
				d.end(run, Done)
			}
			left := func() (n int) {
				for i, run := range runs {
					n += d.rowsOf(run, was[i])
				}
				return n + d.kept()
			}
			d.pass(DefaultRetention)
			for before := left(); before > 0; {
				removed := d.sweep(most)
				require.LessOrEqual(t, removed, most)
				now := left()
				require.Less(t, now, before, "each portion gets on")
				before = now
				for i, run := range runs {
					_, err := d.Info(t.Context(), run)
					if d.rowsOf(run, was[i]) < 5*7+3 {
						require.ErrorIs(t, err, ErrNotFound)
						_, err = d.Find(t.Context(), "note", was[i].ID)
						require.ErrorIs(t, err, ErrNotFound)
					} else {
						require.NoError(t, err)
					}
				}
			}
		})
	}
}

// Rule: the ID of a run is free from the first portion of its removal on. If a new run takes
// the ID, the rest of the removal does not remove its rows.
func TestAnIDIsFreeWhileItsRunIsRemoved(t *testing.T) {
	d := newDesk(t)
	old := d.start("a")
	was := d.read(old)
	d.fill(old, 40)
	d.end(old, Done)
	d.pass(DefaultRetention)
	require.Equal(t, old, d.start("a"), "its retention is over, but it is there")
	d.sweep(50)
	run := d.start("a")
	require.NotEqual(t, old, run)
	require.NotZero(t, d.rowsOf(old, was)-1)
	d.sweep(1000)
	require.Equal(t, 1, d.rowsOf(old, was), "the ID, which is another's")
	require.Zero(t, d.kept())
	found, err := d.Find(t.Context(), "note", "a")
	require.NoError(t, err)
	require.Equal(t, run, found)
}

// A row in ended alone removes no run: an open run stays, and so does an unreadable run, which
// is tried again later. Malformed keys are removed.
func TestRetentionSparesWhatItDoesNotKnow(t *testing.T) {
	d := newDesk(t)
	open, spoilt := d.start("a"), d.start("b")
	rowsOfOpen, rowsOfSpoilt := d.read(open), d.read(spoilt)
	n, m := d.fill(open, 1), d.fill(spoilt, 1)
	d.spoil(tableRuns, spoilt[:])
	d.write(func(r rows) error {
		return firstError(
			r.put(tableEnded, endedKey(d.now(), open), nil),
			r.put(tableEnded, endedKey(d.now(), spoilt), nil),
			r.put(tableEnded, []byte{1}, nil),
		)
	})
	require.NotZero(t, d.sweep(1000))
	require.Equal(t, n, d.rowsOf(open, rowsOfOpen))
	require.Equal(t, m, d.rowsOf(spoilt, rowsOfSpoilt))
	require.Equal(t, 1, d.kept())
	require.Zero(t, d.sweep(1000))

	d.spoil(tableRuns, spoilt[:]) // the row is sound again
	d.end(spoilt, Done)
	d.pass(DefaultRetention)
	d.sweep(1000)
	require.Zero(t, d.rowsOf(spoilt, rowsOfSpoilt))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A retention that ends later than the largest time never ends.
func TestRetentionForEver(t *testing.T) {
	row := runRow{Ended: time.Now().UnixNano(), Retain: math.MaxInt64}
	require.Zero(t, row.keptUntil())
	row.Retain = math.MaxInt64 - row.Ended
	require.Equal(t, time.Unix(0, math.MaxInt64), row.keptUntil())
}

// Prune removes runs that ended before a time, whatever their retention, from every bucket, and
// no others.
func TestPrune(t *testing.T) {
	d := newDesk(t)
	gone := []pawl.ID{d.start("kept"), d.start("for ever")}
	stays := []pawl.ID{d.start("open"), d.start("late"), d.start("spoilt")}
	d.edit(gone[1], func(row *runRow) { row.Retain = 0 })
	var was []*runRow
	for _, run := range gone {
		was = append(was, d.read(run))
		d.fill(run, 3)
		d.end(run, Failed)
	}
	d.end(stays[2], Done)
	d.spoil(tableRuns, stays[2][:])
	d.pass(time.Hour)
	before := d.now()
	d.end(stays[1], Done)

	done, err := d.Prune(t.Context(), before, nil)
	require.NoError(t, err)
	require.Equal(t, 2, done)
	for i, run := range gone {
		require.Zero(t, d.rowsOf(run, was[i]))
	}
	for _, run := range stays[:2] {
		_, err := d.Info(t.Context(), run)
		require.NoError(t, err)
	}
	_, err = d.Info(t.Context(), stays[2])
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.Equal(t, 2, d.kept())

	done, err = d.Prune(t.Context(), before, nil)
	require.NoError(t, err)
	require.Zero(t, done)
}

// Prune works in portions and reports how many runs are gone after each portion that completed
// some. What a stopped Prune leaves is removed later.
func TestPruneInPortions(t *testing.T) {
	d := newDesk(t)
	const n = 2*portion + 10
	for i := range n {
		run := d.start(fmt.Sprint(i))
		d.fill(run, 2)
		d.end(run, Done)
	}
	d.pass(1)
	ctx, stop := context.WithCancel(t.Context())
	var reported []int
	done, err := d.Prune(ctx, d.now(), func(done int) {
		reported = append(reported, done)
		if len(reported) == 2 {
			stop()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, reported, 2)
	require.Equal(t, reported[1], done)
	require.Less(t, reported[0], reported[1])
	require.Less(t, done, n/2)

	rest, err := d.Prune(t.Context(), d.now(), func(done int) { reported = append(reported, done) })
	require.NoError(t, err)
	require.Equal(t, n, done+rest)
	require.Greater(t, len(reported), 4)
	require.Equal(t, rest, reported[len(reported)-1])
	require.Zero(t, d.kept())
	listing, err := d.List(t.Context(), Filter{}, "", n)
	require.NoError(t, err)
	require.Empty(t, listing.Runs)
}

// The rest of an interrupted removal is removed by the next Prune, even if that finds no other
// run.
func TestPruneGoesOn(t *testing.T) {
	d := newDesk(t)
	run := d.start("a")
	was := d.read(run)
	d.fill(run, 10)
	d.end(run, Done)
	until := d.read(run).keptUntil()
	d.write(func(r rows) error {
		return firstError(
			r.delete(tableEnded, endedKey(until, run)),
			r.put(tableEnded, endedKey(atOnce, run), nil),
			(&sweep{rows: r, left: quota{rows: 10, bytes: 1 << 20}}).until(atOnce),
		)
	})
	require.NotZero(t, d.rowsOf(run, was))
	done, err := d.Prune(t.Context(), d.now(), nil)
	require.NoError(t, err)
	require.Equal(t, 1, done)
	require.Zero(t, d.rowsOf(run, was))
	require.Zero(t, d.kept())
}

// The ID is removed with its run, unless another run has it. An unreadable ID row is removed
// too, since it would keep everybody from using the ID.
func TestRemovalFreesTheID(t *testing.T) {
	for _, c := range []struct {
		content func(other pawl.ID) []byte
		want    error
	}{
		{func(other pawl.ID) []byte { return other[:] }, nil},
		{func(pawl.ID) []byte { return []byte("short") }, ErrNotFound},
	} {
		d := newDesk(t)
		run, other := d.start("a"), d.start("b")
		d.edit(run, func(row *runRow) { row.Retain = 1 })
		d.end(run, Done)
		d.write(func(r rows) error { return r.put(tableIDs, idKey("note", "a"), c.content(other)) })
		d.pass(1)
		require.NotZero(t, d.sweep(1000))
		_, err := d.Find(t.Context(), "note", "a")
		require.ErrorIs(t, err, c.want)
	}
}

// Without any workflow there is nothing to prune.
func TestPruneNothing(t *testing.T) {
	done, err := newDesk(t).Prune(t.Context(), time.Now(), nil)
	require.NoError(t, err)
	require.Zero(t, done)
}
