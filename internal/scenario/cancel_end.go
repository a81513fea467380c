package scenario

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/workflow"
)

// Rule: when the function returns an error, its open branches are abandoned in one commit: their
// children are cancelled, and their signals are given back. They make no calls afterwards, also
// if the run crashes while it undoes.
func (suite) OpenBranchesEndWithTheFunction(t *testing.T) {
	child := workflow.Define("child", func(r *workflow.Run, _ int) (string, error) { return last.Wait(r, workflow.Forever) })
	flow := func(k *kit) *workflow.Flow[int, int] {
		return workflow.Define("fails", func(r *workflow.Run, _ int) (int, error) {
			r.Undo("undo", func(ctx context.Context) error {
				k.effect(r)
				k.at("undo")
				return nil
			})
			workflow.Go(r, "ended", func(r *workflow.Run) (string, error) { return act(k, r, "s", "ended") })
			workflow.Go(r, "open", func(r *workflow.Run) (string, error) {
				workflow.Go(r, "below", func(r *workflow.Run) (string, error) { return workflow.Call(r, "c", child, 0) })
				if _, err := word.Wait(r, workflow.Forever); err != nil {
					return "", err
				}
				if err := workflow.Sleep(r, "long", 48*time.Hour); err != nil {
					return "", err
				}
				return act(k, r, "late", "")
			})
			if err := workflow.Sleep(r, "night", time.Hour); err != nil {
				return 0, err
			}
			k.at("fails")
			return 0, errPlanned
		})
	}
	ends := func(k *kit, h *workflow.Handle[int]) {
		k.t.Helper()
		began := k.now()
		_, err := outcome(k, h)
		require.ErrorContains(k.t, err, "planned")
		require.NotContains(k.t, err.Error(), "not all was undone")
		require.Less(k.t, k.now().Sub(began), 24*time.Hour, "it does not wait for the branch")
		require.Equal(k.t, workflow.Failed, k.info(h.Run()).Status)
		require.Equal(k.t, []string{"hello"}, pending(k, h.Run()))
		require.NotContains(k.t, k.effects(), "open/late")
		k.settle()
		require.Equal(k.t, workflow.Cancelled, k.info(find(k, child, "1/open/below/c").Run()).Status)
		require.NoError(k.t, k.e.Check(k.t.Context()))
	}
	begin := func(k *kit) *workflow.Handle[int] {
		k.open(flow(k), child)
		h := startAndSettle(k, flow(k), "1", 0)
		say(k, h.Run(), "hello", "")
		k.settle()
		require.Empty(k.t, pending(k, h.Run()))
		return h
	}
	t.Run("decision", func(t *testing.T) {
		eachDeath(t, func(at death) story {
			return story{
				first: func(k *kit) {
					fails := k.gate("fails")
					begin(k)
					k.pass(time.Hour)
					<-fails.reached
					g := k.hold()
					close(fails.open)
					g.endLife(at)
				},
				then: func(k *kit) {
					k.slots = -1
					k.open(flow(k), child)
					h := find(k, flow(k), "1")
					if at == before {
						require.NotContains(k.t, k.journal(h.Run()), "undo _undo/undo done")
						require.Empty(k.t, pending(k, h.Run()))
					} else {
						require.Equal(k.t, []string{"hello"}, pending(k, h.Run()))
						require.NotEmpty(k.t, k.info(find(k, child, "1/open/below/c").Run()).Cancelling)
						require.NoError(k.t, k.e.Verify(k.t.Context(), h.Run()))
					}
					k.restartWithSlots(8)
					ends(k, find(k, flow(k), "1"))
				},
			}
		})
	})
	t.Run("undo", func(t *testing.T) {
		story{
			first: func(k *kit) {
				undo := k.gate("undo")
				begin(k)
				k.pass(time.Hour)
				<-undo.reached
				_ = k.endLife()
			},
			then: func(k *kit) {
				k.open(flow(k), child)
				h := find(k, flow(k), "1")
				ends(k, h)
				require.NotContains(k.t, k.info(h.Run()).Error, "journal")
			},
		}.run(t)
	})
}

