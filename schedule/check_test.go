package schedule

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
)

// Rule: a check finds a schedule or an entry of a history that cannot be read, and a schedule that does not fire because an
// index lacks it.
func TestCheck(t *testing.T) {
	for rule, spoil := range map[string]func(driver.Writer) error{
		"a schedule that cannot be read": func(w driver.Writer) error {
			return w.Put(tableRows, nameKey("a"), []byte("damaged"))
		},
		"an entry that cannot be read": func(w driver.Writer) error {
			return w.Put(tableHistory, entryKey("a", 1), []byte("damaged"))
		},
		"a due schedule without a row in the index": func(w driver.Writer) error {
			_, _, err := w.DeleteSpan(tableDue, driver.Span{}, 1<<20)
			return err
		},
		"waiting ticks without a row in the index": func(w driver.Writer) error {
			return w.Delete(tableBuffered, nameKey("a"))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
			defer q.Close()
			r := Read(q)
			require.NoError(t, r.Check(t.Context()), "a queue without schedules")
			s, err := Open(q, &Options{Logger: hclog.NewNullLogger()})
			require.NoError(t, err)
			defer s.Close()
			require.NoError(t, s.Sync(t.Context(), Job("a", "@hourly", pawl.Define[string]("tick"), "x", Overlap(Buffer))))
			time.Sleep(2*time.Hour + time.Minute) // one fires, and one waits
			require.NoError(t, r.Check(t.Context()))
			require.NoError(t, q.Mutate(t.Context(), byHand(spoil), 0))
			err = r.Check(t.Context())
			require.ErrorIs(t, err, pawl.ErrCorrupt, rule)
			if strings.Contains(err.Error(), "pause the schedule, and resume it") {
				require.NoError(t, s.Pause(t.Context(), "a", ""))
				require.NoError(t, s.Resume(t.Context(), "a", SkipPaused))
				require.NoError(t, r.Check(t.Context()), rule)
			}
		})
	}
}

// byHand is a mutation that writes what no build writes.
type byHand func(driver.Writer) error

func (byHand) Check(driver.Ops) error        { return nil }
func (m byHand) Apply(w driver.Writer) error { return m(w) }
