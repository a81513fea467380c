package scenario

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// returnsGoods is a flow that fails or is cancelled, and then makes calls of every sort to undo its steps.
func returnsGoods(k *kit) (order *workflow.Flow[int, int], credit *workflow.Flow[int, int]) {
	credit = workflow.Define("credit", func(r *workflow.Run, n int) (int, error) {
		if err := workflow.Sleep(r, "bank", time.Hour); err != nil {
			return 0, err
		}
		return act(k, r, "credit", n)
	})
	order = workflow.Define("order", func(r *workflow.Run, _ int) (int, error) {
		if _, err := act(k, r, "pack", 1); err != nil {
			return 0, err
		}
		r.Undo("unpack", func(context.Context) error { k.effect(r); return nil })
		if _, err := act(k, r, "send", 1); err != nil {
			return 0, err
		}
		r.UndoWith("take back", func(r *workflow.Run) error {
			both := workflow.Go(r, "side", func(r *workflow.Run) (int, error) {
				if err := workflow.Sleep(r, "shelf", 80*time.Minute); err != nil {
					return 0, err
				}
				return act(k, r, "shelve", 1)
			})
			if _, err := act(k, r, "label", 1); err != nil {
				return err
			}
			if err := workflow.Sleep(r, "parcel", time.Hour); err != nil {
				return err
			}
			if _, err := word.Wait(r, workflow.Forever); err != nil {
				return err
			}
			if _, err := workflow.Call(r, "credit", credit, 7); err != nil { // side ends meanwhile, and its run looks around
				return err
			}
			_, err := both.Wait(r)
			return err
		})
		if _, err := last.Wait(r, workflow.Forever); err != nil {
			return 0, err
		}
		return 0, errors.New("refused")
	})
	return order, credit
}

// carriable requires that an import accepts the rows of a run.
func (k *kit) carriable(run pawl.ID) {
	k.t.Helper()
	rows, err := k.e.Rows(k.t.Context(), run, "")
	require.NoError(k.t, err)
	var c workflow.RowsCheck
	_, err = c.Add(&rows)
	require.NoError(k.t, err)
	require.NoError(k.t, k.e.Check(k.t.Context()))
}

// Rule: an undo step that makes calls makes each once, in its turn, for a run that failed and for one
// that is cancelled before or while it undoes, whatever crashes.
func (suite) UndoWithCalls(t *testing.T) {
	for _, cancel := range []string{"never", "before", "meanwhile"} {
		for crash := range 5 {
			sub(t, fmt.Sprintf("cancel=%s/crash=%d", cancel, crash), func(t *testing.T, k *kit) {
				order, credit := returnsGoods(k)
				k.open(order, credit)
				h := startAndSettle(k, order, "1", 0)
				ask := func() { require.NoError(t, k.e.Cancel(t.Context(), h.Run(), "asked for")) }
				if cancel == "before" {
					ask()
				} else {
					require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "no", ""))
				}
				k.settle()
				for i, next := range []func(){
					func() {}, func() { k.pass(time.Hour) }, func() { say(k, h.Run(), "arrived", "") }, func() { k.pass(30 * time.Minute) },
				} {
					next()
					k.settle()
					k.carriable(h.Run())
					if i == 1 && cancel == "meanwhile" {
						ask()
						k.settle()
					}
					if i == crash || crash == 4 {
						k.crash()
						k.settle()
						require.NoError(t, k.e.Verify(t.Context(), h.Run()))
					}
				}
				_, err := outcome(k, find(k, order, "1"))
				require.Error(t, err)
				want, info := workflow.Failed, k.info(h.Run())
				if cancel == "before" {
					want = workflow.Cancelled
				}
				require.Equal(t, want, info.Status)
				require.NotContains(t, info.Error, "not all was undone")
				require.Equal(t, []string{"pack", "send", "_undo/take back/label", "_undo/take back/side/shelve", "credit", "_undo/unpack"}, k.effects())
				require.Equal(t, workflow.Done, k.info(find(k, credit, "1/_undo/take back/credit").Run()).Status)
				k.carriable(h.Run())
				_, err = k.e.Fork(t.Context(), h.Run(), "_undo/take back/label", "2")
				require.ErrorContains(t, err, `but pack, send, last`)
				require.NotContains(t, err.Error(), "label,")
			})
		}
	}
}

// failingTo is a flow that fails, and whose undo step makes the given calls.
func failingTo(k *kit, undo func(r *workflow.Run) error) *workflow.Flow[int, string] {
	return plan(func(r *workflow.Run) (string, error) {
		r.Undo("first", func(context.Context) error { k.effect(r); return nil })
		r.UndoWith("back", undo)
		return "", errors.New("broken")
	})
}

