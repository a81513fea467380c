package driver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// counts is the table of a meter. A transaction that fails leaves it as it is only if the test says so.
type counts map[string][]byte

func (c counts) Get(_ *Table, key []byte) ([]byte, error) { return c[string(key)], nil }

func (c counts) Scan(_ *Table, s Span, fn func(key, value []byte) bool) error {
	rows := 0
	for _, k := range slices.Sorted(maps.Keys(c)) {
		key := []byte(k)
		if !bytes.HasPrefix(key, s.Prefix) || bytes.Compare(key, s.From) < 0 {
			continue
		}
		if rows++; !fn(key, c[k]) || rows == s.Limit {
			break
		}
	}
	return nil
}

func (c counts) Put(_ *Table, key, value []byte) error { c[string(key)] = value; return nil }
func (c counts) Delete(_ *Table, key []byte) error     { delete(c, string(key)); return nil }

func (c counts) DeleteSpan(*Table, Span, int) (int, int, error) { panic("not used") }
func (c counts) OnCommit(func())                                { panic("not used") }

// noon is in the middle of an hour, as of a minute.
var noon = time.Date(2026, 11, 1, 12, 30, 30, 0, time.UTC)

// metering is a meter with its table.
type metering struct {
	*testing.T
	Meter
	counts
	now time.Time
}

func newMetering(t *testing.T) *metering {
	return &metering{T: t, counts: make(counts), now: noon, Meter: Meter{Build: Build{Version: "v1"}}}
}

// enqueued counts jobs that were enqueued.
func (m *metering) enqueued(n int64, queue string) { m.Count(m.now, queue, Totals{Enqueued: n}, false) }

// store stores what waits in a transaction that is durable.
func (m *metering) store(id uint64) {
	m.Helper()
	require.NoError(m, m.Store(m.counts, m.now, id))
	m.Stored(true)
}

// read returns a report as transaction id sees it.
func (m *metering) read(id uint64, q ThroughputQuery) Throughput {
	m.Helper()
	got, err := m.Read(m.counts, id, m.now, q)
	require.NoError(m, err)
	require.NoError(m, CheckThroughput(&q, &got))
	return got
}

func sumOf(t Throughput) Totals { return t.Total() }

// has requires how many jobs were enqueued in the last week.
func (m *metering) has(want int64) {
	m.Helper()
	require.Equal(m, want, sumOf(m.read(1<<60, ThroughputQuery{Last: ThroughputKept})).Enqueued)
}

// Rule: what waits in memory is bounded, however many queues there are, and every job counts.
func TestMeterBoundsItsMemory(t *testing.T) {
	m := newMetering(t)
	for n := range 3 * maxPending {
		m.enqueued(1, fmt.Sprint("queue ", n))
	}
	require.LessOrEqual(t, len(m.pending), maxPending+1)
	m.has(3 * maxPending)
	m.store(1)
	require.LessOrEqual(t, len(m.counts), maxMetered+1)
	require.GreaterOrEqual(t, len(m.counts), maxMetered, "the queue \"\" may be one of those with counts of their own")
	m.has(3 * maxPending)

	tally := new(Tally)
	for n := range 3 * maxMetered {
		tally.Count(fmt.Sprint("queue ", n), pawl.EventDied, 1)
	}
	require.Len(t, tally.queues, maxMetered+2)
	m.Add(m.now, tally, false)
	require.EqualValues(t, 3*maxMetered, sumOf(m.read(1, ThroughputQuery{})).Died)
}

// Rule: a store is due in a later minute than the last try, also after the clock was set back, and only if something waits.
func TestMeterIsDueOncePerMinute(t *testing.T) {
	m := newMetering(t)
	require.False(t, m.Due(m.now))
	m.enqueued(1, "q")
	require.False(t, m.Due(m.now.Add(29*time.Second)))
	require.True(t, m.Due(m.now.Add(30*time.Second)))
	m.now = m.now.Add(time.Minute)
	m.store(1)
	require.False(t, m.Due(m.now.Add(time.Hour)), "nothing waits")
	m.enqueued(1, "q")
	require.False(t, m.Due(m.now))
	require.True(t, m.Due(m.now.AddDate(-1, 0, 0)))
}

