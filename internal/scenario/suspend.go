package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

// Rule: sleeping runs that do not stay in memory hold neither slots nor goroutines, and all of them wake.
func (suite) Scenario30Sleepers(t *testing.T) {
	sleepers, starters := race.Fewer(3_000), 50 // more than slots, and than fall due in one commit
	bubble(t, func(t *testing.T, k *kit) {
		f := workflow.Define("sleeper", func(r *workflow.Run, n int) (int, error) {
			return n, workflow.Sleep(r, "night", time.Hour)
		})
		short := workflow.Define("short", func(*workflow.Run, int) (int, error) { return 1, nil })
		k.slots, k.warm = 100, cold // so that a few commits suffice for all
		k.open(f, short)
		k.settle()
		before := len(goroutines())
		var all sync.WaitGroup
		for s := range starters {
			all.Go(func() {
				for n := s; n < sleepers; n += starters {
					start(k, f, fmt.Sprint(n), n)
				}
			})
		}
		all.Wait()
		k.settle()
		require.Equal(t, pawl.Counts{Delayed: sleepers}, k.jobs())
		k.settle() // a count of jobs may leave a goroutine that ends
		after := goroutines()
		require.LessOrEqual(t, len(after), before, strings.Join(after, "\n\n"))

		_, err := outcome(k, start(k, short, "1", 0)) // other runs get slots
		require.NoError(t, err)
		k.pass(time.Hour)
		require.Zero(t, k.jobs())
		for n := 0; n < sleepers; n += 997 {
			returns(k, find(k, f, fmt.Sprint(n)), n)
		}
	})
}

// jobs returns the jobs of the file.
func (k *kit) jobs() pawl.Counts {
	k.t.Helper()
	counts, err := k.q.Counts(k.t.Context())
	require.NoError(k.t, err)
	require.Len(k.t, counts, 1)
	return counts[pawl.DefaultQueue]
}

// Rule: whatever a function does after its run is suspended is ignored: a swallowed error
// neither ends the run nor adds a call to it, and a panic does not stop it.
func (suite) Scenario31SwallowedSuspension(t *testing.T) {
	for name, wait := range map[string]func(r *workflow.Run){
		"sleep": func(r *workflow.Run) { _ = workflow.Sleep(r, "wait", time.Hour) },
		"wait":  func(r *workflow.Run) { _, _ = word.Wait(r, time.Hour) },
		"retry": func(r *workflow.Run) {
			_, _ = workflow.Step(r, "wait", func(context.Context) (int, error) { return 0, pawl.RetryAfter(time.Hour, errors.New("no")) },
				workflow.MaxRetries(1))
		},
		"child": func(r *workflow.Run) { _, _ = workflow.Call(r, "wait", nap, 0) },
		"branch": func(r *workflow.Run) {
			b := workflow.Go(r, "branch", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "wait", time.Hour) })
			_, _ = b.Wait(r)
		},
	} {
		for _, end := range []string{"nil", "error", "restart", "panic"} {
			sub(t, name+"/"+end, func(t *testing.T, k *kit) {
				f := workflow.Define("careless", func(r *workflow.Run, _ int) (string, error) {
					first := k.called("careless") == 1
					wait(r)
					_, err := act(k, r, "more", 1)
					_ = workflow.Publish(r, "more", 1)
					_, version := workflow.Version(r, "more", 1, 2)
					_, branch := workflow.Go(r, "more", func(*workflow.Run) (int, error) { return 1, nil }).Wait(r)
					r.Undo("more", func(context.Context) error {
						k.effect(r)
						return nil
					})
					if !first {
						return "done", errors.Join(err, version, branch)
					}
					for _, err := range []error{err, version, branch} {
						if !errors.Is(err, workflow.ErrSuspended) {
							k.called("wrong: " + fmt.Sprint(err))
						}
					}
					switch end {
					case "error":
						return "", errors.New("broken")
					case "restart":
						return "", workflow.Restart(r, 1)
					case "panic":
						panic("broken")
					}
					return "too early", nil
				})
				k.warm = cold
				k.open(f, nap)
				h := start(k, f, "1", 0)
				k.pass(time.Hour - 1)
				require.Contains(t, []workflow.Status{workflow.Sleeping, workflow.Waiting}, k.info(h.Run()).Status)
				calls := 1
				if name == "branch" {
					calls = 2 // the Each that it began, and its sleep
				}
				require.Len(t, k.journal(h.Run()), calls)
				require.Empty(t, k.keys())
				require.Equal(t, map[string]int{"careless": 1}, k.count, "of calls")
				published, err := k.e.Published(t.Context(), h.Run())
				require.NoError(t, err)
				require.Empty(t, published)
				returns(k, h, "done")
				require.Equal(t, []string{"more"}, k.effects())
				require.Zero(t, k.info(h.Run()).Restarts)
			})
		}
	}
}

// nap is a flow of an hour.
var nap = workflow.Define("nap", func(r *workflow.Run, _ int) (int, error) { return 0, workflow.Sleep(r, "nap", time.Hour) })

// Rule: deferred code of a run that leaves memory runs at each suspension, and its calls are refused then. They are made
// when the function finally returns, in their place and once.
func (suite) Scenario32CallsInDefer(t *testing.T, k *kit) {
	f := workflow.Define("deferred", func(r *workflow.Run, _ int) (out string, err error) {
		defer func() {
			k.called("deferred")
			_, failed := act(k, r, "close", 1)
			if suspended := errors.Is(failed, workflow.ErrSuspended); suspended != errors.Is(err, workflow.ErrSuspended) {
				k.called("wrong")
			}
			failed = errors.Join(failed, workflow.Sleep(r, "linger", time.Hour))
			err = errors.Join(err, failed)
		}()
		if _, err := act(k, r, "open", 1); err != nil {
			return "", err
		}
		if err := workflow.Sleep(r, "night", time.Hour); err != nil {
			return "", err
		}
		return word.Wait(r, workflow.Forever)
	})
	k.warm = cold
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	require.Equal(t, []string{"open"}, k.effects())
	k.pass(time.Hour)
	require.Equal(t, []string{"open"}, k.effects())
	require.Equal(t, 2, k.calls("deferred"))
	say(k, h.Run(), "hello", "")
	returns(k, h, "hello")
	require.Equal(t, []string{"open", "close"}, k.effects())
	require.Zero(t, k.calls("wrong"))
	require.Equal(t, []string{"step open done: 1", "sleep night done", "wait word done: hello", "step close done: 1", "sleep linger done"},
		k.journal(h.Run()))
}
