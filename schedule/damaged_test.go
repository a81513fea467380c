package schedule

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
)

// Rule: an operator can remove a schedule whose row is damaged, and store it again. Every other change
// refuses it and says so. Its rows in the indexes go, and the scheduler that passed it over fires it once.
func TestDamagedScheduleIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		s, err := Open(q, &Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer s.Close()
		d := Job("damaged", "@hourly", pawl.Define[string]("tick"), "x", Overlap(Buffer))
		require.NoError(t, s.Put(t.Context(), d))
		require.NoError(t, s.Sync(t.Context()))
		time.Sleep(2*time.Hour + time.Minute) // one fires, and one waits
		require.NoError(t, q.Mutate(t.Context(), &damage{}, 0))
		time.Sleep(time.Hour)

		m := Manage(q, nil)
		for _, err := range []error{
			m.Put(t.Context(), d), m.Set(t.Context(), "damaged", d.terms), m.Reset(t.Context(), "damaged"),
			m.Pause(t.Context(), "damaged", ""), m.Resume(t.Context(), "damaged", SkipPaused),
		} {
			require.ErrorIs(t, err, pawl.ErrCorrupt)
			require.ErrorContains(t, err, "remove the schedule, and define it again")
		}
		require.NoError(t, m.Remove(t.Context(), "damaged"))
		require.ErrorIs(t, m.Remove(t.Context(), "damaged"), ErrNotFound)
		require.NoError(t, m.Put(t.Context(), d))
		time.Sleep(time.Hour)
		synctest.Wait()
		info, err := s.Get(t.Context(), "damaged")
		require.NoError(t, err)
		require.EqualValues(t, 1, info.Counts.Fired)
		entries, err := s.History(t.Context(), "damaged", 0)
		require.NoError(t, err)
		require.Len(t, entries, 1, "the history of the damaged row is gone")
		require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error {
			for table, rows := range map[*driver.Table]int{tableDue: 1, tableBuffered: 0} {
				n := 0
				require.NoError(t, present(r.Scan(table, driver.Span{}, func(_, _ []byte) bool { n++; return true })))
				require.Equal(t, rows, n)
			}
			return nil
		}))
	})
}

// Rule: a schedule that was removed and stored again is another one, whatever was computed for the old
// one.
func TestReplacedScheduleIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		m := Manage(q, nil)
		require.NoError(t, m.Put(t.Context(), Envelope("a", "@hourly", &pawl.Envelope{Kind: "old"})))
		var old *row
		require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) (err error) {
			old, err = read(r, "a")
			return err
		}))
		c, err := m.candidate("a", old, time.Now().Add(61*time.Minute).UnixNano(), 1)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, m.Remove(t.Context(), "a"))
		require.NoError(t, m.Put(t.Context(), Envelope("a", "@hourly", &pawl.Envelope{Kind: "new"})))
		changes, err := m.decide(t.Context(), []*candidate{c}, nil, nil)
		require.NoError(t, err)
		require.Empty(t, changes)
	})
}

// Rule: the ticks of a long pause are counted before the transaction that ends it, and the transaction
// counts those since then. A count of another row, or of a later time, does not apply.
func TestLongPauseIsCountedBefore(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	paused := func() *change {
		was := &row{Terms: Terms{Spec: "@every 1s"}, Paused: &pause{}, Last: start.UnixNano(), Changes: 7}
		return &change{name: "a", was: was, row: was.clone()}
	}
	ticks := func(c *change) int {
		n := 0
		for _, e := range c.decided {
			n += e.Ticks
		}
		return n
	}
	const long = 250_000
	require.False(t, paused().pass(after(long), passed{}), "it counted many ticks")
	c := paused()
	counted := c.was.countPassed("a", after(long).UnixNano())
	require.True(t, c.pass(after(long+5), counted))
	require.Equal(t, MaxMissed, ticks(c))
	require.Equal(t, after(1).UnixNano(), c.decided[0].First)
	require.Equal(t, after(long+5).UnixNano(), c.decided[0].Last)
	require.Equal(t, after(long+5).UnixNano(), c.row.Last)

	c = paused()
	counted = c.was.countPassed("a", after(1000).UnixNano())
	require.True(t, c.pass(after(1007), counted))
	require.Equal(t, 1007, ticks(c))
	require.False(t, paused().pass(after(1000+fewPassed+1), counted))
	require.False(t, paused().pass(after(999), counted), "the count is of a later time")
	c = paused()
	c.was.Changes++
	require.False(t, c.pass(after(1007), counted), "the count is of another row")
}
