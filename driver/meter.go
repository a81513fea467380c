package driver

import (
	"encoding/binary"
	"runtime/debug"
	"sync"
	"time"
)

// Bounds of what a [Meter] keeps. With them, its rows have less than 26 MB; see docs/internals/format.md.
const (
	maxMetered   = 100             // queues with counts of their own in an hour; others share the counts of the queue ""
	maxPending   = 10 * maxMetered // minutes of queues that wait to be stored
	maxBuilds    = 100
	maxBuildText = 128 // bytes
	hoursKept    = int64(ThroughputKept / time.Hour)
)

// Meter counts the transitions of a queue by queue and minute. It keeps the counts in memory. In a later minute an
// engine stores them in a transaction that it makes anyway: if [Meter.Due], it calls [Meter.Store] in the transaction
// and [Meter.Stored] after it. The zero value is ready for use. Any goroutine may call the methods.
type Meter struct {
	// Build is stored when jobs are leased. Zero means the build of this program.
	Build Build

	mu      sync.Mutex
	pending map[metered]*Totals
	at      metered             // the key of the counts in pending that were changed last
	last    *Totals             // those counts; nil for none
	stored  map[metered]*Totals // what transaction id stores or has stored
	id      uint64
	storing bool      // that transaction has not ended
	tried   int64     // the minute of the last store
	ran     time.Time // when jobs were leased first
	marked  bool      // the build is noted, or about to be
	broken  bool      // a store failed because of damage
}

// metered names the counts of a queue in a minute since 1970.
type metered struct {
	minute int64
	queue  string
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// Add adds the counts of a durable transaction. Leased says that it leased jobs.
func (m *Meter) Add(now time.Time, c *Tally, leased bool) {
	for i := range c.queues {
		m.Count(now, c.queues[i].queue, c.queues[i].Totals, leased)
	}
	if leased && len(c.queues) == 0 {
		m.Count(now, "", Totals{}, leased)
	}
}

// Count adds the counts of one queue in a durable transaction.
func (m *Meter) Count(now time.Time, queue string, c Totals, leased bool) {
	if !leased && !c.Counted() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken || now.Unix() < 0 {
		return
	}
	if leased && m.ran.IsZero() {
		m.ran = now
	}
	if c.Counted() {
		m.add(metered{minuteOf(now), queue}, c)
	}
}

func (m *Meter) add(at metered, c Totals) {
	if m.last == nil || m.at != at {
		m.at, m.last = at, m.of(at)
	}
	m.last.Add(c)
}

// of returns counts that wait to be stored. Those beyond a limit share the counts of the queue "".
func (m *Meter) of(at metered) *Totals {
	if m.pending == nil {
		m.pending = make(map[metered]*Totals)
	}
	if m.pending[at] == nil && len(m.pending) >= maxPending {
		at.queue = ""
	}
	if m.pending[at] == nil {
		m.pending[at] = new(Totals)
	}
	return m.pending[at]
}

// Due reports whether there is something to store, and no store was tried in this minute. The first store is due in the
// minute after the first counts.
func (m *Meter) Due(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tried == 0 {
		m.tried = minuteOf(now)
	}
	return m.waits() && minuteOf(now) != m.tried
}

// Waits reports whether there is something to store.
func (m *Meter) Waits() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waits()
}

func (m *Meter) waits() bool {
	return !m.broken && (len(m.pending) > 0 || m.marks())
}

// marks reports whether the build must be noted.
func (m *Meter) marks() bool { return !m.ran.IsZero() && !m.marked }

// Store stores what was counted so far, and removes what is too old. ID is that of the transaction; a later transaction
// has a larger one. An error, or a panic of w, means that rows are damaged: the meter then stops counting, and the
// transaction must be rolled back.
func (m *Meter) Store(w Writer, now time.Time, id uint64) error {
	m.mu.Lock()
	m.tried, m.id, m.storing = minuteOf(now), id, true
	m.stored, m.pending, m.last = m.pending, nil, nil
	var build *Build
	if m.marks() {
		build = m.build()
	}
	stored, done := m.stored, false
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.broken, m.marked = !done, m.marked || build != nil
	}()
	err := storeCounts(w, now, stored)
	if err == nil && build != nil {
		err = noteBuild(w, now, *build)
	}
	done = err == nil
	return err
}

// build returns what to note.
func (m *Meter) build() *Build {
	b := m.Build
	if b == (Build{}) {
		b = thisBuild()
	}
	b.At, b.Version, b.Revision = m.ran.UTC(), cutText(b.Version), cutText(b.Revision)
	return &b
}

// thisBuild returns the build of this program.
var thisBuild = sync.OnceValue(func() Build {
	b := Build{Version: "(devel)"}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
})

// Stored ends a store, if there was one. Unless the transaction is durable, its counts wait for the next minute.
func (m *Meter) Stored(durable bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if storing := m.storing; durable || !storing {
		m.storing = false
		return // a reader of an earlier transaction may still need what was stored
	}
	counts := m.stored
	m.storing, m.stored, m.marked = false, nil, false
	if m.broken {
		m.pending, m.last = nil, nil
		return
	}
	for at, c := range counts {
		m.add(at, *c)
	}
}

// Read reports what is stored, as transaction id sees it, and what waits to be stored. It may be called on a nil meter,
// for which nothing waits.
func (m *Meter) Read(r Reader, id uint64, now time.Time, q ThroughputQuery) (Throughput, error) {
	t, err := q.empty(now)
	if err != nil {
		return t, err
	}
	// The counts in memory come last, so that a concurrent store, of transaction m.id, is seen.
	if err := readCounts(r, &t, q.Queue); err != nil {
		return t, err
	}
	if m == nil {
		return t, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t.addAll(m.pending, q.Queue)
	if m.id > id {
		t.addAll(m.stored, q.Queue)
	}
	if m.marks() {
		if b := m.build(); len(t.Builds) == 0 || !t.Builds[len(t.Builds)-1].same(b) {
			t.Builds = append(t.Builds, *b)
		}
	}
	return t, nil
}

func (t *Throughput) addAll(counts map[metered]*Totals, queue string) {
	for at, c := range counts {
		if queue == "" || queue == at.queue {
			t.add(at.minute, *c)
		}
	}
}

// hourKey returns the key of the counts of a queue in an hour since 1970.
func hourKey(hour int64, queue string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{'h'}, uint32(hour)), queue...)
}

// queueAt is where the name of the queue begins in such a key.
const queueAt = 1 + 4

// buildKey returns the key of a build that was noted at a time in seconds since 1970.
func buildKey(at int64) []byte { return binary.BigEndian.AppendUint64([]byte{'b'}, uint64(at)) }
