package patterns

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// asChild makes the test binary a program that runs all flows and prints their results. Its value
// is the number of the event at which the process kills itself, 0 for none. An event is the beginning
// or the end of a step.
const asChild = "PATTERNS_TEST_CHILD"

func TestMain(m *testing.M) {
	at, err := strconv.ParseInt(os.Getenv(asChild), 10, 64)
	if err != nil {
		os.Exit(m.Run())
	}
	if err := runAll(context.Background(), os.Args[1], at); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killedAt kills the process at an event, as kill -9 does.
func killedAt(at int64, events *atomic.Int64) workflow.Middleware {
	count := func() {
		if events.Add(1) != at {
			return
		}
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Kill() != nil {
			panic("cannot be killed")
		}
		select {}
	}
	return func(next workflow.StepFunc) workflow.StepFunc {
		return func(ctx context.Context, s workflow.StepInfo) (any, error) {
			count()
			v, err := next(ctx, s)
			count()
			return v, err
		}
	}
}

// diary is a World in a file, which has the key of each call.
type diary struct {
	*os.File
	broken string
}

func (d diary) Do(_ context.Context, key, what string) error {
	if what == d.broken {
		return pawl.Permanent(errors.New("out of order"))
	}
	_, err := fmt.Fprintf(d, "%s\t%s\n", key, what)
	return err
}

// report is what the program prints.
type report struct {
	Events  int64
	Results map[string]string // by flow and run
}

// runAll starts or continues one or more runs of each flow in a folder, until all have ended.
func runAll(ctx context.Context, folder string, at int64) (err error) {
	f, err := os.OpenFile(filepath.Join(folder, "diary"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	q, err := bolt.Open(filepath.Join(folder, "jobs.db"), &bolt.Options{MaxCrashes: bolt.NoMaxCrashes, Logger: hclog.NewNullLogger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close(), f.Close()) }()
	r := report{Results: make(map[string]string)}
	var events atomic.Int64
	s := &stage{ctx: ctx, results: r.Results}
	s.e = workflow.Open(q, &workflow.Options{Middleware: []workflow.Middleware{killedAt(at, &events)}, Logger: hclog.NewNullLogger()})
	flows, play := s.all(diary{f, "book car"})
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	if err := s.e.Handle(ctx, w, flows...); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() { gone <- w.Run(ctx) }()
	play()
	stop()
	if err := errors.Join(s.err, <-gone); err != nil {
		return err
	}
	r.Events = events.Load()
	return json.NewEncoder(os.Stdout).Encode(r)
}

// stage starts runs, sends them signals, and collects their results.
type stage struct {
	ctx     context.Context
	e       *workflow.Engine
	results map[string]string
	err     error
	ends    []func()
}

func (s *stage) fail(err error) {
	if err != nil && !errors.Is(err, pawl.ErrConflict) { // the run has ended in a life before
		s.err = errors.Join(s.err, err)
	}
}

// begin starts a run, and leaves the wait for its result to the end.
func begin[In, Out any](s *stage, f *workflow.Flow[In, Out], id string, in In) pawl.ID {
	h, err := f.Start(s.ctx, s.e, id, in)
	if err != nil {
		s.fail(err)
		return pawl.ID{}
	}
	s.ends = append(s.ends, func() {
		out, err := h.Result(s.ctx)
		text := fmt.Sprint(out)
		if err != nil {
			text = "failed"
		}
		s.results[f.Name()+" "+id] = text
	})
	return h.Run()
}

// say sends a signal once, in whatever life.
func say[T any](s *stage, run pawl.ID, signal *workflow.Signal[T], value T, key string) {
	s.fail(signal.Send(s.ctx, s.e, run, value, key))
}

// all returns all flows, and what happens with them.
func (s *stage) all(w World) (flows []workflow.Definition, play func()) {
	engine := func() *workflow.Engine { return s.e }
	const short, long = 10 * time.Millisecond, time.Hour
	var (
		trip, pay, remind, save = Trip(w), Pay(w), Remind(w), Save(w)
		lock                    = Lock(engine)
		hold                    = Hold(w, engine, lock)
		convert, account, order = Convert(w), Account(), Order(w)
		turns, imports          = Turns(w), Import(numbers)
		check, inOrder, ride    = CheckAll(w), InOrder(w), Ride(w)
	)
	flows = []workflow.Definition{trip, pay, remind, save, lock, hold, convert, account, order, turns, imports, check, inOrder, ride}
	return flows, func() {
		begin(s, trip, "without car", []string{"flight", "hotel", "car"})
		begin(s, trip, "short", []string{"train", "room"})
		say(s, begin(s, pay, "1", Expense{[]string{"Ada"}, long}), Approved, true, "1")
		say(s, begin(s, remind, "1", long), Moved, short, "1")
		say(s, begin(s, save, "1", short), Typed, "abc", "1")
		for i := range 3 {
			begin(s, hold, fmt.Sprint(i), "printer")
		}
		begin(s, convert, "1", []string{"a", "b", "c", "d", "e"})
		ada := begin(s, account, "ada", 0)
		for i := range 5 {
			say(s, ada, Deposit, 100+i, fmt.Sprint(i))
		}
		say(s, ada, Close, "", "close")
		begin(s, order, "1", "lamp")
		tasks := begin(s, turns, "1", 0)
		for _, what := range []string{"x1", "x2", "y1"} {
			say(s, tasks, NewTask, Task{what[:1], what}, what)
		}
		say(s, tasks, NoMore, "", "no more")
		begin(s, imports, "1", Position{})
		begin(s, check, "1", []Check{{"style", 0}, {"tests", short}})
		events := begin(s, inOrder, "1", 3)
		for _, n := range []int{2, 1, 0} {
			say(s, events, Happened, Event{n, fmt.Sprint("event ", n)}, fmt.Sprint(n))
		}
		begin(s, ride, "1", Request{short, long})
		for _, end := range s.ends {
			end()
		}
	}
}

// Rule: a process that runs all flows is killed at an event, and started again. Each flow then comes to
// the result that it has without a kill, with the same effects. With PAWL_SLOW_TESTS=1, each event has its kill.
func TestKilled(t *testing.T) {
	run := func(folder string, at int64) (report, error) {
		cmd := exec.Command(os.Args[0], folder)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asChild, at))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		var r report
		if err == nil {
			err = json.Unmarshal(out, &r)
		}
		require.Empty(t, errs.String())
		return r, err
	}
	whole := memdir.New(t)
	want, err := run(whole, 0)
	require.NoError(t, err)
	require.Len(t, want.Results, 16)
	require.Equal(t, "failed", want.Results["trip without car"])
	require.Equal(t, "510", want.Results["account ada"])
	require.Equal(t, "45", want.Results["import 1"])
	effects := effectsIn(t, whole)
	require.Greater(t, want.Events, int64(60))
	apart := want.Events / int64(race.Fewer(24))
	if os.Getenv("PAWL_SLOW_TESTS") != "" {
		apart = 1
	}
	kills := 0
	for at := int64(1); at <= want.Events; at += apart {
		folder := memdir.New(t)
		if r, err := run(folder, at); err == nil {
			require.Less(t, r.Events, at, "it should have been killed")
		} else {
			require.ErrorContains(t, err, "killed")
			kills++
		}
		got, err := run(folder, 0)
		require.NoError(t, err)
		for name, result := range want.Results {
			if name != "turns 1" { // whose order depends on when its tasks came
				require.Equal(t, result, got.Results[name], "%s, after a kill at event %d", name, at)
			}
		}
		require.Equal(t, effects, effectsIn(t, folder), "after a kill at event %d", at)
	}
	t.Logf("%d kills in %d events", kills, want.Events)
}

// effectsIn returns how often each effect took place. Calls with one key are one effect.
func effectsIn(t *testing.T, folder string) map[string]int {
	f, err := os.Open(filepath.Join(folder, "diary"))
	require.NoError(t, err)
	defer f.Close()
	effects, keys := make(map[string]int), make(map[string]bool)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, what, ok := strings.Cut(lines.Text(), "\t")
		require.True(t, ok)
		if !keys[key] {
			keys[key] = true
			effects[what]++
		}
	}
	return effects
}
