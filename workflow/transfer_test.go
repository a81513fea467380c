package workflow

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// disturbed is a source that runs functions between two reads.
type disturbed struct {
	Source
	looks int
	then  map[int]func() // runs after the read of that number, from 0
}

func (b *disturbed) behind() {
	if happens := b.then[b.looks]; happens != nil {
		happens()
	}
	b.looks++
}

func (b *disturbed) ViewRows(ctx context.Context, fn func(driver.Reader) error) error {
	defer b.behind()
	return b.Source.ViewRows(ctx, fn)
}

func (b *disturbed) Job(ctx context.Context, id pawl.ID) (*pawl.Envelope, error) {
	defer b.behind()
	return b.Source.Job(ctx, id)
}

// Rule: a waiting job is read together with the rows of the moment at which it waited. Here a
// signal wakes a run that sleeps until a time, and the run then sleeps until the same time:
// whenever that happens, the signal is not read together with a sleeping job.
func TestRowsAndJobAreOfOneMoment(t *testing.T) {
	for first := range 4 {
		for second := first; second < 5; second++ {
			d := newDesk(t)
			run := d.start("a")
			sleep := func(unread int) {
				d.suspend(run, Waiting, func(row *runRow) { row.Waits, row.Unread = []string{"s"}, unread })
			}
			sleep(0)
			b := &disturbed{Source: d.source}
			wake := func() { require.NoError(t, d.Send(t.Context(), run, "s", nil, "")) }
			again := func() {
				d.write(func(r rows) error { return r.remove(run[:], run[:], &quota{rows: 1, bytes: 1}, tableSignals) })
				sleep(0)
			}
			b.then = map[int]func(){first: wake, second: again}
			if first == second {
				b.then[first] = func() { wake(); again() }
			}
			p, err := Read(b).Rows(t.Context(), run, "")
			require.NoError(t, err)
			for _, row := range p.Rows {
				if row.In == tableSignals.String() {
					require.Equal(t, pawl.Ready, p.Job.State, "%d %d", first, second)
				}
			}
		}
	}
}

// twoParts are the parts of a run that has ended, with another ID and name.
func (d *desk) twoParts(of, as pawl.ID, name string) (first, last *Rows) {
	d.t.Helper()
	p, err := d.Rows(d.t.Context(), of, "")
	require.NoError(d.t, err)
	require.True(d.t, p.Last())
	require.NoError(d.t, p.Rename(func(pawl.ID) pawl.ID { return as }))
	var head runRow
	at := len(p.Rows) - 1
	require.NoError(d.t, driver.DecodePayload(p.Rows[at].Value, &head))
	head.ID = name
	p.Rows[at].Value, err = driver.EncodePayload(&head)
	require.NoError(d.t, err)
	first, last = new(Rows), new(Rows)
	*first, *last = p, p
	first.Rows, first.Next = p.Rows[:at], "more"
	last.Rows, last.Part = p.Rows[at:], 2
	return first, last
}

// ended makes a completed run.
func (d *desk) ended(id string) pawl.ID {
	d.t.Helper()
	run := d.start(id)
	d.write(func(r rows) error { return r.put(tableBlobs, seqKey(run, outputSeq), []byte{0xc0}) })
	d.end(run, Done)
	require.NoError(d.t, d.file.Settle(d.t.Context(), d.lease(run).Ack()))
	return run
}

// Rule: a part without the earlier parts is refused, and leaves nothing behind for ever.
func TestAPartAloneIsRefused(t *testing.T) {
	d := newDesk(t)
	first, last := d.twoParts(d.ended("a"), pawl.ID{1}, "b")
	middle := *first
	middle.Part = 2
	require.ErrorIs(t, d.RestoreRows(t.Context(), &middle), ErrConflict)
	require.ErrorIs(t, d.RestoreRows(t.Context(), last), ErrConflict)
	require.NoError(t, d.Check(t.Context()))
	require.NoError(t, d.RestoreRows(t.Context(), first, last))
	require.NoError(t, d.Check(t.Context()))
}

