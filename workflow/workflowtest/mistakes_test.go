package workflowtest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// mistake is a row of the page about mistakes.
type mistake struct {
	what    string
	when    string // it is found
	message string // a part of it
	found   func(t *testing.T) string
	vet     string // whether workflowvet finds it in these functions, as its own test checks
}

const yes, no = "yes", "no"

// When a mistake is found.
const (
	atOnce   = "at once"
	onWake   = "when the run continues"
	onDeploy = "by `Verify`, or when the run continues"
	onReplay = "by `Replay`, at the end of a test"
	onCrash  = "by `EachCrash`"
)

var mistakes = []mistake{
	{"A clock decides which call is made", onWake, `the journal has step "morning" (entry 1, written by build 1), build 1 has step "afternoon"`, clockDecides, yes},
	{"A random number is in the name of a call", onWake, "the build name is the same, so code between calls gave another result", repeated(randomName), yes},
	{"A loop over a map makes calls", onWake, "such as a clock, a random number, the order of a map, or a goroutine: do that in a step", mapOrder, yes},
	{"A variable of the program decides how many calls are made", onWake, "the function returned before it; keep the calls that were made", repeated(fewerCalls), no},
	{"A step gets other arguments, and has a `Fingerprint`", onWake, "the step had other arguments before; compute them only from the input of the run and the results of steps", repeated(otherArguments), no},
	{"A call inside the function of a step", atOnce, `a call was made inside another: step "outer" is under way`, ended(callInStep), yes},
	{"A call in a goroutine that `Go` did not start", atOnce, `a call was made inside another: step "outer" is under way`, ended(callInGoroutine), yes},
	{"A branch makes its calls by the `Run` of the function", atOnce, "the function of this Run waits; make the calls of a branch with the Run of the branch", outerRun, yes},
	{"A `Run` is used after its function returned", atOnce, "the function of this Run has returned", ended(runOfBranch), yes},
	{"Two items of an `Each` have one key", atOnce, `items 0 and 1 both have "a"; give each a key of its own`, ended(sameKeys), no},
	{"A wait for a signal that the flow does not declare", atOnce, "the flow does not declare this signal", undeclared, no},
	{"An endless loop around a call whose error is dropped", atOnce, "ended a function that kept making calls after its run stopped", droppedError, no},
	{"A new build renames a call", onDeploy, `the journal has step "a" (entry 1, written by build 1), build 2 has step "b"`, deployed(step("a"), step("b")), no},
	{"A new build removes a call", onDeploy, `the journal has step "a" (entry 1, written by build 1), build 2 has sleep "night"`, deployed(step("a"), nothing), no},
	{"A new build inserts a call before others", onDeploy, `the journal has step "a" (entry 1, written by build 1), build 2 has step "new"`, deployed(step("a"), steps("new", "a")), no},
	{"A new build changes the order of calls", onDeploy, "repeat the calls of the journal in their order, or distinguish older runs by Version", deployed(steps("a", "b"), steps("b", "a")), no},
	{"A new build changes the kind of a call", onDeploy, `the journal has step "a" (entry 1, written by build 1), build 2 has sleep "a"`, deployed(step("a"), sleep), no},
	{"A new build changes the type of a result", onDeploy, `has step "a" of another type: its result cannot be read`, deployed(step("a"), numberStep), no},
	{"A new build removes a `Version` too early", onWake, "keep the call of Version until no open run has it in its journal", continued(version, nothing), no},
	{"A new build renames a branch", onDeploy, `the journal has branch "left" (entry 1, written by build 1), build 2 has branch "right"`, deployed(branch("left"), branch("right")), no},
	{"A clock is read between calls, and its time returned", onReplay, "the calls are the same, but code between them gave another result", replayed(clockResult), yes},
	{"A random number is drawn between calls", onReplay, "the calls are the same, but code between them gave another result", replayed(randomResult), yes},
	{"A step writes a variable of the function", onReplay, `the journal has the result "7", build 1 has the result "0"`, replayed(capturedWrite), yes},
	{"The function reads a variable that other runs write", onReplay, "the calls are the same, but code between them gave another result", replayed(globalState), yes},
	{"An effect outside of a step", onCrash, "2 parcels instead of 1", crashed(effectOutside), yes},
	{"A new ID for each execution, given to a step", onCrash, "2 parcels instead of 1", crashed(newID), yes},
}

