package schedule

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
)

// Rule: if the group of a job is gone, each tick fails, and the other schedules fire. An earlier build stored such jobs.
func TestGroupOfScheduleIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		s, err := Open(q, &Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer s.Close()
		member := Envelope("member", "@hourly", &pawl.Envelope{Kind: "k"})
		member.action.Job = driver.AppendRecord(nil, &pawl.Envelope{Kind: "k", Group: "gone"}, 0)
		require.NoError(t, s.Sync(t.Context(), member, Envelope("z", "@hourly", &pawl.Envelope{Kind: "k"}, Overlap(Allow))))
		time.Sleep(2*time.Hour + time.Minute)
		synctest.Wait()
		info, err := s.Get(t.Context(), "z")
		require.NoError(t, err)
		require.EqualValues(t, 2, info.Counts.Fired)
		info, err = s.Get(t.Context(), "member")
		require.NoError(t, err)
		require.EqualValues(t, 2, info.Counts.Failed)
		_, err = s.Trigger(t.Context(), "member")
		require.ErrorContains(t, err, `"gone"`)
	})
}

// Rule: an error that may pass ends the decisions about its schedule before the tick of the error. The ticks before it
// stay decided, no tick fires twice, and a tick that waits keeps waiting. An operator gets the error of a tick, and then
// no tick of the call fires.
func TestErrorOfTickStopsBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		m := Manage(q, nil)
		broken := errors.New("broken")
		candidateOf := func(name string) *candidate {
			var r *row
			require.NoError(t, q.ViewRows(t.Context(), func(tx driver.Reader) (err error) {
				r, err = mustRead(tx, name)
				return err
			}))
			c, err := m.candidate(name, r, time.Now().UnixNano(), portion)
			require.NoError(t, err)
			return c
		}
		decide := func(c *candidate) {
			_, err := m.decide(t.Context(), []*candidate{c}, c.row.Alive, nil)
			require.NoError(t, err)
		}
		jobs := func() int {
			n := 0
			for _, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
				n++
			}
			return n
		}
		kind := pawl.Envelope{Kind: "k"}
		require.NoError(t, m.Put(t.Context(), Envelope("all", "@hourly", &kind, Overlap(Allow), CatchUp(3))))
		require.NoError(t, m.Put(t.Context(), Envelope("one", "@hourly", &kind, Overlap(Buffer))))
		time.Sleep(3*time.Hour + time.Minute)
		c := candidateOf("all")
		c.fires[c.due.ticks[1]].err = broken
		first := c.due.ticks[0]
		decide(c)
		require.ErrorIs(t, c.failed, broken)
		require.Equal(t, 1, jobs())
		c = candidateOf("all")
		require.Equal(t, first, c.row.Last)
		decide(c)
		require.NoError(t, c.failed)
		require.Equal(t, 3, jobs())

		decide(candidateOf("one"))
		time.Sleep(time.Hour)
		decide(candidateOf("one"))
		require.Equal(t, 4, jobs())
		c = candidateOf("one")
		require.Len(t, c.row.Buffered, 1)
		require.NoError(t, q.Cancel(t.Context(), c.row.Alive[0]))
		c.fires[c.row.Buffered[0].Nominal].err = broken
		decide(c)
		require.ErrorIs(t, c.failed, broken)
		c = candidateOf("one")
		require.Len(t, c.row.Buffered, 1)
		decide(c)
		require.Empty(t, candidateOf("one").row.Buffered)
		require.Equal(t, 5, jobs())

		c.manual, c.row = []int64{1, 2}, candidateOf("one").row
		m.prepare(c, 1, "")
		m.prepare(c, 2, "")
		c.fires[2].err = broken
		_, err := m.decide(t.Context(), []*candidate{c}, c.row.Alive, nil)
		require.ErrorIs(t, err, broken)
		require.Equal(t, 5, jobs())
	})
}