// Rule: the rest of a partially stored or partially removed run, however old, does not end the
// same run once it is stored completely: the run is kept for its whole retention.
func TestARestoredRunIsKept(t *testing.T) {
	for _, c := range []struct {
		rule string
		left func(d *desk, first *Rows)
	}{
		{"half stored", func(d *desk, first *Rows) { require.NoError(t, d.RestoreRows(t.Context(), first)) }},
		{"half removed", func(d *desk, first *Rows) {
			d.write(func(r rows) error {
				if err := r.put(tableEnded, endedKey(atOnce, first.Run), nil); err != nil {
					return err
				}
				return r.put(tableBlobs, seqKey(first.Run, outputSeq), nil)
			})
		}},
		{"removed by a sweep that was killed before the last portion", func(d *desk, first *Rows) {
			d.write(func(r rows) error { return r.put(tableEnded, endedKey(d.now(), first.Run), nil) })
		}},
	} {
		for _, days := range []int{0, 1, 4, 30} {
			d := newDesk(t)
			a := d.ended("a")
			d.edit(a, func(row *runRow) { row.Retain = int64(365 * 24 * time.Hour) })
			first, last := d.twoParts(a, pawl.ID{1}, "b")
			c.left(d, first)
			require.NoError(t, d.Check(t.Context()), c.rule)
			d.pass(time.Duration(days) * 24 * time.Hour)
			require.NoError(t, d.RestoreRows(t.Context(), first, last))
			d.pass(20 * 24 * time.Hour)
			d.sweep(1000)
			_, err := d.Info(t.Context(), last.Run)
			require.NoError(t, err, "%s, %d days", c.rule, days)
			require.NoError(t, d.Check(t.Context()))
			d.pass(365 * 24 * time.Hour)
			d.sweep(1000)
			_, err = d.Info(t.Context(), last.Run)
			require.ErrorIs(t, err, ErrNotFound)
			require.NoError(t, d.Check(t.Context()))
		}
	}
}

// Rule: only the end of the input of a restore has the row of a run. Anything else in its place
// is refused, and not taken for one.
func TestTheLastRowIsThatOfTheRun(t *testing.T) {
	d := newDesk(t)
	first, last := d.twoParts(d.ended("a"), pawl.ID{1}, "b")
	content, err := driver.EncodePayload(&entry{Name: "s", Kind: KindStep, State: EntryDone})
	require.NoError(t, err)
	step := Row{In: tableSteps.String(), Key: []byte{0, 0, 0, 1}, Value: content}
	head := last.Rows[0]
	for rule, rows := range map[string][]Row{
		"an entry behind it": {head, step}, "two": {head, head}, "an entry": {step}, "nothing": nil,
	} {
		last.Rows, last.All = rows, len(first.Rows)+len(rows)
		require.ErrorIs(t, d.RestoreRows(t.Context(), first, last), pawl.ErrInvalid, rule)
	}
	require.NoError(t, d.Check(t.Context()))
}

// Rule: a parent that is unreadable, or no longer waits, keeps no child from ending: it is not
// notified.
func TestAParentThatCannotBeReached(t *testing.T) {
	for rule, change := range map[string]func(d *desk, parent pawl.ID){
		"its row is damaged":   func(d *desk, parent pawl.ID) { d.spoil(tableRuns, parent[:]) },
		"its entry is damaged": func(d *desk, parent pawl.ID) { d.spoil(tableSteps, seqKey(parent, 1)) },
		"it has ended":         func(d *desk, parent pawl.ID) { d.edit(parent, func(row *runRow) { row.Status = Failed }) },
		"it has restarted":     func(d *desk, parent pawl.ID) { d.edit(parent, func(row *runRow) { row.Journal = 1 }) },
		"another is its child": func(d *desk, parent pawl.ID) {
			d.journal(parent, &entry{Kind: KindChild, State: EntryPending, Child: parent})
		},
		"it was told before": func(d *desk, parent pawl.ID) { d.journal(parent, &entry{Kind: KindChild, State: EntryDone}) },
	} {
		d := newDesk(t)
		parent := d.start("parent")
		child := pawl.ID{1}
		d.journal(parent, &entry{Kind: KindChild, State: EntryPending, Child: child})
		row := &runRow{Parent: parent, ParentSeq: 1}
		waits := func() (e *entry) {
			require.NoError(t, d.file.ViewRows(t.Context(), func(tx driver.Reader) (err error) {
				e, _, err = rowsOf(tx).waitsFor(child, row)
				return err
			}))
			return e
		}
		require.NotNil(t, waits())
		change(d, parent)
		require.Nil(t, waits(), rule)
	}
}