// Rule: each typical mistake of determinism is found when the page says, with the message that it has.
func TestMistakes(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/workflow-mistakes.md")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(mistakes), 20)
	require.Equal(t, len(mistakes), strings.Count(string(page), "\n| A")+strings.Count(string(page), "\n| T"), "rows of the page")
	for _, m := range mistakes {
		t.Run(m.what, func(t *testing.T) {
			require.Contains(t, string(page), fmt.Sprintf("\n| %s | %s | `%s` | %s |\n", m.what, m.when, m.message, m.vet))
			require.Contains(t, m.found(t), m.message)
		})
	}
}

type (
	code = func(r *workflow.Run) (string, error)
	flow = *workflow.Flow[int, string]
)

// flowOf returns a flow that waits a night after it ran some code.
func flowOf(fn code) flow {
	return workflow.Define("f", func(r *workflow.Run, _ int) (string, error) {
		out, err := fn(r)
		if err != nil {
			return "", err
		}
		return out, workflow.Sleep(r, "night", 12*time.Hour)
	})
}

// call makes a step that returns its name.
func call(r *workflow.Run, name string, opts ...workflow.StepOption) (string, error) {
	return workflow.Step(r, name, func(context.Context) (string, error) { return name, nil }, opts...)
}

// repeated returns the error of a run whose code is executed a second time.
func repeated(fn func(time int) code) func(*testing.T) string {
	return func(t *testing.T) string {
		times := 0
		f := flowOf(func(r *workflow.Run) (string, error) {
			times++ //workflowvet:ok the mistake is in fn, which gets the count
			return fn(times)(r)
		})
		k := workflowtest.New(t, nil, f)
		run := workflowtest.Start(k, f, "1", 0)
		k.Advance(24 * time.Hour)
		require.Equal(t, workflow.Blocked, run.Info().Status)
		return run.Info().Error
	}
}

// clockDecides runs in a bubble, so that the clock of the machine moves too.
func clockDecides(t *testing.T) (message string) {
	synctest.Test(t, func(t *testing.T) {
		f := flowOf(func(r *workflow.Run) (string, error) {
			if time.Now().UTC().Hour() < 12 { //workflowvet:ok a mistake on purpose
				return call(r, "morning")
			}
			return call(r, "afternoon")
		})
		k := workflowtest.New(t, nil, f)
		run := workflowtest.Start(k, f, "1", 0)
		time.Sleep(13 * time.Hour)
		k.Advance(24 * time.Hour)
		message = run.Info().Error
	})
	return message
}

func mapOrder(t *testing.T) string {
	names := make(map[string]bool)
	for i := range 200 {
		names[fmt.Sprint("name ", i)] = true
	}
	f := workflow.Define("f", func(r *workflow.Run, _ int) (string, error) {
		for name := range names { //workflowvet:ok a mistake on purpose
			if _, err := call(r, name); err != nil {
				return "", err
			}
			if err := workflow.Sleep(r, "night", 12*time.Hour); err != nil {
				return "", err
			}
		}
		return "", nil
	})
	k := workflowtest.New(t, nil, f)
	run := workflowtest.Start(k, f, "1", 0)
	k.Advance(200 * 12 * time.Hour) // each wake compares the order once more
	return run.Info().Error
}

func randomName(int) code {
	return func(r *workflow.Run) (string, error) {
		return call(r, fmt.Sprint("try ", rand.Uint64())) //workflowvet:ok a mistake on purpose
	}
}

func fewerCalls(n int) code {
	return func(r *workflow.Run) (string, error) {
		if n > 1 {
			return "", fmt.Errorf("nothing to do")
		}
		return call(r, "a")
	}
}

