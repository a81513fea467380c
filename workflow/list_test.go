package workflow

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// listAll reads a list in pages of max, and returns the IDs.
func (d *desk) listAll(f Filter, max int) (ids []string) {
	d.t.Helper()
	for after := ""; ; {
		l, err := d.List(d.t.Context(), f, after, max)
		require.NoError(d.t, err)
		require.LessOrEqual(d.t, len(l.Runs), max)
		for _, info := range l.Runs {
			ids = append(ids, info.ID)
		}
		if after = l.Next; after == "" {
			return ids
		}
		require.Regexp(d.t, regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`), after)
	}
}

// A list has each run once, in the order of the starts, whatever the size of its pages.
func TestListInParts(t *testing.T) {
	d := newDesk(t)
	require.Empty(t, d.listAll(Filter{}, 10))
	var want []string
	for i := range 23 {
		want = append(want, fmt.Sprint(i))
		d.start(want[i])
	}
	for _, max := range []int{1, 7, 22, 23, 24, pawl.MaxListed} {
		require.Equal(t, want, d.listAll(Filter{}, max), max)
	}
}

// A filter selects by all of its fields, and by the status that Info reports.
func TestListFilters(t *testing.T) {
	d := newDesk(t)
	states := []struct {
		id    string
		bring func(pawl.ID)
	}{
		{"order/ready", func(pawl.ID) {}},
		{"order/sleeps", func(run pawl.ID) { d.suspend(run, Sleeping, nil) }},
		{"order/waits", func(run pawl.ID) { d.suspend(run, Waiting, nil) }},
		{"order/paused", func(run pawl.ID) { d.suspend(run, Waiting, func(row *runRow) { row.Paused = true }) }},
		{"bill/blocked", func(run pawl.ID) { d.block(run, "1") }},
		{"bill/dead", func(run pawl.ID) { jobIn[pawl.Dead](d, run) }},
		{"bill/gone", func(run pawl.ID) { d.suspend(run, Sleeping, func(row *runRow) { row.Paused = true }); d.lose(run) }},
		{"bill/done", func(run pawl.ID) { jobIn[""](d, run); d.end(run, Done) }},
		{"bill/failed", func(run pawl.ID) { jobIn[""](d, run); d.end(run, Failed) }},
		{"cancelled", func(run pawl.ID) { jobIn[""](d, run); d.end(run, Cancelled) }},
		{"terminated", func(run pawl.ID) { jobIn[""](d, run); d.end(run, Terminated) }},
	}
	for i := len(states) - 1; i >= 0; i-- { // the run that stays ready comes last
		states[i].bring(d.start(states[i].id))
	}
	slices.Reverse(states)
	other := Define("other", func(*Run, int) (int, error) { return 0, nil })
	_, err := other.Start(t.Context(), d.Engine, "order/of another", 1)
	require.NoError(t, err)

	statuses := []Status{"", Running, Sleeping, Waiting, Paused, Blocked, Dead, Done, Failed, Cancelled, Terminated}
	everything, err := d.List(t.Context(), Filter{}, "", 100)
	require.NoError(t, err)
	require.Len(t, everything.Runs, len(states)+1)
	for _, flow := range []string{"", "note", "other", "nothing"} {
		for _, prefix := range []string{"", "order/", "bill", "cancelled", "x"} {
			for _, status := range statuses {
				var want []string
				for _, info := range everything.Runs {
					if (flow == "" || flow == info.Flow) && len(info.ID) >= len(prefix) && info.ID[:len(prefix)] == prefix &&
						(status == "" || status == info.Status) {
						want = append(want, info.ID)
					}
				}
				f := Filter{Flow: flow, Status: status, Prefix: prefix}
				require.Equal(t, want, d.listAll(f, 2), "%+v", f)
				if flow == "" && prefix == "" {
					require.NotEmpty(t, want, status)
				}
			}
		}
	}
	require.Equal(t, []string{"bill/gone", "bill/dead"}, d.listAll(Filter{Status: Dead}, 100))
	require.Equal(t, []string{"order/paused"}, d.listAll(Filter{Status: Paused}, 100))
}

// lose removes the job of a waiting run.
func (d *desk) lose(run pawl.ID) {
	d.t.Helper()
	require.NoError(d.t, d.file.Cancel(d.t.Context(), run))
	require.NoError(d.t, d.file.Delete(d.t.Context(), run))
}

// A cursor stays valid when its run is gone, and is valid only for its own list.
func TestPlacesInAList(t *testing.T) {
	d := newDesk(t)
	var runs []pawl.ID
	for i := range 5 {
		runs = append(runs, d.start(fmt.Sprint(i)))
	}
	first, err := d.List(t.Context(), Filter{}, "", 2)
	require.NoError(t, err)
	d.edit(runs[1], func(row *runRow) { row.Retain = 1 })
	d.end(runs[1], Done)
	d.pass(1)
	require.NotZero(t, d.sweep(1000))
	second, err := d.List(t.Context(), Filter{}, first.Next, 2)
	require.NoError(t, err)
	require.Equal(t, []pawl.ID{runs[2], runs[3]}, []pawl.ID{second.Runs[0].Run, second.Runs[1].Run})

	for _, f := range []Filter{{Flow: "note"}, {Status: Running}, {Prefix: "1"}} {
		_, err := d.List(t.Context(), f, first.Next, 2)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	for _, after := range []string{"x", "AAAA", "AQ", formatCursor(nil, Filter{}), first.Next + "A", first.Next[:len(first.Next)-4], "%%"} {
		_, err := d.List(t.Context(), Filter{}, after, 2)
		require.ErrorIs(t, err, pawl.ErrInvalid, after)
	}
}

// Wrong arguments are refused.
func TestListsThatAreRefused(t *testing.T) {
	d := newDesk(t)
	for _, max := range []int{-1, 0, pawl.MaxListed + 1} {
		_, err := d.List(t.Context(), Filter{}, "", max)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	_, err := d.List(t.Context(), Filter{Status: "ready"}, "", 1)
	require.ErrorIs(t, err, pawl.ErrInvalid)
}

// Unreadable runs are in every list, so that none disappears.
func TestListShowsDamage(t *testing.T) {
	d := newDesk(t)
	spoilt, form := d.start("a"), d.start("b")
	d.start("c")
	d.spoil(tableRuns, spoilt[:])
	d.write(func(r rows) error { // a row of a newer build
		return firstError(r.put(tableRuns, form[:], []byte{0xc1}), r.put(tableRuns, []byte("stray"), nil))
	})
	for _, f := range []Filter{{}, {Status: Done}, {Flow: "x"}, {Prefix: "x"}} {
		l, err := d.List(t.Context(), f, "", 10)
		require.NoError(t, err)
		damaged := 0
		for _, info := range l.Runs {
			if info.Flow == "" {
				damaged++
				require.NotEmpty(t, info.Error)
				require.Equal(t, Info{Run: info.Run, Error: info.Error}, info)
				require.Contains(t, []pawl.ID{spoilt, form, {}}, info.Run)
			}
		}
		require.Equal(t, 3, damaged)
	}
	require.Len(t, d.listAll(Filter{}, 1), 4)
}

// One list reads a limited number of rows and returns where to continue.
func TestListIsBounded(t *testing.T) {
	d := newDesk(t)
	d.write(func(r rows) error {
		row := &runRow{Flow: "note", Status: Done}
		for i := range listRows + 10 {
			run := pawl.ID{byte(i >> 16), byte(i >> 8), byte(i)}
			if row.ID = "none"; i == listRows+5 {
				row.ID = "it"
			}
			if err := r.putRun(run, row); err != nil {
				return err
			}
		}
		return nil
	})
	l, err := d.List(t.Context(), Filter{Prefix: "it"}, "", 10)
	require.NoError(t, err)
	require.Empty(t, l.Runs)
	require.NotEmpty(t, l.Next)
	l, err = d.List(t.Context(), Filter{Prefix: "it"}, l.Next, 10)
	require.NoError(t, err)
	require.Len(t, l.Runs, 1)
	require.Empty(t, l.Next)
}
