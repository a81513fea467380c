package recurring

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule: a second without a tick is lost, and every tick of a second after the first is doubled.
func TestAccounts(t *testing.T) {
	at := func(seconds ...int64) (all []time.Time) {
		for _, s := range seconds {
			all = append(all, time.Unix(s, 5e8))
		}
		return all
	}
	for name, c := range map[string]struct {
		ticks                  []time.Time
		seconds, lost, doubled int
	}{
		"none":       {nil, 0, 0, 0},
		"one":        {at(7), 1, 0, 0},
		"a gap":      {at(7, 8, 11), 5, 2, 0},
		"three of 8": {at(7, 8, 8, 8, 9), 3, 0, 2},
	} {
		seconds, lost, doubled := accounts(c.ticks)
		require.Equal(t, []int{c.seconds, c.lost, c.doubled}, []int{seconds, lost, doubled}, name)
	}
}

// Rule: a period has the start at its beginning, and not the one at its end.
func TestMost(t *testing.T) {
	at := func(ms ...int) (all []time.Time) {
		for _, n := range ms {
			all = append(all, time.UnixMilli(int64(n)))
		}
		return all
	}
	require.Equal(t, 2, most(at(0, 500, 1000), time.Second))
	require.Equal(t, 3, most(at(0, 500, 999), time.Second))
	require.Equal(t, 3, most(at(0, 900, 1000, 1500, 3000), time.Second))
	require.Zero(t, most(nil, time.Second))
}

// Rule: a job that runs twice counts once.
func TestReadTimes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "times")
	none, err := readTimes(name)
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoError(t, os.WriteFile(name, []byte("30 b\n20 a\n40 b\n"), 0o600))
	all, err := readTimes(name)
	require.NoError(t, err)
	require.Equal(t, []time.Time{time.Unix(0, 20), time.Unix(0, 30)}, all)
}

// Rule: a daily job of pawl has one time on each day of the year, and an hourly one follows the hours. The others
// skip the time that the clock skips, and repeat the one that it repeats.
func TestSummer(t *testing.T) {
	rows, err := summer()
	require.NoError(t, err)
	require.Len(t, rows, len(contenders()))
	require.Equal(t, row{"pawl", "1", "1", "23", "25"}, rows[0])
	require.Equal(t, row{"dbos", "0", "2", "23", "25"}, rows[2])
}