func otherArguments(n int) code {
	return func(r *workflow.Run) (string, error) { return call(r, "a", workflow.Fingerprint(n)) }
}

// ended returns the error of a run that fails immediately.
func ended(fn code) func(*testing.T) string {
	return func(t *testing.T) string {
		f := flowOf(fn)
		k := workflowtest.New(t, nil, f)
		_, err := workflowtest.Start(k, f, "1", 0).Result()
		require.Error(t, err)
		return err.Error()
	}
}

func callInStep(r *workflow.Run) (string, error) {
	return workflow.Step(r, "outer", func(context.Context) (string, error) {
		out, err := call(r, "inner") //workflowvet:ok a mistake on purpose
		return out, pawl.Permanent(err)
	})
}

func callInGoroutine(r *workflow.Run) (string, error) {
	inStep, refused := make(chan struct{}), make(chan error)
	go func() { //workflowvet:ok a mistake on purpose
		<-inStep
		_, err := call(r, "inner")
		refused <- err
	}()
	return workflow.Step(r, "outer", func(context.Context) (string, error) {
		close(inStep)
		return "", pawl.Permanent(<-refused)
	})
}

// outerRun makes the call once the function waits, which only a bubble can know.
func outerRun(t *testing.T) (message string) {
	synctest.Test(t, func(t *testing.T) {
		message = ended(func(r *workflow.Run) (string, error) {
			return workflow.Go(r, "wrong", func(*workflow.Run) (string, error) {
				synctest.Wait()
				return call(r, "by the outer Run") //workflowvet:ok a mistake on purpose
			}).Wait(r)
		})(t)
	})
	return message
}

func runOfBranch(r *workflow.Run) (string, error) {
	var own *workflow.Run
	b := workflow.Go(r, "b", func(r *workflow.Run) (string, error) {
		own = r //workflowvet:ok a mistake on purpose
		return call(r, "a")
	})
	if _, err := b.Wait(r); err != nil {
		return "", err
	}
	return call(own, "late")
}

func sameKeys(r *workflow.Run) (string, error) {
	itself := func(s string) string { return s }
	_, err := workflow.Each(r, "item", []string{"a", "a"}, itself, 1, func(r *workflow.Run, s string) (string, error) { return call(r, s) })
	return "", err
}

func undeclared(t *testing.T) string {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (string, error) { return called.Wait(r, time.Hour) },
		workflow.Receives(workflow.DefineSignal[string]("other")))
	k := workflowtest.New(t, nil, f)
	return workflowtest.Start(k, f, "1", 0).Info().Error
}

func droppedError(t *testing.T) string {
	var log strings.Builder
	var mu sync.Mutex
	f := workflow.Define("f", func(r *workflow.Run, _ int) (string, error) {
		for done := false; !done; {
			_, err := called.Wait(r, workflow.Forever)
			done = err == nil
		}
		return "", nil
	})
	k := workflowtest.New(t, &workflowtest.Options{Engine: workflow.Options{
		Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Mutex: &mu})}}, f)
	workflowtest.Start(k, f, "1", 0)
	mu.Lock()
	defer mu.Unlock()
	return log.String()
}

// deployed returns the error of a run that one build began and another continues.
func deployed(before, after code) func(*testing.T) string {
	return func(t *testing.T) string {
		old, now := flowOf(before), flowOf(after)
		k := workflowtest.New(t, nil, old)
		run := workflowtest.Start(k, old, "1", 0)
		k.Deploy("2", now)
		verified := k.Engine().Verify(t.Context(), run.Run())
		k.Advance(24 * time.Hour)
		require.EqualError(t, verified, run.Info().Error)
		return verified.Error()
	}
}

