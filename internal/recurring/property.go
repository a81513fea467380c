package recurring

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/schedule"
)

// Rule: whatever happens to the clock, the process, and the definitions, each tick of each schedule
// gets exactly one decision, in order, and the one that its terms demand.
func (s Store) decidesOnce(t *testing.T) {
	seeds := race.Fewer(s.Seeds)
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		seeds = 100 * s.Seeds
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s.bubble(t, func(k *kit) {
				w := &world{kit: k, r: rand.New(rand.NewPCG(seed, 19)), all: make(map[string]*modelled), jobs: make(map[pawl.ID]*modelled)}
				k.report = func(name string, e schedule.Entry) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.events = append(w.events, event{name, e})
				}
				w.redefine()
				for range s.Steps {
					w.step()
				}
			})
		})
	}
}

// world is a model of all schedules.
type world struct {
	*kit
	r     *rand.Rand
	all   map[string]*modelled
	jobs  map[pawl.ID]*modelled
	defs  []schedule.Definition
	fired int

	mu     sync.Mutex
	events []event
}

type event struct {
	name string
	schedule.Entry
}

// modelled is what the model knows of one schedule.
type modelled struct {
	name     string
	terms    schedule.Terms
	last     time.Time // every tick up to here is decided
	paused   bool
	retired  bool
	alive    map[pawl.ID]bool
	buffered []time.Time
	counts   schedule.Counts
	known    map[string]func(time.Time) time.Time
}

