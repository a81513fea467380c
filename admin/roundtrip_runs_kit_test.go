package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// runsApp is an app with flows that leave runs in every state, in a bubble of testing/synctest:
// it is settled when all its goroutines wait.
type runsApp struct {
	t     *testing.T
	path  string
	q     *bolt.Queue
	e     *workflow.Engine
	stop  context.CancelFunc
	gone  chan struct{}
	hold  chan struct{} // the step of the flow "long" waits for it
	other bool          // the code of "shift" differs
	fails bool          // the step of "retry" fails

	mu    sync.Mutex
	steps map[string]int // how often each step ran
}

func newRunsApp(t *testing.T, path string) *runsApp {
	return &runsApp{t: t, path: path, hold: make(chan struct{}), steps: make(map[string]int)}
}

// open opens the file; with a build, a worker runs the flows.
func (a *runsApp) open(build string) {
	a.t.Helper()
	q, err := bolt.Open(a.path, &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease()})
	require.NoError(a.t, err)
	a.q, a.gone = q, make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.t.Cleanup(func() {
		a.release()
		stop()
		<-a.gone
		require.NoError(a.t, q.Close())
	})
	if build == "" {
		close(a.gone)
		return
	}
	a.e = workflow.Open(q, &workflow.Options{Build: build, Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Concurrency: 20, Drain: 1, Logger: hclog.NewNullLogger()})
	require.NoError(a.t, a.e.Handle(ctx, w, a.flows()...))
	go func() {
		defer close(a.gone)
		_ = w.Run(ctx)
	}()
}

// release lets the step of "long" continue.
func (a *runsApp) release() {
	select {
	case <-a.hold:
	default:
		close(a.hold)
	}
}

// close ends the app, and requires that its file is sound.
func (a *runsApp) close() {
	a.t.Helper()
	a.stop()
	<-a.gone
	require.NoError(a.t, a.q.Check(context.Background()))
	require.NoError(a.t, workflow.Read(a.q).Check(context.Background()))
	require.NoError(a.t, a.q.Close())
}

// step is a step that counts its calls, with a result of the given size.
func (a *runsApp) step(r *workflow.Run, name string, size int) (string, error) {
	return workflow.Step(r, name, func(context.Context) (string, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.steps[r.Run().String()+" "+name]++
		return strings.Repeat(name[:1], size), nil
	})
}

var runsGo = workflow.DefineSignal[string]("go")

