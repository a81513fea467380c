package schedule_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/schedule"
)

var report = pawl.Define[string]("report")

// kit is a store with a scheduler, in a bubble of testing/synctest. Its clock can be set.
type kit struct {
	*testing.T
	path   string
	offset atomic.Int64
	report func(string, schedule.Entry)
	q      *bolt.Queue
	s      *schedule.Scheduler
}

// bubble runs a test at the start of the year 2000, UTC.
func bubble(t *testing.T, test func(k *kit)) {
	t.Helper()
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		k := &kit{T: t, path: path}
		k.open()
		test(k)
		k.close()
	})
}

func (k *kit) now() time.Time { return time.Now().Add(time.Duration(k.offset.Load())) }

func (k *kit) open() {
	k.Helper()
	var err error
	k.q, err = bolt.Open(k.path, &bolt.Options{Now: k.now, Logger: hclog.NewNullLogger()})
	require.NoError(k, err)
	k.s, err = schedule.Open(k.q, &schedule.Options{Logger: hclog.NewNullLogger(), OnDecision: k.decided})
	require.NoError(k, err)
}

func (k *kit) decided(name string, e schedule.Entry) {
	if k.report != nil {
		k.report(name, e)
	}
}

func (k *kit) close() {
	k.Helper()
	k.s.Close()
	require.NoError(k, k.q.Check(context.Background()))
	require.NoError(k, k.q.Close())
}

func (k *kit) sync(defs ...schedule.Definition) {
	k.Helper()
	require.NoError(k, k.s.Sync(k.Context(), defs...))
	synctest.Wait()
}

// pass lets time pass.
func (k *kit) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// jobs returns the jobs of the queue with their ticks, as "name time".
func (k *kit) jobs() (found []string) {
	k.Helper()
	for e, err := range k.q.Jobs(k.Context(), pawl.Filter{}) {
		require.NoError(k, err)
		tick, ok := schedule.TickOf(e)
		require.True(k, ok)
		found = append(found, tick.Schedule+" "+tick.Nominal.UTC().Format("02 15:04:05"))
	}
	return found
}

// history returns the history of a schedule, each entry as "decision first-last xticks".
func (k *kit) history(name string) (lines []string) {
	k.Helper()
	list, err := k.s.History(k.Context(), name, 0)
	require.NoError(k, err)
	for _, e := range list {
		line := string(e.Decision) + " " + e.First.UTC().Format("02 15:04:05")
		if e.Ticks > 1 {
			line += e.Last.UTC().Format(" to 02 15:04:05")
		}
		lines = append(lines, line)
	}
	return lines
}

func (k *kit) info(name string) schedule.Info {
	k.Helper()
	info, err := k.s.Get(k.Context(), name)
	require.NoError(k, err)
	return info
}