// Rule: counts are in a report once: those that a transaction stores are in memory for readers of an earlier one, also after
// it ended, and wait again if it was not durable. A transaction that stored nothing changes nothing.
func TestMeterCountsOnce(t *testing.T) {
	m := newMetering(t)
	m.enqueued(5, "q")
	before := maps.Clone(m.counts)
	require.NoError(t, m.Store(m.counts, m.now, 7))
	m.enqueued(2, "q") // meanwhile
	earlier := func() int64 {
		got, err := m.Read(before, 6, m.now, ThroughputQuery{})
		require.NoError(t, err)
		return got.Total().Enqueued
	}
	require.EqualValues(t, 7, earlier())
	m.Stored(true)
	require.EqualValues(t, 7, earlier())
	require.EqualValues(t, 7, sumOf(m.read(7, ThroughputQuery{})).Enqueued)
	m.Stored(false) // of a transaction without a store
	m.has(7)

	before = maps.Clone(m.counts)
	require.NoError(t, m.Store(m.counts, m.now, 8))
	m.counts = before // it failed
	m.enqueued(1, "q")
	m.Stored(false)
	m.Stored(false)
	m.has(8)
	require.EqualValues(t, 8, sumOf(m.read(7, ThroughputQuery{})).Enqueued)
	require.EqualValues(t, 8, sumOf(m.read(8, ThroughputQuery{})).Enqueued)
	require.Zero(t, sumOf(m.read(8, ThroughputQuery{Queue: "other"})).Enqueued)
	m.store(9)
	m.has(8)
	require.EqualValues(t, 8, sumOf(m.read(9, ThroughputQuery{Queue: "q"})).Enqueued)
	require.Zero(t, sumOf(m.read(9, ThroughputQuery{Queue: "other"})).Enqueued)
}

// Rule: a build is noted at the time when it first leased jobs, once, and again if the transaction was not durable. A build
// that was noted later than now, as before the clock was set back, does not hide it.
func TestMeterNotesItsBuild(t *testing.T) {
	m := newMetering(t)
	m.Count(m.now, "q", Totals{}, true)
	first := m.now.Truncate(time.Second)
	builds := func(want ...Build) {
		t.Helper()
		require.Equal(t, want, m.read(1<<60, ThroughputQuery{}).Builds)
	}
	m.now = m.now.Add(time.Minute)
	m.Count(m.now, "q", Totals{}, true)
	one := Build{At: first, Version: "v1"}
	builds(one) // waits to be noted
	require.NoError(t, m.Store(make(counts), m.now, 1))
	m.Stored(false)
	require.True(t, m.Waits())
	m.store(2)
	require.False(t, m.Waits())
	builds(one)
	m.now = m.now.Add(time.Minute)
	m.Count(m.now, "q", Totals{}, true)
	require.False(t, m.Waits())

	m.now = noon.Add(-30 * time.Minute)
	m.Meter = Meter{Build: Build{Version: "v1"}}
	m.Count(m.now, "q", Totals{}, true)
	m.store(3)
	builds(Build{At: m.now, Version: "v1"})

	m.now = m.now.Add(-30 * time.Minute)
	m.Meter = Meter{Build: Build{Version: strings.Repeat("2", 500)}}
	m.Count(m.now, "q", Totals{}, true)
	m.store(4)
	got := m.read(4, ThroughputQuery{}).Builds
	require.Len(t, got, 1)
	require.Less(t, len(got[0].Version), 2*maxBuildText)
	require.Equal(t, m.now, got[0].At)
}