func (a *runsApp) flows() []workflow.Definition {
	type flow = func(r *workflow.Run, in string) (string, error)
	around := func(middle flow) flow {
		return func(r *workflow.Run, in string) (string, error) {
			if _, err := a.step(r, "before", 5000); err != nil { // stored in its own row
				return "", err
			}
			out, err := middle(r, in)
			if err != nil {
				return "", err
			}
			_, err = a.step(r, "after", 3)
			return in + " " + out, err
		}
	}
	wait := func(r *workflow.Run, _ string) (string, error) { return runsGo.Wait(r, workflow.Forever) }
	child := workflow.Define("child", around(wait))
	quick := workflow.Define("quick", around(func(*workflow.Run, string) (string, error) { return "quick", nil }))
	define := func(name string, middle flow) workflow.Definition { return workflow.Define(name, around(middle)) }
	return []workflow.Definition{
		child, quick,
		define("wait", func(r *workflow.Run, in string) (string, error) {
			if err := workflow.Publish(r, "price", []int{1, 2}); err != nil {
				return "", err
			}
			return wait(r, in)
		}),
		define("large", func(r *workflow.Run, in string) (string, error) { // spans several lines
			for i := range 5 { // each result fills more than half of a part
				if _, err := a.step(r, fmt.Sprint("before ", i), 270_000); err != nil {
					return "", err
				}
			}
			return wait(r, in)
		}),
		define("sleep", func(r *workflow.Run, _ string) (string, error) { return "slept", workflow.Sleep(r, "bed", 5*time.Hour) }),
		define("long", func(r *workflow.Run, _ string) (string, error) {
			return workflow.Step(r, "long", func(context.Context) (string, error) {
				a.mu.Lock()
				a.steps["long"]++
				a.mu.Unlock()
				<-a.hold
				return "long", nil
			})
		}),
		define("retry", func(r *workflow.Run, _ string) (string, error) {
			return workflow.Step(r, "tries", func(context.Context) (string, error) {
				if a.fails {
					return "", errors.New("not yet")
				}
				return "tried", nil
			}, workflow.Backoff(pawl.Fixed(time.Hour)))
		}),
		define("fail", func(*workflow.Run, string) (string, error) { return "", errors.New("no such card") }),
		define("shift", func(r *workflow.Run, in string) (string, error) {
			name := "first"
			if a.other {
				name = "second"
			}
			if _, err := a.step(r, name, 1); err != nil {
				return "", err
			}
			return wait(r, in)
		}),
		define("race", func(r *workflow.Run, in string) (string, error) {
			slow := workflow.Go(r, "slow", func(r *workflow.Run) (string, error) {
				return "slow", workflow.Sleep(r, "long", 50*time.Hour)
			})
			_, out, err := workflow.Race(r, "first", workflow.Go(r, "told", func(r *workflow.Run) (string, error) { return wait(r, in) }), slow)
			return out, err
		}),
		define("parent", func(r *workflow.Run, in string) (string, error) {
			first, err := workflow.Call(r, "quick", quick, "q")
			if err != nil {
				return "", err
			}
			second, err := workflow.Call(r, "slow", child, "c")
			return first + ", " + second, err
		}),
	}
}

// begin starts a run of each flow, and leaves one in each state.
func (a *runsApp) begin() {
	a.t.Helper()
	ctx := context.Background()
	must := func(err error) { require.NoError(a.t, err) }
	for _, id := range []string{
		"wait:1", "wait:paused", "wait:dead", "wait:told", "sleep:1", "long:1", "retry:1", "fail:1", "shift:1",
		"race:1", "race:won", "parent:1", "quick:1", "wait:off", "large:1",
	} {
		flow, name, _ := strings.Cut(id, ":")
		for _, f := range a.flows() {
			if f.Name() == flow {
				_, err := f.(*workflow.Flow[string, string]).Start(ctx, a.e, name, id)
				must(err)
			}
		}
	}
	synctest.Wait()
	must(a.e.Pause(ctx, a.run("wait:paused")))
	must(runsGo.Send(ctx, a.e, a.run("wait:paused"), "kept", "once"))
	must(a.e.Send(ctx, a.run("wait:told"), "another", []byte("\xa1x"), "key"))
	must(runsGo.Send(ctx, a.e, a.run("race:won"), "now", ""))
	must(a.e.Terminate(ctx, a.run("wait:off"), "no stock"))
	must(a.q.Cancel(ctx, a.run("wait:dead")))
	synctest.Wait()
}

func (a *runsApp) run(id string) pawl.ID {
	a.t.Helper()
	flow, name, _ := strings.Cut(id, ":")
	run, err := a.e.Find(context.Background(), flow, name)
	require.NoError(a.t, err, id)
	return run
}

// statuses returns all runs with their statuses.
func (a *runsApp) statuses() map[string]workflow.Status {
	a.t.Helper()
	all := make(map[string]workflow.Status)
	for run, err := range WorkflowRuns(context.Background(), Of(a.q).Workflows(), WorkflowQuery{}) {
		require.NoError(a.t, err)
		all[run.Flow+":"+run.ID] = run.Status
	}
	return all
}

// states are the states in which begin, and another build, leave the runs.
var states = map[string]workflow.Status{
	"wait:1": workflow.Waiting, "wait:paused": workflow.Paused, "wait:dead": workflow.Dead, "wait:told": workflow.Waiting,
	"sleep:1": workflow.Sleeping, "long:1": workflow.Running, "retry:1": workflow.Sleeping, "fail:1": workflow.Failed,
	"shift:1": workflow.Blocked, "race:1": workflow.Waiting, "race:won": workflow.Done, "parent:1": workflow.Waiting,
	"large:1": workflow.Waiting, "quick:1": workflow.Done, "wait:off": workflow.Terminated,
	"quick:1/quick": workflow.Done, "child:1/slow": workflow.Waiting,
}

