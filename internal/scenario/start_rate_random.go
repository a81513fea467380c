package scenario

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// starts are the times at which runs have started in this life, in order.
type starts struct {
	mu  sync.Mutex
	ids []string
	at  map[string]time.Time
}

// add remembers the first attempt of a run.
func (s *starts) add(id string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.at[id]; known {
		return
	}
	if s.at == nil {
		s.at = make(map[string]time.Time)
	}
	s.ids, s.at[id] = append(s.ids, id), at
}

// has reports whether a run has started.
func (s *starts) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.at[id]
	return known
}

// order returns the runs that have started, in order.
func (s *starts) order() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ids)
}

// of returns the times of the runs that some choose.
func (s *starts) of(chosen func(id string) bool) (times []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.ids {
		if chosen(id) {
			times = append(times, s.at[id])
		}
	}
	return times
}

// clerk is a flow that remembers its starts, and then waits until a word comes.
func clerk(k *kit, s *starts, opts ...workflow.Option) *workflow.Flow[int, string] {
	return workflow.Define("clerk", func(r *workflow.Run, n int) (string, error) {
		if _, err := workflow.Step(r, "serve", func(context.Context) (int, error) {
			s.add(fmt.Sprint(n), k.now())
			return n, nil
		}); err != nil {
			return "", err
		}
		return word.Wait(r, workflow.Forever)
	}, opts...)
}

// Rule: whatever happens to the runs, no period has more starts than a rate permits, no run waits that may start, no limit of
// open runs is exceeded, and the runs of a line start in order.
func (suite) StartRatesAtRandom(t *testing.T) {
	for seed := range uint64(*placesSeeds) {
		sub(t, fmt.Sprint(seed), func(t *testing.T, k *kit) {
			w := &startsWalk{k: k, rand: rand.New(rand.NewPCG(seed, 2)), keys: make(map[string]string), stood: make(map[string]bool)}
			w.walk()
		})
	}
}

// startsWalk is a random history of runs with rates.
type startsWalk struct {
	k             *kit
	rand          *rand.Rand
	rate, keyRate pawl.Rate
	open          int
	f             *workflow.Flow[int, string]
	starts        starts
	ids           []string
	runs          map[string]pawl.ID
	keys          map[string]string
	stood         map[string]bool // was paused, so it may have lost its turn
}

func (w *startsWalk) draw() pawl.Rate {
	n := 1 + w.rand.IntN(4)
	return pawl.Rate{Starts: n, Per: time.Duration(1+w.rand.IntN(4)) * time.Minute, Burst: 1 + w.rand.IntN(n)}
}

func (w *startsWalk) walk() {
	k, t := w.k, w.k.t
	var opts []workflow.Option
	if w.rand.IntN(3) > 0 {
		w.rate = w.draw()
		opts = append(opts, workflow.StartRate(w.rate))
	}
	if w.rate.Starts == 0 || w.rand.IntN(2) == 0 {
		w.keyRate = w.draw()
		opts = append(opts, workflow.StartRatePerKey(w.keyRate))
	}
	if w.rand.IntN(2) == 0 {
		w.open = 1 + w.rand.IntN(4)
		opts = append(opts, workflow.MaxOpen(w.open))
	}
	w.f, w.runs = clerk(k, &w.starts, opts...), make(map[string]pawl.ID)
	k.open(w.f)
	for n := range 80 {
		switch w.rand.IntN(12) {
		case 0:
			k.crash()
		case 1, 2, 3:
			k.pass(time.Duration(w.rand.IntN(90)) * time.Second)
		default:
			w.act(n)
		}
		k.settle()
		w.judge()
	}
	for _, id := range w.ids {
		_ = k.e.Resume(t.Context(), w.runs[id])
		_ = word.Send(t.Context(), k.e, w.runs[id], "bye", "")
	}
	k.pass(24 * time.Hour)
	for _, id := range w.ids {
		info := k.info(w.runs[id])
		require.True(t, info.Status.Ended(), "run %s is %s, and waits for %s%s until %v", id, info.Status, info.Place, info.Rate, info.Due)
	}
	w.judgeWindows()
	require.Zero(t, k.rowsIn("places"))
}

// act starts the nth run, or asks something of a run.
func (w *startsWalk) act(n int) {
	k, ctx := w.k, w.k.t.Context()
	if len(w.ids) == 0 || w.rand.IntN(10) < 5 {
		id, key := fmt.Sprint(n), []string{"", "a", "b"}[w.rand.IntN(3)]
		opts := []workflow.StartOption{workflow.Key(cmp.Or(key, "x"))}
		if key == "" {
			opts = nil
		}
		h, err := w.f.Start(ctx, k.e, id, n, opts...)
		require.NoError(k.t, err)
		w.ids, w.runs[id], w.keys[id] = append(w.ids, id), h.Run(), key
		return
	}
	id := w.ids[w.rand.IntN(len(w.ids))]
	run := w.runs[id]
	switch w.rand.IntN(8) {
	case 0:
		_ = k.e.Cancel(ctx, run, "")
	case 1:
		_ = k.e.Terminate(ctx, run, "")
	case 2:
		w.stood[id] = true
		_ = k.e.Pause(ctx, run)
	case 3, 4:
		_ = k.e.Resume(ctx, run)
	default:
		_ = word.Send(ctx, k.e, run, "bye", "")
	}
}