// continued is like deployed, for a mistake that Verify cannot see.
func continued(before, after code) func(*testing.T) string {
	return func(t *testing.T) string {
		old, now := flowOf(before), flowOf(after)
		k := workflowtest.New(t, nil, old)
		run := workflowtest.Start(k, old, "1", 0)
		k.Deploy("2", now)
		require.NoError(t, k.Engine().Verify(t.Context(), run.Run()))
		k.Advance(24 * time.Hour)
		return run.Info().Error
	}
}

func step(name string) code { return steps(name) }

func steps(names ...string) code {
	return func(r *workflow.Run) (out string, err error) {
		for _, name := range names {
			if out, err = call(r, name); err != nil {
				return "", err
			}
		}
		return out, nil
	}
}

func nothing(*workflow.Run) (string, error) { return "", nil }

func sleep(r *workflow.Run) (string, error) { return "", workflow.Sleep(r, "a", time.Hour) }

func numberStep(r *workflow.Run) (string, error) {
	n, err := workflow.Step(r, "a", func(context.Context) (int, error) { return 1, nil })
	return fmt.Sprint(n), err
}

func version(r *workflow.Run) (string, error) {
	n, err := workflow.Version(r, "tax", 1, 2)
	return fmt.Sprint(n), err
}

func branch(name string) code {
	return func(r *workflow.Run) (string, error) {
		return workflow.Go(r, name, step("a")).Wait(r)
	}
}

// replayed returns how a test fails that runs some code to its end.
func replayed(fn func() code) func(*testing.T) string {
	return func(t *testing.T) string {
		return failure(t, func(t testing.TB) {
			f := workflow.Define("f", func(r *workflow.Run, _ int) (string, error) { return fn()(r) })
			if _, err := workflowtest.Start(workflowtest.New(t, nil, f), f, "1", 0).Result(); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

func clockResult() code {
	return func(r *workflow.Run) (string, error) {
		at := time.Now() //workflowvet:ok a mistake on purpose; its monotonic part never repeats
		_, err := call(r, "a")
		return fmt.Sprint(at), err
	}
}

func randomResult() code {
	return func(r *workflow.Run) (string, error) {
		id := fmt.Sprint(rand.Uint64(), rand.Uint64()) //workflowvet:ok a mistake on purpose
		_, err := call(r, "a")
		return id, err
	}
}

func capturedWrite() code {
	return func(r *workflow.Run) (string, error) {
		total := 0
		_, err := workflow.Step(r, "a", func(context.Context) (bool, error) {
			total = 7 //workflowvet:ok a mistake on purpose
			return true, nil
		})
		return fmt.Sprint(total), err
	}
}

var others int // a variable of the program

func globalState() code {
	return func(r *workflow.Run) (string, error) {
		others++ //workflowvet:ok a mistake on purpose
		_, err := call(r, "a")
		return fmt.Sprint(others), err
	}
}

// crashed returns how a test fails because an effect took place twice after one of the crashes that
// EachCrash places.
func crashed(fn func(parcels map[string]bool) code) func(*testing.T) string {
	return func(t *testing.T) string {
		return failure(t, func(t testing.TB) {
			parcels := make(map[string]bool) // by ID, so that repetitions do not count
			f := workflow.Define("f", func(r *workflow.Run, _ int) (string, error) { return fn(parcels)(r) })
			k := workflowtest.New(t, nil, f)
			k.CrashAfter("send")
			workflowtest.Start(k, f, "1", 0)
			if len(parcels) != 1 {
				t.Errorf("%d parcels instead of 1", len(parcels))
			}
		})
	}
}

func effectOutside(parcels map[string]bool) code {
	return func(r *workflow.Run) (string, error) {
		parcels[fmt.Sprint("parcel ", len(parcels))] = true //workflowvet:ok a mistake on purpose
		return call(r, "send")
	}
}

func newID(parcels map[string]bool) code {
	return func(r *workflow.Run) (string, error) {
		id := pawl.NewID(time.Time{}).String() //workflowvet:ok a mistake on purpose
		return workflow.Step(r, "send", func(context.Context) (string, error) {
			parcels[id] = true
			return "", nil
		})
	}
}
