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

// Rule: rows of a waiting tick are refused unless it is counted and has its entry in the history.
// Otherwise its end would make the count wrap, or overwrite an entry of another tick.
func TestRowsOfWaitingTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		s, err := Open(q, &Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, s.Put(t.Context(), Job("slow", "@hourly", pawl.Define[string]("tick"), "x", Overlap(Buffer))))
		require.NoError(t, s.Sync(t.Context()))
		time.Sleep(2*time.Hour + time.Minute) // one fires, and one waits
		list, err := Manage(q, nil).Rows(t.Context(), "", 1)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, CheckRows(&list[0]))
		for name, change := range map[string]func(*row){
			"not counted":            func(r *row) { r.Counts.Buffered = 0 },
			"entry 0":                func(r *row) { r.Buffered[0].Entry = 0 },
			"an entry to come later": func(r *row) { r.Buffered[0].Entry = r.Entries + 1 },
		} {
			r := new(row)
			require.NoError(t, driver.DecodePayload(list[0].Row, r))
			require.Len(t, r.Buffered, 1)
			change(r)
			rows := list[0]
			rows.Row, err = driver.EncodePayload(r)
			require.NoError(t, err)
			require.ErrorIs(t, CheckRows(&rows), pawl.ErrInvalid, name)
		}
	})
}
