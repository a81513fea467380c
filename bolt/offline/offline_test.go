package offline_test

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/internal/withid"
)

// stopped returns the file of an app that stored jobs and ended.
func stopped(t *testing.T, jobs int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	batch := make([]*pawl.Envelope, jobs)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k"}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	require.NoError(t, q.Close())
	return path
}

// Rule: an iteration has each job once, however many pages it takes, and the caller may change
// the file within it. The file opens for writing only with the first change.
func TestJobsMayBeChangedWithinTheirIteration(t *testing.T) {
	path := stopped(t, 1200)
	f := offline.New(path, nil)
	other, seen := offline.New(path, nil), make(map[pawl.ID]bool)
	for e, err := range f.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		if len(seen) == 0 {
			_, err := other.Stats(t.Context())
			require.NoError(t, err, "a file that is only read is open to other readers")
			require.NoError(t, other.Close())
			require.NoError(t, f.Pause(t.Context(), "q"))
			require.Equal(t, runtime.GOOS != "windows" && runtime.GOOS != "solaris", f.Locked())
		}
		seen[e.ID] = true
	}
	require.Len(t, seen, 1200)
	require.NoError(t, f.Close())
	require.False(t, f.Locked())
}

// Rule: an iteration ends at a break, and yields the error of a file that cannot be read.
func TestJobsEnd(t *testing.T) {
	f := offline.New(stopped(t, 3), nil)
	seen := 0
	for range f.Jobs(t.Context(), pawl.Filter{}) {
		seen++
		break
	}
	require.Equal(t, 1, seen)
	require.NoError(t, f.Close())
	for e, err := range f.Jobs(t.Context(), pawl.Filter{}) {
		require.Nil(t, e)
		require.ErrorIs(t, err, pawl.ErrClosed)
		seen++
	}
	require.Equal(t, 2, seen)
}

// Rule: Close closes Done once, and Now follows the clock of the options.
func TestDoneAndNow(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	f := offline.New("none.db", &offline.Options{Now: func() time.Time { return now }})
	require.Equal(t, now, f.Now())
	select {
	case <-f.Done():
		t.Fatal("it is not closed")
	default:
	}
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	<-f.Done()
}

// Rule: an operator ends the rest of a key while the app is stopped.
func TestEndRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Limits: map[string]pawl.Limits{pawl.DefaultQueue: {RunningPerKey: 1}}})
	require.NoError(t, err)
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Key: "a"}))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Throttle(time.Hour, pawl.ThisKey)))
	require.NoError(t, q.Close())
	f := offline.New(path, nil)
	key, err := f.Key(t.Context(), pawl.DefaultQueue, "a")
	require.NoError(t, err)
	require.False(t, key.Rests.IsZero())
	require.NoError(t, f.EndRest(t.Context(), pawl.DefaultQueue, "a"))
	key, err = f.Key(t.Context(), pawl.DefaultQueue, "a")
	require.NoError(t, err)
	require.True(t, key.Rests.IsZero())
	require.NoError(t, f.Close())
}
