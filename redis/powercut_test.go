package redis_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/redis"
)

// growth has the lengths of a server's log, with their times.
type growth struct {
	mu    sync.Mutex
	sizes []struct {
		at   time.Time
		size int64
	}
}

// note measures the log of a server in a folder, and returns its path.
func (g *growth) note(t *testing.T, dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	info, err := os.Stat(found[0])
	require.NoError(t, err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sizes = append(g.sizes, struct {
		at   time.Time
		size int64
	}{time.Now(), info.Size()})
	return found[0]
}

// before returns the length of the log at a time.
func (g *growth) before(at time.Time) (size int64) {
	for _, s := range g.sizes {
		if !s.at.After(at) {
			size = s.size
		}
	}
	return size
}

// Rule: with everysec, a power cut loses the jobs of the last second at most, which this test counts, and the rest
// is whole: every acknowledged job before that runs, and the queue continues. The test cuts the log where it ended
// a second before the kill, so it shows the worst that a sync each second allows.
func TestPowerCutEverySec(t *testing.T) {
	url(t)
	if os.Getenv("PAWL_SLOW_TESTS") == "" {
		t.Skip("two seconds of jobs; set PAWL_SLOW_TESTS=1")
	}
	dir := t.TempDir()
	args := []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	server, err := startServer(dir, args...)
	require.NoError(t, err)
	o := redis.Options{Name: "cut", Timeout: time.Second}
	q := open(t, server.url, o)
	require.ErrorIs(t, pawl.Require(q, pawl.Synced), pawl.ErrUnsupported)
	var log growth
	var path string
	type stored struct {
		id pawl.ID
		at time.Time
	}
	var jobs []stored
	for began := time.Now(); time.Since(began) < 2*time.Second; {
		done, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
		require.NoError(t, err)
		jobs = append(jobs, stored{done[0].ID, time.Now()})
		path = log.note(t, dir)
	}
	killed := time.Now()
	server.Stop()
	cut := killed.Add(-time.Second)
	require.NoError(t, os.Truncate(path, log.before(cut)))
	server, err = startServer(dir, args...)
	require.NoError(t, err)
	defer server.Stop()
	again := open(t, server.url, o)
	lost := 0
	for _, j := range jobs {
		_, err := again.Job(t.Context(), j.id)
		if err == nil {
			continue
		}
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.True(t, j.at.After(cut), "a job that was acknowledged a second before is lost")
		lost++
	}
	t.Logf("of %d jobs acknowledged in %v, the last second had %d, and they are lost", len(jobs), killed.Sub(jobs[0].at).Round(time.Millisecond), lost)
	require.Positive(t, lost, "the test cut nothing")
	require.Equal(t, len(jobs)-lost, countsOf(t, again).Ready)
	l := fetch(t, again)
	require.Equal(t, jobs[0].id, l.ID)
	require.NoError(t, again.Settle(t.Context(), l.Ack()))
}
