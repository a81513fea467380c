package schedule_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/schedule"
)

// Variables of a process that lives until it is killed: its file, and how far its clock is off.
const (
	killedPath   = "PAWL_SCHEDULE_FILE"
	killedOffset = "PAWL_SCHEDULE_OFFSET"
)

// TestKilledLife is the process.
func TestKilledLife(t *testing.T) {
	path := os.Getenv(killedPath)
	if path == "" {
		t.Skip("it is the process of TestKilled")
	}
	n, err := strconv.ParseInt(os.Getenv(killedOffset), 10, 64)
	require.NoError(t, err)
	var offset atomic.Int64
	offset.Store(n)
	q := openKilled(t, path, &offset)
	s, err := schedule.Open(q, &schedule.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	every := schedule.Job("every", "@every 1s", pawl.Define[string]("tick"), "x", schedule.Overlap(schedule.Allow), schedule.CatchUp(schedule.MaxCatchUp))
	require.NoError(t, s.Sync(context.Background(), every))
	for {
		time.Sleep(50 * time.Millisecond)
		offset.Add(int64(rand.N(5 * time.Second))) // the machine sleeps
		_, _ = s.Trigger(context.Background(), "none")
	}
}

func openKilled(t *testing.T, path string, offset *atomic.Int64) *bolt.Queue {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger(), Now: func() time.Time {
		return time.Now().Add(time.Duration(offset.Load()))
	}})
	require.NoError(t, err)
	return q
}

// Rule: a schedule of one second has each tick exactly once, however often its process is killed, and
// wherever the clock is set.
func TestKilled(t *testing.T) {
	lives := kills.Count(t, 6)
	path := filepath.Join(t.TempDir(), "jobs.db")
	var offset atomic.Int64
	for range lives {
		child := exec.Command(os.Args[0], "-test.run=^TestKilledLife$")
		child.Env = append(os.Environ(), killedPath+"="+path, killedOffset+"="+strconv.FormatInt(offset.Load(), 10))
		require.NoError(t, child.Start())
		time.Sleep(rand.N(300 * time.Millisecond)) // the moment must be random
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		offset.Add(int64(rand.N(60*time.Second)) - int64(20*time.Second))
	}
	q := openKilled(t, path, &offset)
	defer q.Close()
	require.NoError(t, q.Check(t.Context()))
	info, err := schedule.Read(q).Get(t.Context(), "every")
	if err != nil { // every life was too short
		require.ErrorIs(t, err, schedule.ErrNotFound)
		return
	}
	var ticks []int64
	for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		tick, ok := schedule.TickOf(e)
		require.True(t, ok)
		ticks = append(ticks, tick.Nominal.Unix())
	}
	slices.Sort(ticks)
	for i, tick := range ticks {
		require.EqualValues(t, info.Created.Unix()+1+int64(i), tick, "ticks from %v", info.Created)
	}
	require.EqualValues(t, len(ticks), info.Counts.Fired)
	require.Zero(t, info.Counts.Missed)
	t.Logf("%d lives, %d ticks", lives, len(ticks))
}