// Rule: an undo step that makes calls fails for good when its function returns an error, or a branch whose
// end nobody has learned of did. Its open branches are cancelled then. The other undo steps run all the same.
func (suite) UndoWithFails(t *testing.T) {
	side := func(k *kit, r *workflow.Run, err error) *workflow.Branch[int] {
		return workflow.Go(r, "side", func(r *workflow.Run) (int, error) {
			if err := workflow.Sleep(r, "long", time.Hour); err != nil {
				return 0, err
			}
			_, _ = act(k, r, "late", 1)
			return 0, err
		})
	}
	for name, c := range map[string]struct {
		undo    func(k *kit, r *workflow.Run) error
		why     string
		effects []string
	}{
		"returns an error": {func(k *kit, r *workflow.Run) error {
			side(k, r, nil)
			if _, err := act(k, r, "try", 1); err != nil {
				return err
			}
			if err := workflow.Sleep(r, "short", time.Minute); err != nil {
				return err
			}
			return errors.New("no way back")
		}, "no way back", []string{"_undo/back/try", "_undo/first"}},
		"of a branch": {func(k *kit, r *workflow.Run) error {
			side(k, r, errors.New("unseen"))
			return workflow.Sleep(r, "short", time.Minute)
		}, `branch "_undo/back/side": unseen`, []string{"_undo/back/side/late", "_undo/first"}},
		"of Restart": {func(_ *kit, r *workflow.Run) error {
			return workflow.Restart(r, 7)
		}, "begins anew", []string{"_undo/first"}},
	} {
		for _, crash := range []bool{false, true} {
			sub(t, fmt.Sprintf("%s/crash=%v", name, crash), func(t *testing.T, k *kit) {
				f := failingTo(k, func(r *workflow.Run) error { return c.undo(k, r) })
				k.open(f)
				h := startAndSettle(k, f, "1", 0)
				if crash {
					k.crash()
					k.pass(time.Minute)
					k.crash()
				}
				_, err := outcome(k, find(k, f, "1"))
				require.ErrorContains(t, err, "broken; and not all was undone")
				require.ErrorContains(t, err, c.why)
				require.Equal(t, workflow.Failed, k.info(h.Run()).Status)
				require.Equal(t, c.effects, k.effects())
			})
		}
	}
}

// Rule: the calls of an undo step fit the journal, or block the run: for a run that failed and for a
// cancelled one. New calls wait until all its branches have come as far as the journal.
func (suite) UndoWithChangedCode(t *testing.T) {
	type undo = func(k *kit, r *workflow.Run) error // nil for one of Undo
	nap := func(r *workflow.Run, name string) error { return workflow.Sleep(r, name, time.Hour) }
	branch := func(k *kit, r *workflow.Run, name string, steps ...string) *workflow.Branch[int] {
		return workflow.Go(r, name, func(r *workflow.Run) (int, error) {
			for _, step := range steps {
				if _, err := act(k, r, step, 1); err != nil {
					return 0, err
				}
			}
			return 0, nap(r, "nap")
		})
	}
	old := func(k *kit, r *workflow.Run) error {
		if _, err := act(k, r, "a", 1); err != nil {
			return err
		}
		one := branch(k, r, "one", "b")
		two := workflow.Go(r, "two", one.Wait)
		_, err := workflow.All(r, one, two)
		return err
	}
	for name, c := range map[string]struct {
		new undo
		why string
	}{
		"same":    {old, ""},
		"renamed": {func(k *kit, r *workflow.Run) error { _, err := act(k, r, "z", 1); return err }, `the journal has step "_undo/back/a"`},
		"without the branches": {func(k *kit, r *workflow.Run) error {
			_, err := act(k, r, "a", 1)
			return err
		}, `the journal has branch "_undo/back/one"`},
		"moved to the branch before": {func(k *kit, r *workflow.Run) error {
			if _, err := act(k, r, "a", 1); err != nil {
				return err
			}
			one := workflow.Go(r, "one", func(r *workflow.Run) (int, error) {
				time.Sleep(time.Second) // the other branch could make its call meanwhile
				return 0, nap(r, "nap")
			})
			two := workflow.Go(r, "two", func(r *workflow.Run) (int, error) {
				if _, err := act(k, r, "b", 1); err != nil {
					return 0, err
				}
				return one.Wait(r)
			})
			_, err := workflow.All(r, one, two)
			return err
		}, `the journal has step "_undo/back/one/b"`},
		"a Version": {func(k *kit, r *workflow.Run) error {
			if _, err := act(k, r, "a", 1); err != nil {
				return err
			}
			v, err := workflow.Version(r, "v", 1, 2)
			if v != 1 || err != nil {
				return fmt.Errorf("%d: %w", v, err)
			}
			one := branch(k, r, "one", "b")
			two := workflow.Go(r, "two", one.Wait)
			_, err = workflow.All(r, one, two)
			return err
		}, ""},
		"without calls": {nil, `with calls of its own`},
		"an undo step": {func(_ *kit, r *workflow.Run) error {
			r.Undo("more", func(context.Context) error { return nil })
			return nil
		}, `an undo step named the undo step "more"`},
	} {
		for _, cancel := range []bool{false, true} {
			sub(t, fmt.Sprintf("%s/cancel=%v", name, cancel), func(t *testing.T, k *kit) {
				flow := func(u undo) *workflow.Flow[int, string] {
					return plan(func(r *workflow.Run) (string, error) {
						if u == nil {
							r.Undo("back", func(context.Context) error { k.effect(r); return nil })
						} else {
							r.UndoWith("back", func(r *workflow.Run) error { return u(k, r) })
						}
						if cancel {
							return word.Wait(r, workflow.Forever)
						}
						return "", errors.New("broken")
					})
				}
				k.open(flow(old))
				h := startAndSettle(k, flow(old), "1", 0)
				if cancel {
					require.NoError(t, h.Cancel(t.Context(), "enough"))
					k.settle()
				}
				before := k.effects()
				require.ElementsMatch(t, []string{"_undo/back/a", "_undo/back/one/b"}, before)
				k.restart("2", flow(c.new))
				h = find(k, flow(c.new), "1")
				require.NoError(t, k.e.Resume(t.Context(), h.Run()))
				k.pass(2 * time.Second)
				if c.why != "" {
					require.Error(t, k.e.Verify(t.Context(), h.Run()))
					require.Equal(t, workflow.Blocked, k.info(h.Run()).Status)
					require.Contains(t, k.info(h.Run()).Error, c.why)
				} else {
					_, err := outcome(k, h)
					require.Error(t, err)
					require.NotContains(t, err.Error(), "not all was undone")
				}
				require.Equal(t, before, k.effects())
			})
		}
	}
}
