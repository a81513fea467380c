package workflowtest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// diary is a flow that writes down, outside, the keys under which its steps were called.
type diary struct {
	flow *workflow.Flow[int, int]

	mu    sync.Mutex
	calls []string
}

func (d *diary) call(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, key[strings.LastIndexByte(key, '/')+1:]) // without the run
}

var bucket = []byte("diary")

func newDiary(last error) *diary {
	d := new(diary)
	d.flow = workflow.Define("diary", func(r *workflow.Run, n int) (int, error) {
		step := func(name string, opts ...workflow.StepOption) error {
			_, err := workflow.Step(r, name, func(context.Context) (int, error) {
				d.call(r.Key())
				return 1, nil
			}, opts...)
			return err
		}
		if err := step("one"); err != nil {
			return 0, err
		}
		r.Undo("not one", func(context.Context) error { d.call("undone"); return nil })
		count, err := workflow.StepTx(r, "ledger", func(tx *bbolt.Tx) (int, error) {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return 0, err
			}
			n, err := b.NextSequence()
			return int(n), err
		})
		if err != nil {
			return 0, err
		}
		if err := workflow.Sleep(r, "night", time.Hour); err != nil {
			return 0, err
		}
		if err := step("two"); err != nil {
			return 0, err
		}
		return count, last
	})
	return d
}

// Rule: a crash before a step prevents its call, a crash after it does not; in both cases it runs
// again with the same key, and earlier steps do not.
func TestCrashAtAStep(t *testing.T) {
	for _, at := range []struct {
		name  string
		place func(*workflowtest.Kit)
		calls []string
	}{
		{"nowhere", func(*workflowtest.Kit) {}, []string{"one", "two"}},
		{"before one", func(k *workflowtest.Kit) { k.CrashBefore("one") }, []string{"one", "two"}},
		{"after one", func(k *workflowtest.Kit) { k.CrashAfter("one") }, []string{"one", "one", "two"}},
		{"twice after two", func(k *workflowtest.Kit) { k.CrashAfter("two"); k.CrashAfter("two") }, []string{"one", "two", "two", "two"}},
		{"before ledger", func(k *workflowtest.Kit) { k.CrashBefore("ledger") }, []string{"one", "two"}},
		{"after ledger", func(k *workflowtest.Kit) { k.CrashAfter("ledger") }, []string{"one", "two"}},
	} {
		t.Run(at.name, func(t *testing.T) {
			d := newDiary(nil)
			k := workflowtest.New(t, nil, d.flow)
			at.place(k)
			run := workflowtest.Start(k, d.flow, "1", 0)
			count, err := run.Result()
			require.NoError(t, err)
			require.Equal(t, 1, count, "the transaction took place once")
			require.Equal(t, at.calls, d.calls)
			require.Equal(t, len(at.calls), k.Attempts("one")+k.Attempts("two"))
			require.Equal(t, 1, k.Attempts("ledger"))
			require.Equal(t, "step one: 1\nstep-tx ledger: 1\nsleep night, 1h0m0s\nstep two: 1\n", run.Journal().String())
		})
	}
}

// Rule: a step that runs at most once does not run again after a crash in it.
func TestCrashOfAStepThatRunsOnce(t *testing.T) {
	calls := 0
	f := workflow.Define("once", func(r *workflow.Run, _ int) (int, error) {
		return workflow.Step(r, "send", func(context.Context) (int, error) { calls++; return 1, nil }, workflow.AtMostOnce())
	})
	for _, place := range []func(*workflowtest.Kit){
		func(k *workflowtest.Kit) { k.CrashBefore("send") },
		func(k *workflowtest.Kit) { k.CrashAfter("send") },
	} {
		k := workflowtest.New(t, nil, f)
		place(k)
		_, err := workflowtest.Start(k, f, "1", 0).Result()
		require.ErrorIs(t, err, workflow.ErrInterrupted)
	}
	require.Equal(t, 1, calls)
}