// Rule: a row that cannot be right is damaged: it is left out, and counted as such.
func TestMeterReadsNoDamagedRow(t *testing.T) {
	row := new(hourRow)
	row[3], row[7] = Totals{Enqueued: 300}, Totals{Died: 1}
	sound := row.append(nil)
	key := hourKey(minuteOf(noon)/60, "q")
	big := binary.AppendUvarint([]byte{9}, 1<<32)
	for name, content := range map[string][]byte{
		"cut":            sound[:len(sound)-1],
		"twice a minute": {3, 1, 1, 1, 1, 3, 1, 1, 1, 1},
		"minute 60":      {60, 1, 1, 1, 1},
		"too many":       append(big, 0, 0, 0),
	} {
		m := newMetering(t)
		m.counts[string(key)] = Seal(tableMeter, key, content)
		got := m.read(1, ThroughputQuery{})
		require.Equal(t, 1, got.Damaged, name)
		require.Equal(t, Totals{}, got.Total(), name)
	}
	m := newMetering(t)
	m.counts[string(key)] = Seal(tableMeter, key, sound)
	require.EqualValues(t, 300, sumOf(m.read(1, ThroughputQuery{})).Enqueued)
	m.enqueued(1<<40, "q")
	m.store(1)
	require.Zero(t, m.read(1, ThroughputQuery{}).Damaged, "more than a row can have")
}

// Rule: periods have a minute for up to an hour, ten for up to a day, and an hour for up to a week. They have no gap, the
// last contains now, and each minute is in one.
func TestThroughputPeriods(t *testing.T) {
	for _, want := range []struct {
		last, step time.Duration
		periods    int
		begin      string
	}{
		{0, time.Minute, 60, "11:31:00"},
		{time.Second, time.Minute, 1, "12:30:00"},
		{time.Hour, time.Minute, 60, "11:31:00"},
		{time.Hour + 1, 10 * time.Minute, 7, "11:30:00"},
		{24 * time.Hour, 10 * time.Minute, 144, "12:40:00"},
		{24*time.Hour + 1, time.Hour, 25, "12:00:00"},
		{ThroughputKept, time.Hour, 168, "13:00:00"},
	} {
		m := newMetering(t)
		got := m.read(1, ThroughputQuery{Last: want.last})
		require.Equal(t, want.step, got.Step, want.last)
		require.Len(t, got.Periods, want.periods, want.last)
		require.Equal(t, want.begin, got.Periods[0].At.Format(time.TimeOnly), want.last)
		begin := got.Periods[0].At
		for _, at := range []time.Time{begin.Add(-time.Minute), begin, begin.Add(want.step - time.Minute), noon, noon.Add(want.step)} {
			m.Count(at, "q", Totals{Enqueued: 1}, false)
		}
		got = m.read(1, ThroughputQuery{Last: want.last})
		if want.periods == 1 {
			require.EqualValues(t, 3, got.Periods[0].Enqueued)
			continue
		}
		require.EqualValues(t, 2, got.Periods[0].Enqueued, want.last)
		require.EqualValues(t, 1, got.Periods[want.periods-1].Enqueued, want.last)
		require.EqualValues(t, 3, got.Total().Enqueued, want.last)
		got.Builds = []Build{{At: begin.Add(-1)}, {At: begin, Version: "first"}, {At: begin.Add(want.step), Version: "second"}}
		require.Equal(t, got.Builds[1:2], got.BuildsIn(0))
		require.Equal(t, got.Builds[2:], got.BuildsIn(1))
	}
	for _, last := range []time.Duration{-1, ThroughputKept + 1} {
		_, err := new(Meter).Read(make(counts), 1, noon, ThroughputQuery{Last: last})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

// Rule: an answer that cannot be that of its query is refused.
func TestCheckThroughput(t *testing.T) {
	m := newMetering(t)
	q := ThroughputQuery{Last: time.Hour}
	for _, spoil := range []func(t *Throughput){
		func(t *Throughput) { t.Step *= 10 },
		func(t *Throughput) { t.Periods = t.Periods[1:] },
		func(t *Throughput) { t.Builds = make([]Build, maxBuilds+2) },
	} {
		got := m.read(1, q)
		spoil(&got)
		require.ErrorIs(t, CheckThroughput(&q, &got), pawl.ErrInvalid)
	}
}
