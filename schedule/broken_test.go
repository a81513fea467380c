package schedule

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/memory"
)

// Rule: a schedule whose time zone is gone, or whose row is damaged, fires nothing and says so. The
// others fire.
func TestBrokenSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		s, err := Open(q, &Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer s.Close()
		kind := pawl.Define[string]("tick")
		for _, name := range []string{"broken", "damaged", "sound"} {
			require.NoError(t, s.Put(t.Context(), Job(name, "@hourly", kind, "x", Overlap(Buffer))))
		}
		require.NoError(t, s.Sync(t.Context()))
		synctest.Wait()
		require.NoError(t, s.change(t.Context(), []string{"broken"}, func(_ driver.Ops, c *change) error {
			c.row.Terms.Zone = "Mars/Phobos"
			c.row.Buffered = []buffered{{Nominal: 1}}
			return nil
		}))
		require.NoError(t, q.Mutate(t.Context(), &damage{}, 0))
		time.Sleep(61 * time.Minute)
		synctest.Wait()
		list, err := s.List(t.Context(), "", 10)
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.Contains(t, list[0].Broken, `"Mars/Phobos" is unknown`)
		require.Zero(t, list[0].Due)
		require.Contains(t, list[1].Broken, "checksum")
		require.EqualValues(t, 1, list[2].Counts.Fired)
		_, err = s.Trigger(t.Context(), "damaged")
		require.ErrorIs(t, err, pawl.ErrCorrupt)
	})
}

// damage is a mutation that damages a row.
type damage struct{}

func (damage) Check(driver.Ops) error { return nil }

func (damage) Apply(w driver.Writer) error {
	return w.Put(tableRows, nameKey("damaged"), []byte{RowsForm, 0, 0, 0, 0, 0})
}

// Rule: a schedule keeps all that its job sets.
func TestTemplate(t *testing.T) {
	kind := pawl.Define[string]("tick")
	e, err := kind.Envelope("x", pawl.OnQueue("q"), pawl.Key("tenant"), pawl.Priority(3), pawl.MaxRetries(7), pawl.Timeout(time.Minute),
		pawl.Retain(time.Hour), pawl.Header("a", "b"), pawl.Backoff(pawl.Fixed(time.Second)))
	require.NoError(t, err)
	d := Envelope("a", "@daily", e)
	require.NoError(t, d.err)
	stored, err := d.action.template()
	require.NoError(t, err)
	require.True(t, stored.Created.IsZero() && stored.NotBefore.IsZero() && stored.Deadline.IsZero())
	stored.Created, stored.NotBefore, stored.Deadline = e.Created, e.NotBefore, e.Deadline
	require.Equal(t, e, stored)
}

// Rule: a tick that waits fires when the job before it has ended, however many others wait too.
func TestManyBufferedTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := memory.New(&memory.Options{Logger: hclog.NewNullLogger()})
		defer q.Close()
		s, err := Open(q, &Options{Logger: hclog.NewNullLogger()})
		require.NoError(t, err)
		defer s.Close()
		all := []Definition{Envelope("z", "@hourly", &pawl.Envelope{Kind: "k", Queue: "last"}, Overlap(Buffer))}
		for i := range portion {
			all = append(all, Envelope(fmt.Sprint(i), "@hourly", &pawl.Envelope{Kind: "k"}, Overlap(Buffer)))
		}
		require.NoError(t, s.Sync(t.Context(), all...))
		time.Sleep(121 * time.Minute)
		synctest.Wait()
		for range 2 {
			leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"last"}, Max: 9, Wait: pawl.WaitNot})
			require.NoError(t, err)
			require.Len(t, leases, 1)
			require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		info, err := s.Get(t.Context(), "z")
		require.NoError(t, err)
		require.Empty(t, info.Buffered)
	})
}