// Rule: the error of a branch that nobody awaited fails the run, and its steps are undone. A branch
// that was awaited, lost a race, or was cancelled does not count. A crash changes nothing.
func (suite) ErrorThatNobodyAwaited(t *testing.T) {
	tired, stopped := errors.New("tired"), func(err error) error {
		var failed *workflow.StepError
		if err == nil || errors.As(err, &failed) {
			return nil
		}
		return err
	}
	for name, test := range map[string]struct {
		wait func(r *workflow.Run, b *workflow.Branch[string]) error
		want string
	}{
		"nobody":  {func(*workflow.Run, *workflow.Branch[string]) error { return nil }, `branch "b": step "b/s": tired`},
		"restart": {func(r *workflow.Run, _ *workflow.Branch[string]) error { return workflow.Restart(r, 1) }, `branch "b": step "b/s": tired`},
		"select of another": {func(r *workflow.Run, b *workflow.Branch[string]) error {
			quick := workflow.Go(r, "quick", func(*workflow.Run) (string, error) { return "", nil })
			if _, err := quick.Wait(r); err != nil {
				return err
			}
			_, err := workflow.Select(r, "next", quick.Case(nil), b.Case(nil))
			return err
		}, `branch "b": step "b/s": tired`},
		"wait": {func(r *workflow.Run, b *workflow.Branch[string]) error {
			_, err := b.Wait(r)
			return stopped(err)
		}, ""},
		"all": {func(r *workflow.Run, b *workflow.Branch[string]) error {
			_, err := workflow.All(r, b)
			return stopped(err)
		}, ""},
		"select": {func(r *workflow.Run, b *workflow.Branch[string]) error {
			_, err := workflow.Select(r, "next", b.Case(nil))
			return stopped(err)
		}, ""},
		"wait in a branch": {func(r *workflow.Run, b *workflow.Branch[string]) error {
			workflow.Go(r, "other", func(r *workflow.Run) (string, error) {
				_, err := b.Wait(r)
				return "", stopped(err)
			})
			return nil
		}, ""},
		"cancel": {func(r *workflow.Run, b *workflow.Branch[string]) error { return b.Cancel(r, "stop") }, ""},
		"lost": {func(r *workflow.Run, b *workflow.Branch[string]) error {
			quick := workflow.Go(r, "quick", func(*workflow.Run) (string, error) { return "", nil })
			if _, err := quick.Wait(r); err != nil {
				return err
			}
			_, _, err := workflow.Race(r, "first", quick, b)
			return err
		}, ""},
	} {
		for _, crash := range []bool{false, true} {
			sub(t, name+map[bool]string{true: "/crash"}[crash], func(t *testing.T, k *kit) {
				f := workflow.Define("f", func(r *workflow.Run, round int) (int, error) {
					if round > 0 {
						return 0, nil
					}
					r.Undo("undo", func(context.Context) error { k.effect(r); return nil })
					b := workflow.Go(r, "b", func(r *workflow.Run) (string, error) {
						return workflow.Step(r, "s", func(context.Context) (string, error) { return "", tired }, workflow.MaxRetries(0))
					})
					if err := workflow.Sleep(r, "night", time.Hour); err != nil {
						return 0, err
					}
					return 0, test.wait(r, b)
				})
				k.open(f)
				h := startAndSettle(k, f, "1", 0)
				if crash {
					k.crash()
				}
				_, err := outcome(k, find(k, f, "1"))
				if test.want == "" {
					require.NoError(t, err)
					require.Empty(t, k.effects())
					return
				}
				require.ErrorContains(t, err, test.want)
				require.ErrorIs(t, err, tired)
				require.Equal(t, []string{"_undo/undo"}, k.effects())
				require.Equal(t, workflow.Failed, k.info(h.Run()).Status)
			})
		}
	}
}

// Rule: the error of a branch that could not begin counts too.
func (suite) ErrorOfABranchThatNeverBegan(t *testing.T, k *kit) {
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		workflow.Go(r, "a/b", func(*workflow.Run) (int, error) { return 0, nil })
		return 0, nil
	})
	k.open(f)
	_, err := outcome(k, start(k, f, "1", 0))
	require.ErrorContains(t, err, `branch "a/b"`)
}