// Rule: after a crash the process writes nothing. A running step of another branch runs again
// although it completes, and its successors run once.
func TestCrashEndsOtherBranches(t *testing.T) {
	var k *workflowtest.Kit
	var first sync.Once
	began := make(chan struct{})
	f := workflow.Define("two", func(r *workflow.Run, _ int) (int, error) {
		a := workflow.Go(r, "a", func(r *workflow.Run) (int, error) {
			if _, err := workflow.Step(r, "long", func(context.Context) (int, error) {
				first.Do(func() {
					q := k.Queue()
					close(began)
					<-q.Done()
				})
				return 1, nil
			}); err != nil {
				return 0, err
			}
			return workflow.Step(r, "next", func(context.Context) (int, error) { return 1, nil })
		})
		b := workflow.Go(r, "b", func(r *workflow.Run) (int, error) {
			return workflow.Step(r, "crash", func(context.Context) (int, error) { <-began; return 1, nil })
		})
		_, err := workflow.All(r, a, b)
		return 0, err
	})
	k = workflowtest.New(t, nil, f)
	k.CrashAfter("crash")
	_, err := workflowtest.Start(k, f, "1", 0).Result()
	require.NoError(t, err)
	require.Equal(t, 2, k.Attempts("b/crash"))
	require.Equal(t, 2, k.Attempts("long"))
	require.Equal(t, 1, k.Attempts("a/next"))
}

// Rule: a crash that did not happen fails the test.
func TestCrashThatDoesNotCome(t *testing.T) {
	require.Equal(t, "workflowtest: no crash before two happened", failure(t, func(t testing.TB) {
		d := newDiary(nil)
		k := workflowtest.New(t, nil, d.flow)
		k.CrashBefore("two")
		workflowtest.Start(k, d.flow, "1", 0)
	}))
}

// Rule: each point is visited exactly once, including undo steps and waits.
func TestEachCrash(t *testing.T) {
	var visited []string
	workflowtest.EachCrash(t, func(t *testing.T, at *workflowtest.Point) {
		visited = append(visited, at.String())
		d := newDiary(errors.New("it failed"))
		k := workflowtest.New(t, &workflowtest.Options{At: at}, d.flow)
		_, err := workflowtest.Start(k, d.flow, "1", 0).Result()
		require.ErrorContains(t, err, "it failed")
		calls := slices.Compact(d.calls)
		require.Equal(t, []string{"one", "two", "undone"}, calls)
		require.LessOrEqual(t, len(d.calls), len(calls)+1)
	})
	require.Equal(t, []string{"no crash", "before one", "after one", "before ledger", "after ledger",
		"at rest 1", "at rest 2", "before two", "after two", "before _undo/not one", "after _undo/not one"}, visited)
}

// Rule: a stub replaces the step with its full name, or all steps with its own name; the step's
// retry policy applies; nil removes it.
func TestStub(t *testing.T) {
	real := 0
	f := workflow.Define("fetch", func(r *workflow.Run, _ int) (sum int, err error) {
		for range 2 {
			n, err := workflow.Step(r, "get", func(context.Context) (int, error) { real++; return 1, nil },
				workflow.MaxRetries(2), workflow.Backoff(pawl.Fixed(10*time.Minute)))
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	})
	k := workflowtest.New(t, nil, f)
	tries := 0
	k.Stub("get#2", func(context.Context) (any, error) {
		if tries++; tries < 3 {
			return nil, errors.New("busy")
		}
		return 40, nil
	})
	run := workflowtest.Start(k, f, "1", 0)
	require.Equal(t, "step get: 1\nstep get#2, until 10m0s: pending after busy\n", run.Journal().String())
	require.Equal(t, 10*time.Minute, k.Skip())
	require.Equal(t, 10*time.Minute, k.Skip())
	out, err := run.Result()
	require.NoError(t, err)
	require.Equal(t, 41, out)
	require.Equal(t, "step get: 1\nstep get#2, 3 attempts, 20m0s: 40\n", run.Journal().String())
	require.Equal(t, 1, real)
	require.Equal(t, 3, k.Attempts("get#2"))
	require.Equal(t, 4, k.Attempts("get"), "of both")

	k.Stub("get", func(context.Context) (any, error) { return 5, nil })
	out, err = workflowtest.Start(k, f, "2", 0).Result()
	require.NoError(t, err)
	require.Equal(t, 45, out)
	k.Stub("get#2", nil)
	out, err = workflowtest.Start(k, f, "3", 0).Result()
	require.NoError(t, err)
	require.Equal(t, 10, out)
	k.Stub("get", func(context.Context) (any, error) { return "five", nil })
	_, err = workflowtest.Start(k, f, "4", 0).Result()
	require.ErrorContains(t, err, "the result cannot be read back")
	require.Equal(t, 1, real)
}
