package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// code is the function of a flow in one build.
type code = func(r *workflow.Run) (string, error)

// plan returns the flow "plan" with the given code.
func plan(fn code) *workflow.Flow[int, string] {
	return workflow.Define("plan", func(r *workflow.Run, _ int) (string, error) { return fn(r) })
}

// proceed is the signal for which plans wait.
var proceed = workflow.DefineSignal[int]("proceed")

// calls makes calls one after another: "wait" waits for the signal, "sleep x" sleeps, and
// anything else is a step that returns its name.
func calls(k *kit, names ...string) code {
	return func(r *workflow.Run) (string, error) {
		done := ""
		for _, name := range names {
			var err error
			nap := ""
			switch n, _ := fmt.Sscanf(name, "sleep %s", &nap); {
			case n == 1:
				err = workflow.Sleep(r, nap, time.Hour)
			case name == "wait":
				_, err = proceed.Wait(r, workflow.Forever)
			default:
				_, err = act(k, r, name, name)
			}
			if err != nil {
				return "", err
			}
			done += name + "."
		}
		return done, nil
	}
}

// change lets a run execute under build 1 until it waits, and then, with the signal, under
// build 2.
func change(k *kit, old, new code) *workflow.Handle[string] {
	k.t.Helper()
	f := plan(old)
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	require.Equal(k.t, workflow.Waiting, k.info(h.Run()).Status)
	return rebuild(k, "2", new)
}

// rebuild opens the file with other code, and sends the signal.
func rebuild(k *kit, build string, new code) *workflow.Handle[string] {
	k.t.Helper()
	f := plan(new)
	k.restart(build, f)
	h := find(k, f, "1")
	require.NoError(k.t, proceed.Send(k.t.Context(), k.e, h.Run(), 1, "once"))
	k.settle()
	return h
}

// blocked requires that the run is blocked, that it says why and names the build, and that
// nothing is lost: its journal is unchanged, and no attempt is counted.
func blocked(k *kit, run pawl.ID, build string, journal []string, why ...string) {
	k.t.Helper()
	k.pass(48 * time.Hour) // and it stays blocked
	info := k.info(run)
	require.Equal(k.t, workflow.Blocked, info.Status, info.Error)
	require.Equal(k.t, build, info.Build)
	for _, text := range why {
		require.Contains(k.t, info.Error, text)
	}
	require.Equal(k.t, journal, k.journal(run))
	job, err := k.q.Job(k.t.Context(), run)
	require.NoError(k.t, err)
	require.Equal(k.t, pawl.Delayed, job.State)
	require.Empty(k.t, job.History)
	require.Zero(k.t, job.Failures)
	require.Zero(k.t, job.Crashes)

	var mismatch *workflow.DeterminismError
	require.ErrorAs(k.t, k.e.Verify(k.t.Context(), run), &mismatch, "a dry run finds it too")
	require.Equal(k.t, info.Error, mismatch.Error())
	require.Equal(k.t, build, mismatch.Build)
	require.Equal(k.t, "1", mismatch.Wrote)
}

// Rules: code that does not repeat the calls of the journal, in order and each of its kind,
// blocks the run: if a call is renamed (13), inserted before the end of the journal (14),
// removed (15), reordered (16), or of another kind (17).
var changes = []struct {
	scenario int
	name     string
	old, new []string
	why      []string // empty if the run continues
}{
	{13, "a step is renamed", []string{"a", "b", "wait"}, []string{"a", "bb", "wait"},
		[]string{`the journal has step "b" (entry 2, written by build 1), build 2 has step "bb"`}},
	{13, "a wait is renamed", []string{"sleep x", "a", "wait"}, []string{"sleep y", "a", "wait"},
		[]string{`the journal has sleep "x"`, `build 2 has sleep "y"`}},
	{14, "before the frontier", []string{"a", "b", "wait", "c"}, []string{"a", "new", "b", "wait", "c"},
		[]string{`the journal has step "b"`, `build 2 has step "new"`}},
	{14, "of a name that is there", []string{"a", "wait", "a"}, []string{"a", "a", "wait", "a"},
		[]string{`the journal has wait "proceed"`, `build 2 has step "a#2"`}},
	{14, "before the wait under way", []string{"a", "wait", "c"}, []string{"a", "new", "wait", "c"},
		[]string{`the journal has wait "proceed"`, `build 2 has step "new"`}},
	{14, "behind the frontier", []string{"a", "wait", "c"}, []string{"a", "wait", "new", "c", "d"}, nil},
	{15, "the last", []string{"a", "b", "wait"}, []string{"a"},
		[]string{`the journal has step "b"`, "build 2 has nothing more", "the function returned before it"}},
	{15, "all", []string{"a", "wait"}, nil,
		[]string{`the journal has step "a"`, "build 2 has nothing more"}},
	{15, "from the middle", []string{"a", "b", "wait"}, []string{"a", "wait"},
		[]string{`the journal has step "b"`, `build 2 has wait "proceed"`}},
	{15, "behind the frontier", []string{"a", "wait", "c", "d"}, []string{"a", "wait", "d"}, nil},
	{16, "steps", []string{"a", "b", "wait"}, []string{"b", "a", "wait"},
		[]string{`the journal has step "a"`, `build 2 has step "b"`}},
	{16, "behind the frontier", []string{"a", "wait", "b", "c"}, []string{"a", "wait", "c", "b"}, nil},
	{17, "a step is a sleep", []string{"a", "wait"}, []string{"sleep a", "wait"},
		[]string{`the journal has step "a"`, `build 2 has sleep "a"`}},
	{17, "a sleep is a step", []string{"sleep a", "wait"}, []string{"a", "wait"},
		[]string{`the journal has sleep "a"`, `build 2 has step "a"`}},
}

