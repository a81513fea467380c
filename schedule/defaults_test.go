package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/memory"
	"github.com/gopawl/pawl/schedule"
)

func openOver(t *testing.T, q pawl.Queue, opts *schedule.Options) *schedule.Scheduler {
	t.Helper()
	s, err := schedule.Open(q, opts)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// Rule: a scheduler without options has the default group, and does not touch the schedules of
// another group's scheduler.
func TestDefaultGroupBesideAnother(t *testing.T) {
	q := memory.New(nil)
	defer q.Close()
	billing, other := openOver(t, q, &schedule.Options{Group: "billing"}), openOver(t, q, nil)
	require.NoError(t, billing.Sync(t.Context(), schedule.Envelope("invoice", "@daily", &pawl.Envelope{Kind: "k"})))
	require.NoError(t, other.Sync(t.Context(), schedule.Envelope("clean", "@daily", &pawl.Envelope{Kind: "k"})))
	for name, group := range map[string]string{"invoice": "billing", "clean": "default"} {
		info, err := other.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, group, info.Group)
		require.Zero(t, info.Retired, name)
	}
}

// Rule: a backfill of a period that is empty, or too early to compute with, fires nothing.
func TestBackfillOfAPeriodThatIsNone(t *testing.T) {
	q := memory.New(nil)
	defer q.Close()
	s := openOver(t, q, nil)
	require.NoError(t, s.Sync(t.Context(), schedule.Envelope("yearly", "@yearly", &pawl.Envelope{Kind: "k"})))
	early := time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, period := range [][2]time.Time{{time.Now(), early}, {early, time.Now()}, {time.Now(), time.Now().Add(-time.Hour)}} {
		n, err := s.Backfill(t.Context(), "yearly", period[0], period[1], schedule.MaxCatchUp)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.Zero(t, n)
	}
}