// Rule: an unknown form of rows is reported as newer, and not as damaged.
func TestRowsOfANewerForm(t *testing.T) {
	d := newDesk(t)
	first, last := d.twoParts(d.ended("a"), pawl.ID{1}, "b")
	last.Form++
	require.ErrorIs(t, d.RestoreRows(t.Context(), first, last), pawl.ErrNewerFormat)
	_, err := new(RowsCheck).Add(last)
	require.ErrorIs(t, err, pawl.ErrNewerFormat)
	require.NoError(t, d.RestoreRows(t.Context()))
}

// Rule: rows that a check of the file would reject are not stored, even if their seals are
// sound: they say what no engine writes.
func TestWhatACheckRefusesIsNotStored(t *testing.T) {
	step := func(at int, state EntryState) *entry {
		return &entry{Kind: KindStep, Name: "s", At: at, State: state}
	}
	for rule, change := range map[string]func(d *desk, run pawl.ID){
		"":                         func(d *desk, run pawl.ID) { d.journal(run, step(0, EntryDone), step(1, EntryPending)) },
		"a call is missing":        func(d *desk, run pawl.ID) { d.journal(run, step(0, EntryDone), step(2, EntryDone)) },
		"two calls at one place":   func(d *desk, run pawl.ID) { d.journal(run, step(0, EntryDone), step(0, EntryDone)) },
		"pending before another":   func(d *desk, run pawl.ID) { d.journal(run, step(0, EntryPending), step(1, EntryDone)) },
		"blocked without its row":  func(d *desk, run pawl.ID) { d.edit(run, func(row *runRow) { row.Status = Blocked }) },
		"a signal that never came": func(d *desk, run pawl.ID) { d.edit(run, func(row *runRow) { row.Unread = 1 }) },
		"done without an output":   func(d *desk, run pawl.ID) { d.edit(run, func(row *runRow) { row.Status, row.Ended = Done, 1 }) },
		"a value that lies nowhere": func(d *desk, run pawl.ID) {
			d.write(func(r rows) error {
				var j journal
				e := step(0, EntryDone)
				e.seq, e.Occurrence, e.Apart, e.Size = 1, 1, true, 5
				j.add(run, e)
				return j.apply(r)
			})
		},
		"an input in its row and another one": func(d *desk, run pawl.ID) {
			d.write(func(r rows) error { return r.put(tableBlobs, seqKey(run, inputSeq), []byte{0xc0}) })
		},
		"two outputs": func(d *desk, run pawl.ID) {
			d.write(func(r rows) error { return r.put(tableBlobs, seqKey(run, outputSeq), []byte{0xc0}) })
			d.edit(run, func(row *runRow) { row.Status, row.Ended, row.Output = Done, 1, []byte{0xc0} })
		},
		"no input":                 func(d *desk, run pawl.ID) { d.edit(run, func(row *runRow) { row.Input = nil }) },
		"an output before its end": func(d *desk, run pawl.ID) { d.edit(run, func(row *runRow) { row.Output = []byte{0xc0} }) },
		"a large input in its row": func(d *desk, run pawl.ID) {
			d.edit(run, func(row *runRow) { row.Input = make([]byte, maxInRow+1) })
		},
		"a value of no entry": func(d *desk, run pawl.ID) {
			d.write(func(r rows) error { return r.put(tableBlobs, seqKey(run, 7), []byte("x")) })
		},
	} {
		d := newDesk(t)
		run := d.start("a")
		change(d, run)
		p, err := d.Rows(t.Context(), run, "")
		require.NoError(t, err)
		_, err = new(RowsCheck).Add(&p)
		if rule == "" {
			require.NoError(t, err)
			require.NoError(t, d.Check(t.Context()))
			continue
		}
		require.ErrorIs(t, err, pawl.ErrInvalid, rule)
		require.ErrorIs(t, d.Check(t.Context()), pawl.ErrCorrupt, rule)
	}
}