func testChanges(t *testing.T, scenario int) {
	t.Helper()
	for _, c := range changes {
		if c.scenario != scenario {
			continue
		}
		sub(t, c.name, func(t *testing.T, k *kit) {
			f := plan(calls(k, c.old...))
			k.open(f)
			h := start(k, f, "1", 0)
			k.pass(2 * time.Hour) // longer than the sleeps
			require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
			journal, effects := k.journal(h.Run()), k.effects()

			h = rebuild(k, "2", calls(k, c.new...))
			if c.why != nil {
				blocked(k, h.Run(), "2", journal, c.why...)
				require.Equal(t, effects, k.effects(), "nothing has run")
				return
			}
			out, err := outcome(k, h)
			require.NoError(t, err)
			want := ""
			for _, name := range c.new {
				want += name + "."
			}
			require.Equal(t, want, out)
		})
	}
}

// Rule: a completed step under another name blocks the run.
func (suite) Scenario13Renamed(t *testing.T) { testChanges(t, 13) }

// Rule: a new step blocks the run before the end of the journal, and runs after it.
func (suite) Scenario14Inserted(t *testing.T) { testChanges(t, 14) }

// Rule: a missing step blocks the run, at the next call or at the return.
func (suite) Scenario15Removed(t *testing.T) { testChanges(t, 15) }

// Rule: steps in another order block the run before the end of the journal, but not after it.
func (suite) Scenario16Reordered(t *testing.T) { testChanges(t, 16) }

// Rule: a call of another kind is another call, even if its name is the same.
func (suite) Scenario17KindChanged(t *testing.T) { testChanges(t, 17) }

// Rule: if the order of a loop changes from one execution of the function to the next, as with
// a map, the first wake at which it differs detects that. A sorted loop passes.
func (suite) Scenario18MapOrder(t *testing.T) {
	orders := [][]string{{"x", "y", "z", "wait"}, {"z", "x", "y", "wait"}}
	bubble(t, func(t *testing.T, k *kit) {
		k.warm = cold // a run in memory has only one order
		f := plan(func(r *workflow.Run) (string, error) {
			return calls(k, orders[min(k.called("loop"), 2)-1]...)(r)
		})
		k.open(f)
		h := startAndSettle(k, f, "1", 0)
		journal := k.journal(h.Run())
		require.NoError(t, proceed.Send(t.Context(), k.e, h.Run(), 1, ""))
		k.settle()
		require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
		blocked(k, h.Run(), "1", journal, `the journal has step "x"`, `build 1 has step "z"`)
		require.Equal(t, []string{"x", "y", "z"}, k.effects())
	})
}

// Rule: once a build has blocked a run, opening the file with that build again does not try the
// run again. Another build does, and so does an operator. The run then ends as if it had never
// been blocked.
func (suite) Scenario21FixedBuildUnblocks(t *testing.T) {
	for _, way := range []string{"another build", "resumed"} {
		sub(t, way, func(t *testing.T, k *kit) {
			right := calls(k, "a", "wait", "b")
			h := change(k, right, calls(k, "wrong", "wait", "b"))
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)

			attempts := func() int {
				job, err := k.q.Job(t.Context(), h.Run())
				require.NoError(t, err)
				return job.Attempts
			}
			before := attempts()
			f := plan(right)
			k.restart("2", f) // a flow of the same name
			k.pass(time.Hour)
			require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
			require.Equal(t, before, attempts(), "it was not tried")

			if way == "resumed" {
				require.NoError(t, k.e.Resume(t.Context(), h.Run()))
			} else {
				k.restart("3", f)
			}
			h = find(k, f, "1")
			returns(k, h, "a.wait.b.")
			require.Equal(t, []string{"a", "b"}, k.effects())
			require.Empty(t, k.info(h.Run()).Error)
		})
	}
}

