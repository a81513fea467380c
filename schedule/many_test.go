package schedule_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/schedule"
)

// Rule: a hundred thousand schedules that are due at the same time fire within a minute. The test
// runs only if PAWL_SLOW_TESTS is set.
func TestManySchedules(t *testing.T) {
	if os.Getenv("PAWL_SLOW_TESTS") == "" {
		t.Skip("set PAWL_SLOW_TESTS=1 to fire 100 000 schedules")
	}
	var offset atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	q, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), &bolt.Options{Now: now, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	fired := make(chan string, schedule.MaxSchedules)
	s, err := schedule.Open(q, &schedule.Options{OnDecision: func(name string, e schedule.Entry) { fired <- name }})
	require.NoError(t, err)
	defer s.Close()
	kind := pawl.Define[string]("tick")
	defs := make([]schedule.Definition, schedule.MaxSchedules)
	for i := range defs {
		defs[i] = schedule.Job(fmt.Sprint("tenant-", i), "@daily", kind, "x")
	}
	start := time.Now()
	require.NoError(t, s.Sync(t.Context(), defs...))
	t.Logf("stored %d schedules in %v", len(defs), time.Since(start))
	start = time.Now()
	require.NoError(t, s.Sync(t.Context(), defs...))
	t.Logf("found them unchanged in %v", time.Since(start))

	offset.Store(int64(25 * time.Hour))
	require.NoError(t, s.Pause(t.Context(), "tenant-0", "makes the scheduler look"))
	start = time.Now()
	names := make(map[string]bool)
	for range schedule.MaxSchedules - 1 {
		name := <-fired
		require.False(t, names[name])
		names[name] = true
	}
	took := time.Since(start)
	t.Logf("fired them in %v", took)
	require.Less(t, took, time.Minute)
}
