package workflow_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// spinning are loops that swallow what their calls return, once the first of them waits.
var spinning = map[string]func(r *workflow.Run){
	"sleep": func(r *workflow.Run) {
		for workflow.Sleep(r, "s", time.Hour) != nil {
		}
	},
	"other calls": func(r *workflow.Run) {
		for err := workflow.Sleep(r, "s", time.Hour); err != nil; {
			_, err = workflow.Version(r, "v", 1, 1)
			_ = workflow.Publish(r, "p", 1)
			_, _ = workflow.Each(r, "e", []int{1}, 1, func(*workflow.Run, int) (int, error) { return 1, nil })
		}
	},
	"branch": func(r *workflow.Run) {
		_, _ = workflow.Go(r, "b", func(r *workflow.Run) (int, error) {
			for workflow.Sleep(r, "s", time.Hour) != nil {
			}
			return 1, nil
		}).Wait(r)
	},
	"waiting for a branch": func(r *workflow.Run) {
		b := workflow.Go(r, "b", func(r *workflow.Run) (int, error) { return 1, workflow.Sleep(r, "s", time.Hour) })
		for {
			if _, err := b.Wait(r); err == nil {
				return
			}
		}
	},
	"recover": func(r *workflow.Run) {
		once := func() (err error) {
			defer func() { _ = recover() }()
			return workflow.Sleep(r, "s", time.Hour)
		}
		for once() != nil {
		}
	},
	"defer": func(r *workflow.Run) {
		defer func() {
			for workflow.Sleep(r, "t", time.Hour) != nil {
			}
		}()
		_ = workflow.Sleep(r, "s", time.Hour)
	},
	"goroutine": func(r *workflow.Run) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for workflow.Sleep(r, "s", time.Hour) != nil {
			}
		}()
		<-done
	},
}

// Rule: a loop that swallows the error of a run which is suspended comes to its end, wherever it
// is, and the run is blocked and says why; also when the time comes for which it waited. A build
// that returns the error has it go on where it was.
func TestScenario31SpinningIsBlocked(t *testing.T) {
	for name, spin := range spinning {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kit) {
				careless := func(wait func(r *workflow.Run) error) *workflow.Flow[int, int] {
					return workflow.Define("careless", func(r *workflow.Run, _ int) (int, error) {
						k.called("function")
						_, err := workflow.Step(r, "before", func(context.Context) (int, error) {
							k.effect(r)
							return 1, nil
						})
						if err == nil {
							err = wait(r)
						}
						return 1, err
					})
				}
				broken := careless(func(r *workflow.Run) error { spin(r); return nil })
				k.open(broken)
				h := start(k, broken, "1", 0)
				for range 2 {
					k.settle()
					info := k.info(h.Run())
					require.Equal(t, workflow.Blocked, info.Status)
					require.ErrorContains(t, k.e.Verify(t.Context(), h.Run()), info.Error)
					require.Contains(t, info.Error, "return the error of a call that is not a *StepError")
					require.NoError(t, k.e.Check(t.Context()))
					k.pass(2 * time.Hour)
				}
				require.Equal(t, 3, k.calls("function"), "once, and for each Verify")
				require.NoError(t, k.e.Resume(t.Context(), h.Run()))
				k.settle()
				if name == "defer" { // its second sleep
					require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
				}

				again := start(k, broken, "2", 0)
				k.settle()
				require.Equal(t, workflow.Blocked, k.info(again.Run()).Status)
				fixed := careless(func(r *workflow.Run) error {
					if name == "branch" || name == "waiting for a branch" {
						_, err := workflow.Go(r, "b", func(r *workflow.Run) (int, error) { return 1, workflow.Sleep(r, "s", time.Hour) }).Wait(r)
						return err
					}
					return workflow.Sleep(r, "s", time.Hour)
				})
				k.restart("2", fixed)
				out, err := outcome(k, find(k, fixed, "2"))
				require.NoError(t, err)
				require.Equal(t, 1, out)
				require.Equal(t, []string{"before", "before"}, k.effects())
			})
		})
	}
}

// Rule: a function that makes but one call more behind a suspension than a journal has room for is
// careless and no more: what it does then is not looked at.
func TestScenario31ManySwallowedErrors(t *testing.T) {
	bubble(t, func(t *testing.T, k *kit) {
		f := workflow.Define("many", func(r *workflow.Run, _ int) (int, error) {
			err := workflow.Sleep(r, "first", time.Hour)
			for range workflow.MaxEntries + 1 {
				if err != nil {
					_ = workflow.Sleep(r, "s", 0)
				}
			}
			return 1, err
		})
		k.open(f)
		h := start(k, f, "1", 0)
		k.settle()
		require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status)
		_, err := outcome(k, h)
		require.NoError(t, err)
	})
}

// Rule: the same holds for a loop that swallows that the run is cancelled, or that its branch has
// lost. An operator can terminate such a run.
func TestScenario37SpinningWhileCancelled(t *testing.T) {
	stubborn := func(r *workflow.Run) (int, error) {
		for {
			if _, err := workflow.Step(r, "s", func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}); err == nil {
				return 1, nil
			}
		}
	}
	for name, f := range map[string]*workflow.Flow[int, int]{
		"cancelled": workflow.Define("f", func(r *workflow.Run, _ int) (int, error) { return stubborn(r) }),
		"abandoned": workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			loser := workflow.Go(r, "loser", stubborn)
			winner := workflow.Go(r, "winner", func(r *workflow.Run) (int, error) { _, err := last.Wait(r, workflow.Forever); return 1, err })
			_, _, err := workflow.Race(r, "first", winner, loser)
			return 1, err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kit) {
				k.open(f)
				h := start(k, f, "1", 0)
				k.settle()
				require.Equal(t, workflow.Running, k.info(h.Run()).Status)
				if name == "cancelled" {
					require.NoError(t, h.Cancel(t.Context(), "enough"))
				} else {
					require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "me", ""))
				}
				k.settle()
				info := k.info(h.Run())
				require.Equal(t, workflow.Blocked, info.Status)
				require.Contains(t, info.Error, "return the error of a call that is not a *StepError")
				require.NoError(t, k.e.Terminate(t.Context(), h.Run(), "enough"))
				k.settle()
				require.Equal(t, workflow.Terminated, k.info(h.Run()).Status)
			})
		})
	}
}