// everyRun returns an app whose runs are in every state, and leaves the app running.
func everyRun(t *testing.T) *runsApp {
	t.Helper()
	a := newRunsApp(t, filepath.Join(memdir.New(t), "from.db"))
	a.fails = true
	a.open("1")
	a.begin()
	a.release()
	synctest.Wait()
	a.close()
	a.other, a.hold = true, make(chan struct{})
	a.open("2")
	synctest.Wait()
	require.NoError(t, runsGo.Send(context.Background(), a.e, a.run("shift:1"), "on", "")) // this wakes it
	f := a.flows()[slices.IndexFunc(a.flows(), func(f workflow.Definition) bool { return f.Name() == "long" })]
	_, err := f.(*workflow.Flow[string, string]).Start(context.Background(), a.e, "2", "long:2")
	require.NoError(t, err)
	synctest.Wait()
	want := maps.Clone(states)
	want["long:1"], want["long:2"] = workflow.Done, workflow.Running
	require.Equal(t, want, a.statuses())
	return a
}

// toTheEnd lets the imported runs continue until each has ended, as it should.
func (a *runsApp) toTheEnd() {
	a.t.Helper()
	ctx := context.Background()
	a.release()
	a.open("3") // the code of build 1
	synctest.Wait()
	for id, how := range map[string]workflow.Status{"shift:1": workflow.Waiting, "wait:dead": workflow.Dead, "long:2": workflow.Done, "wait:paused": workflow.Paused} {
		if id == "shift:1" {
			how = workflow.Done // it has its signal
		}
		info, err := a.e.Info(ctx, a.run(id))
		require.NoError(a.t, err)
		require.Equal(a.t, how, info.Status, id)
	}
	require.NoError(a.t, a.e.Resume(ctx, a.run("wait:paused")))
	require.NoError(a.t, a.e.Resume(ctx, a.run("wait:dead")))
	require.NoError(a.t, runsGo.Send(ctx, a.e, a.run("wait:paused"), "again", "once"), "which is no second one")
	for _, id := range []string{"wait:1", "wait:dead", "wait:told", "race:1", "child:1/slow", "large:1"} {
		require.NoError(a.t, runsGo.Send(ctx, a.e, a.run(id), "now", ""))
	}
	<-time.After(6 * time.Hour)
	synctest.Wait()
	results := make(map[string]string)
	for id, how := range a.statuses() {
		out, err := a.e.Output(ctx, a.run(id))
		require.NoError(a.t, err)
		text := string(how)
		if out != nil {
			require.NoError(a.t, driver.DecodePayload(out, &text))
		}
		results[id] = text
	}
	require.Equal(a.t, map[string]string{
		"wait:1": "wait:1 now", "wait:paused": "wait:paused kept", "wait:dead": "wait:dead now", "wait:told": "wait:told now",
		"sleep:1": "sleep:1 slept", "long:1": "long:1 long", "long:2": "long:2 long", "retry:1": "retry:1 tried",
		"fail:1": "failed", "shift:1": "shift:1 on", "race:1": "race:1 now", "race:won": "race:won now",
		"parent:1": "parent:1 q quick, c now", "quick:1": "quick:1 quick", "wait:off": "terminated",
		"quick:1/quick": "q quick", "child:1/slow": "c now", "large:1": "large:1 now",
	}, results)
	for step, n := range a.steps {
		require.Equal(a.t, 1, n, step)
		require.False(a.t, strings.Contains(step, " before") || strings.HasSuffix(step, " first"), "%s ran again", step)
	}
	require.Equal(a.t, 1, a.steps["long"], "the step that was under way runs again")
	a.close()
}
