// Package recurring proves the promises of package schedule over any queue: see [Run].
package recurring

import (
	"context"
	"iter"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/schedule"
)

// Store is a kind of queue.
type Store struct {
	// Open opens the queue of a path, which may be that of a queue that was closed.
	Open func(t testing.TB, path string, now func() time.Time) Queue

	// Seeds is the number of random histories, and Steps their length.
	Seeds, Steps int

	// Shared reports whether several queues can have a path open at a time.
	Shared bool

	// Lasts reports whether Open returns the same queue again, which Close left open.
	Lasts bool
}

// Queue is a queue that stores schedules.
type Queue interface {
	pawl.Queue
	schedule.Store

	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]
	Cancel(ctx context.Context, id pawl.ID) error
	Close() error
}

// Run runs all tests over a kind of queue.
func Run(t *testing.T, s Store) {
	for _, test := range []struct {
		name string
		run  func(k *kit)
	}{
		{"Fires", fires},
		{"Twins", twins},
		{"History", history},
		{"Pause", pauses},
		{"LongPause", longPause},
		{"Opened", opens},
		{"Put", puts},
		{"Override", overrides},
		{"Trigger", triggers},
		{"TriggerRuns", triggersRuns},
		{"Backfill", backfills},
		{"Retired", retires},
		{"DailyToHourly", dailyToHourly},
		{"HourlyToDaily", hourlyToDaily},
		{"Removed", removed},
		{"RolledBack", rolledBack},
		{"Renamed", renamed},
		{"Move", moves},
		{"Refused", refuses},
		{"Buffer", buffers},
		{"CancelOther", cancels},
		{"CancelLater", cancelsLater},
		{"Failed", fails},
		{"KeepsDue", keepsDue},
		{"Clock", clockIsSetBack},
		{"Flow", flows},
		{"FlowOverlap", flowsOverlap},
	} {
		t.Run(test.name, func(t *testing.T) { s.bubble(t, test.run) })
	}
	if s.Shared {
		t.Run("Several", func(t *testing.T) { s.bubble(t, several) })
	}
	t.Run("CatchUp", s.catchesUp)
	t.Run("Property", s.decidesOnce)
}

var report = pawl.Define[string]("report")

// kit is a store with a scheduler, in a bubble of testing/synctest. Its clock can be set.
type kit struct {
	*testing.T
	store  Store
	path   string
	offset atomic.Int64
	report func(string, schedule.Entry)
	q      Queue
	s      *schedule.Scheduler
}

// bubble runs a test at the start of the year 2000, UTC.
func (s Store) bubble(t *testing.T, test func(k *kit)) {
	t.Helper()
	path := filepath.Join(memdir.New(t), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		k := &kit{T: t, store: s, path: path}
		k.open()
		test(k)
		k.close()
	})
}

func (k *kit) now() time.Time { return time.Now().Add(time.Duration(k.offset.Load())) }

func (k *kit) open() {
	k.Helper()
	k.q = k.store.Open(k, k.path, k.now)
	k.s = k.scheduler(k.q)
}

// scheduler returns a scheduler over a queue.
func (k *kit) scheduler(q Queue) *schedule.Scheduler {
	k.Helper()
	s, err := schedule.Open(q, &schedule.Options{Logger: hclog.NewNullLogger(), OnDecision: k.decided, Poll: time.Minute})
	require.NoError(k, err)
	return s
}

func (k *kit) decided(name string, e schedule.Entry) {
	if k.report != nil {
		k.report(name, e)
	}
}

func (k *kit) close() {
	k.Helper()
	k.s.Close()
	if q, ok := k.q.(interface{ Check(context.Context) error }); ok {
		require.NoError(k, q.Check(context.Background()))
	}
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