var (
	propertySpecs = []string{"@every 4m", "@every 7m/90s", "*/10 * * * *", "30 2 * * *", "15 1-4 * * *", "0 * * * *", "*/30 0 * * * *", "0 */5 * * *"}
	propertyZones = []string{"", "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"}
	propertyNames = []string{"a", "ab", "b", "c", "d"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// anyTerms returns terms and the options that define them.
func (w *world) anyTerms() schedule.Terms {
	t := schedule.Terms{Spec: pick(w.r, propertySpecs), Zone: pick(w.r, propertyZones), CatchUp: w.r.IntN(2), Overlap: schedule.Skip}
	if w.r.IntN(2) == 0 {
		t.Overlap, t.CatchUp = schedule.Allow, w.r.IntN(5)
	} else if w.r.IntN(2) == 0 {
		t.Overlap, t.Buffer = schedule.Buffer, 1+w.r.IntN(3)
		t.CatchUp = w.r.IntN(t.Buffer + 2)
	}
	if w.r.IntN(4) == 0 {
		t.Window = time.Duration(1+w.r.IntN(90)) * time.Minute
	}
	if w.r.IntN(4) == 0 {
		t.Spread = 8 * time.Second
	}
	return t
}

// redefine syncs with other schedules.
func (w *world) redefine() {
	w.defs = nil
	now := w.now()
	chosen := make(map[string]schedule.Terms)
	for _, name := range propertyNames {
		if w.r.IntN(4) > 0 {
			t := w.anyTerms()
			if m := w.all[name]; m != nil && w.r.IntN(3) > 0 {
				if t = m.terms; w.r.IntN(2) == 0 {
					t.Window = time.Duration(w.r.IntN(3)) * time.Hour
				}
			}
			chosen[name] = t
			w.defs = append(w.defs, schedule.Job(name, t.Spec, report, "x", schedule.In(t.Zone), schedule.CatchUp(t.CatchUp),
				schedule.Window(t.Window), schedule.Overlap(t.Overlap), schedule.BufferLimit(t.Buffer), schedule.Spread(t.Spread)))
		}
	}
	before := make(map[string]schedule.Terms)
	for name, m := range w.all {
		before[name] = m.terms
	}
	w.sync(w.defs...)
	for _, name := range propertyNames {
		m, t := w.all[name], chosen[name]
		switch defined := t.Spec != ""; {
		case !defined && m != nil:
			m.retired = true
		case defined && m == nil:
			w.all[name] = &modelled{name: name, terms: t, last: now, alive: make(map[pawl.ID]bool),
				known: make(map[string]func(time.Time) time.Time)}
		case defined:
			changed := m.terms.Spec != t.Spec || m.terms.Zone != t.Zone || m.terms.Spread != t.Spread
			old := m.terms
			if !changed {
				m.terms = t
			}
			w.judge(name, now)
			if changed {
				next := m.next(old, m.last)
				require.True(w, next.After(now), "%s: the tick %v of the old terms is not decided at %v", name, next, now)
				m.terms = t
				if now.After(m.last) {
					m.last = now
				}
			}
			m.retired = false
		}
	}
}

func (w *world) step() {
	now := w.now()
	switch w.r.IntN(8) {
	case 0:
		w.redefine()
	case 1:
		w.offset.Add(int64(time.Duration(w.r.IntN(10*3600)-5*3600) * time.Second))
	case 2: // the process ends, in order or not
		if w.r.IntN(2) == 0 {
			require.NoError(w, w.q.Close())
			w.s.Close()
		} else {
			w.close()
		}
		w.pass(time.Duration(w.r.IntN(6*3600)) * time.Second)
		w.open()
		if w.r.IntN(2) == 0 {
			w.sync(w.defs...)
		} else {
			w.redefine()
		}
	case 3:
		if m := w.all[pick(w.r, propertyNames)]; m != nil && !m.paused {
			require.NoError(w, w.s.Pause(w.Context(), m.name, "for a test"))
			m.paused = true
		}
	case 4:
		if m := w.all[pick(w.r, propertyNames)]; m != nil && m.paused {
			require.NoError(w, w.s.Resume(w.Context(), m.name, pick(w.r, []schedule.AfterPause{schedule.SkipPaused, schedule.CatchUpPaused})))
			w.judge(m.name, now)
			m.paused = false
		}
	case 5:
		w.work()
	}
	w.pass(time.Minute + time.Duration(w.r.IntN(2*3600))*time.Second)
	for _, name := range propertyNames {
		w.judge(name, now)
		w.compare(name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(w, w.events)
}

// work ends some jobs.
func (w *world) work() {
	leases, err := w.q.Fetch(w.Context(), pawl.Request{Max: 1 + w.r.IntN(20), Wait: pawl.WaitNot})
	if err != nil {
		require.ErrorIs(w, err, pawl.ErrEmpty)
		return
	}
	for _, l := range leases {
		require.NoError(w, w.q.Settle(w.Context(), l.Ack()))
		require.NotNil(w, w.jobs[l.ID])
		delete(w.jobs[l.ID].alive, l.ID)
	}
}

// next is the first tick after a time.
func (m *modelled) next(t schedule.Terms, after time.Time) time.Time {
	key := t.Spec + "\x00" + t.Zone
	next := m.known[key]
	if next == nil {
		spec, err := schedule.ParseNamed(m.name, t.Spec)
		if err != nil {
			panic(err)
		}
		zone, err := time.LoadLocation(t.Zone)
		if err != nil {
			panic(err)
		}
		next = func(after time.Time) time.Time { return spec.Next(after, zone) }
		m.known[key] = next
	}
	return next(after)
}

// judge checks the decisions about a schedule.
func (w *world) judge(name string, _ time.Time) {
	w.Helper()
	m := w.all[name]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = slices.DeleteFunc(w.events, func(e event) bool {
		if e.name != name {
			return false
		}
		if e.Decision == schedule.Buffered && !e.Job.IsZero() {
			require.NotEmpty(w, m.buffered, "%s: a tick left an empty buffer", name)
			require.True(w, e.First.Equal(m.buffered[0]))
			require.Empty(w, m.alive)
			m.buffered = m.buffered[1:]
			w.starts(m, e.Job)
			return true
		}
		first := m.last
		for i := range e.Ticks {
			tick := m.next(m.terms, m.last)
			if i == 0 {
				require.True(w, tick.Equal(e.First), "%s: the tick %v is decided, and %v is next", name, e.First, tick)
			}
			m.last = tick
			w.policy(m, tick, &e.Entry)
		}
		require.True(w, m.last.Equal(e.Last), "%s: %d ticks from %v to %v", name, e.Ticks, first, e.Last)
		return true
	})
}

// policy checks the decision about one tick.
func (w *world) policy(m *modelled, tick time.Time, e *schedule.Entry) {
	w.Helper()
	w.count(m, e)
	if e.Decision == schedule.Paused || e.Why == "no program defined the schedule" {
		require.True(w, m.paused || m.retired)
		return
	}
	w.late(m, tick, e)
	busy := len(m.alive) > 0 || len(m.buffered) > 0
	full := m.terms.Overlap != schedule.Buffer || len(m.buffered) >= m.terms.Buffer
	switch e.Decision {
	case schedule.Fired:
		require.True(w, m.terms.Overlap == schedule.Allow || !busy, "%s: fired beside another job", m.name)
		w.starts(m, e.Job)
	case schedule.Skipped:
		require.True(w, busy && full && m.terms.Overlap != schedule.Allow, "%s: skipped without a reason", m.name)
	case schedule.Buffered:
		require.True(w, busy && !full, "%s: buffered without a reason", m.name)
		m.buffered = append(m.buffered, tick)
	}
}

// late checks whether a tick is missed exactly if it has to be.
func (w *world) late(m *modelled, tick time.Time, e *schedule.Entry) {
	if m.terms.Spread != 0 {
		return // the model does not know when its ticks are due
	}
	limit := m.terms.Window
	if m.terms.CatchUp == schedule.None && (limit == 0 || limit > time.Minute) {
		limit = time.Minute
	}
	missed := limit > 0 && e.At.Sub(tick) > limit
	if m.terms.CatchUp > 0 {
		behind := tick
		for range m.terms.CatchUp {
			behind = m.next(m.terms, behind)
		}
		missed = missed || !behind.After(e.At)
	}
	require.Equal(w, missed, e.Decision == schedule.Missed, "%s: tick %v at %v is %s with %+v", m.name, tick, e.At, e.Decision, m.terms)
}

func (w *world) starts(m *modelled, job pawl.ID) {
	e, err := w.q.Job(w.Context(), job)
	require.NoError(w, err)
	tick, ok := schedule.TickOf(e)
	require.True(w, ok)
	require.Equal(w, m.name, tick.Schedule)
	require.Nil(w, w.jobs[job])
	w.jobs[job] = m
	m.alive[job] = true
	w.fired++
}

func (w *world) count(m *modelled, e *schedule.Entry) {
	for decision, n := range map[schedule.Decision]*uint64{
		schedule.Fired: &m.counts.Fired, schedule.Buffered: &m.counts.Buffered, schedule.Skipped: &m.counts.Skipped,
		schedule.Missed: &m.counts.Missed, schedule.Paused: &m.counts.Paused, schedule.Failed: &m.counts.Failed,
	} {
		if e.Decision == decision {
			*n++
		}
	}
}

// compare compares a stored schedule with the model.
func (w *world) compare(name string) {
	w.Helper()
	m := w.all[name]
	if m == nil {
		return
	}
	info := w.info(name)
	require.Equal(w, m.counts, info.Counts, name)
	require.Len(w, info.Buffered, len(m.buffered), name)
	require.Equal(w, m.retired, !info.Retired.IsZero(), name)
	require.Equal(w, m.paused, !info.Paused.IsZero(), name)
	require.True(w, m.last.Equal(info.Last), "%s: decided up to %v, and not %v", name, info.Last, m.last)
	if m.paused || m.retired {
		require.Zero(w, info.Due)
	} else {
		require.True(w, info.Due.After(w.now()), "%s: a tick is due since %v", name, info.Due)
	}
	list, err := w.s.History(w.Context(), name, 0)
	require.NoError(w, err)
	require.LessOrEqual(w, len(list), schedule.MaxHistory)
	for i, e := range list {
		require.Equal(w, info.Entries, e.N+uint64(len(list)-1-i), "%s: the history has a gap", name)
	}
}
