package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule: the ID of a run that a schedule started has its tick, and no other ID has one.
func TestTickOfRun(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 15, 0, 123_000_000, time.UTC)
	for id, want := range map[string]Tick{
		RunID("settle", at): {Schedule: "settle", Nominal: at},
		// The ID is written out, because pawl.NewID never goes back behind the time of another test.
		"settle/manual/01a20289-929b-7000-8000-000000000000": {Schedule: "settle", Nominal: at, Manual: true},
	} {
		got, ok := TickOfRun(id)
		require.True(t, ok, id)
		require.Equal(t, want, got)
	}
	for _, id := range []string{"", "settle", "settle/", "order/1042", "settle/manual/", "settle/manual/x", "settle/2026-11-22", "/2026-11-22T09:15:00Z"} {
		none, ok := TickOfRun(id)
		require.False(t, ok, id)
		require.Zero(t, none)
	}
}