// Rule: a step that is called with another fingerprint blocks the run. A step with the same
// fingerprint, or with none, does not.
func (suite) Scenario22FingerprintChanged(t *testing.T) {
	print := func(opts ...workflow.StepOption) code {
		return func(r *workflow.Run) (string, error) {
			out, err := workflow.Step(r, "print", func(context.Context) (string, error) { return "page", nil }, opts...)
			if err == nil {
				_, err = proceed.Wait(r, workflow.Forever)
			}
			return out, err
		}
	}
	type input struct {
		Page int
		Of   string
	}
	of := func(page int) workflow.StepOption { return workflow.Fingerprint(input{page, "book"}) }
	for _, c := range []struct {
		name     string
		old, new []workflow.StepOption
		fits     bool
	}{
		{"the same", []workflow.StepOption{of(1)}, []workflow.StepOption{of(1)}, true},
		{"none", nil, nil, true},
		{"another", []workflow.StepOption{of(1)}, []workflow.StepOption{of(2)}, false},
		{"added", nil, []workflow.StepOption{of(1)}, false},
		{"removed", []workflow.StepOption{of(1)}, nil, false},
	} {
		sub(t, c.name, func(t *testing.T, k *kit) {
			h := change(k, print(c.old...), print(c.new...))
			if c.fits {
				returns(k, h, "page")
				return
			}
			blocked(k, h.Run(), "2", []string{"step print done: page", "wait proceed pending"},
				`step "print" with another fingerprint`, "had other arguments before")
		})
	}
}

// oldResult and newResult are two forms of a step's result.
type (
	oldResult struct{ Cents int }
	newResult struct{ Cents string }
)

// Rule: a result, an input or a signal that the code can no longer read is an error that says
// so, and blocks the run. The function never receives a zero value in its place.
func (suite) Scenario23ResultNotDecoded(t *testing.T) {
	price := func(r *workflow.Run, wait bool) error {
		if !wait {
			return nil
		}
		_, err := proceed.Wait(r, workflow.Forever)
		return err
	}
	old := func(r *workflow.Run) (string, error) {
		v, err := workflow.Step(r, "price", func(context.Context) (oldResult, error) { return oldResult{100}, nil })
		if err == nil {
			err = price(r, true)
		}
		return fmt.Sprint(v), err
	}
	sub(t, "of a step", func(t *testing.T, k *kit) {
		var seen []newResult
		h := change(k, old, func(r *workflow.Run) (string, error) {
			v, err := workflow.Step(r, "price", func(context.Context) (newResult, error) { return newResult{"1"}, nil })
			if err == nil {
				seen = append(seen, v)
				err = price(r, true)
			}
			return fmt.Sprint(v), err
		})
		blocked(k, h.Run(), "2", []string{"step price done: map[Cents:100]", "wait proceed pending"},
			`step "price" of another type`, "its result cannot be read")
		require.Empty(t, seen)
	})
	sub(t, "the input", func(t *testing.T, k *kit) {
		called := 0
		f := plan(old)
		k.open(f)
		h := startAndSettle(k, f, "1", 5)
		k.restart("2", workflow.Define("plan", func(*workflow.Run, string) (string, error) { called++; return "", nil }))
		require.NoError(t, proceed.Send(t.Context(), k.e, h.Run(), 1, ""))
		k.settle()
		info := k.info(h.Run())
		require.Equal(t, workflow.Blocked, info.Status)
		require.Contains(t, info.Error, "build 2 has the type string")
		require.Zero(t, called)
	})
	sub(t, "of the run", func(t *testing.T, k *kit) {
		k.open(plan(calls(k, "a")))
		startAndSettle(k, plan(calls(k, "a")), "1", 0)
		other := workflow.Define("plan", func(*workflow.Run, int) (int, error) { return 0, nil })
		_, err := outcome(k, find(k, other, "1"))
		require.ErrorContains(t, err, `result of workflow plan "1"`)
	})
}