// judgeWindows looks for a period with too many starts.
func (w *startsWalk) judgeWindows() {
	for of, r := range map[string]pawl.Rate{"": w.rate, "a": w.keyRate, "b": w.keyRate} {
		times := w.starts.of(func(id string) bool { return of == "" || w.keys[id] == of })
		for i := r.Starts; r.Starts > 0 && i < len(times); i++ {
			require.GreaterOrEqual(w.k.t, times[i].Sub(times[i-r.Starts]), r.Per, "starts of %q: %v", of, times)
		}
	}
}

// left returns how many runs of a key, or of the flow, may start now, by the starts so far.
func (w *startsWalk) left(r pawl.Rate, key string) int {
	if r.Starts == 0 {
		return 1
	}
	p, now, tat := driver.PaceOf(r), w.k.now(), time.Time{}
	for _, at := range w.starts.of(func(id string) bool { return key == "" || w.keys[id] == key }) {
		tat = p.Start(tat, at, 1)
	}
	return p.Left(tat, now)
}

// list describes the runs that have not ended.
func (w *startsWalk) list() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %+v %+v %d\n", w.k.now(), w.rate, w.keyRate, w.open)
	for _, id := range w.ids {
		if info := w.k.info(w.runs[id]); !info.Status.Ended() {
			fmt.Fprintf(&b, "%s %q %s place %q rate %q due %v started %v\n", id, w.keys[id], info.Status, info.Place, info.Rate, info.Due, w.starts.has(id))
		}
	}
	return b.String()
}

// judge compares the runs with the limits.
func (w *startsWalk) judge() {
	t, k := w.k.t, w.k
	t.Helper()
	require.NoError(t, k.e.Check(t.Context()))
	w.judgeWindows()
	open := 0
	var waiting []string
	last := map[string]string{} // the last run that has started, by key
	for _, id := range w.ids {
		info := k.info(w.runs[id])
		began := w.starts.has(id)
		switch {
		case began && !info.Status.Ended():
			open++
		case !began && info.Status == workflow.Waiting && !info.Status.Ended():
			waiting = append(waiting, id)
		}
	}
	if w.open > 0 {
		require.LessOrEqual(t, open, w.open)
	}
	for _, id := range waiting {
		key := w.keys[id]
		may := w.left(w.rate, "") > 0 && (w.open == 0 || open < w.open) && (key == "" || w.left(w.keyRate, key) > 0)
		if may { // the list reads all runs
			require.Fail(t, "a run waits, and may start", "run %s with key %q:\n%s", id, key, w.list())
		}
	}
	for _, id := range w.starts.order() {
		last[w.keys[id]] = id
	}
	for _, id := range waiting {
		if key := w.keys[id]; last[key] != "" && !w.stood[id] && !w.stood[last[key]] {
			require.Greater(t, slices.Index(w.ids, id), slices.Index(w.ids, last[key]), "run %s waits, and %s of the key %q has started", id, last[key], key)
		}
	}
}

// Rule: wherever a process is killed while runs wait for a rate, all of them start in the next life, one in each period.
func (suite) KilledWhileStartsWait(t *testing.T) {
	const most, stride, runs = 500, 29, 4 // reads of the clock; those after the most are like those before
	path := os.Getenv(lifeVariable)
	rated := func(k *kit, s *starts) *workflow.Flow[int, string] {
		return clerk(k, s, workflow.StartRate(every(time.Hour)), workflow.StartRatePerKey(every(90*time.Minute)))
	}
	begin := func(k *kit, s *starts) {
		f := rated(k, s)
		k.open(f)
		for n := range runs {
			_, err := f.Start(k.t.Context(), k.e, fmt.Sprint(n), n, workflow.Key([]string{"a", "b"}[n%2]))
			require.NoError(k.t, err)
		}
	}
	over := false
	for look := 5; look < most && !over; look += stride {
		t.Run(fmt.Sprintf("look %d", look), func(t *testing.T) {
			if path != "" {
				synctest.Test(t, func(t *testing.T) {
					k := newKit(t, path)
					k.mortal = true
					k.looks.Store(int64(look))
					begin(k, new(starts))
					k.pass(4 * time.Hour)
					k.looks.Store(-1)
				})
				return
			}
			path := filepath.Join(memdir.New(t), "jobs.db")
			over = life(t, path) == "PASS"
			synctest.Test(t, func(t *testing.T) {
				k, s := newKit(t, path), new(starts)
				if !over {
					k = k.reborn()
				}
				begin(k, s)
				k.pass(4 * time.Hour)
				require.NoError(t, k.e.Check(t.Context()))
				for n := range runs {
					require.Len(t, k.journal(find(k, rated(k, s), fmt.Sprint(n)).Run()), 2, "it has started")
				}
				times := s.of(func(string) bool { return true })
				for i := 1; i < len(times); i++ { // the first may be one whose start was counted in the life before
					least := time.Hour
					if i == 1 {
						least -= downtime
					}
					require.GreaterOrEqual(t, times[i].Sub(times[i-1]), least, strings.Join(s.ids, " "))
				}
			})
		})
	}
}
