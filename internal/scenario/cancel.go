package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// quits is a flow that cancels a branch after a last word, and then waits for it. It sleeps in
// between, so that the journal is read again.
func quits(k *kit, branch func(r *workflow.Run) (string, error)) *workflow.Flow[int, string] {
	return workflow.Define("quits", func(r *workflow.Run, _ int) (string, error) {
		b := workflow.Go(r, "b", branch)
		if _, err := last.Wait(r, workflow.Forever); err != nil {
			return "", err
		}
		k.at("stop")
		if err := b.Cancel(r, "stop"); err != nil {
			return "", err
		}
		if err := workflow.Sleep(r, "night", time.Hour); err != nil {
			return "", err
		}
		v, err := b.Wait(r)
		if errors.Is(err, workflow.ErrAbandoned) {
			v, err = "abandoned", nil
		}
		return v, err
	})
}

// Rule: a cancelled branch is interrupted wherever it is, makes no calls, and has no result. That
// is the same after a crash.
func (suite) CancelledBranchIsAbandoned(t *testing.T) {
	child := workflow.Define("child", func(r *workflow.Run, _ int) (string, error) { return word.Wait(r, workflow.Forever) })
	for name, lose := range map[string]func(r *workflow.Run) (string, error){
		"step": func(r *workflow.Run) (string, error) {
			return workflow.Step(r, "s", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		},
		"next attempt": func(r *workflow.Run) (string, error) {
			return workflow.Step(r, "s", func(context.Context) (string, error) { return "", pawl.RetryAfter(time.Hour, errPlanned) })
		},
		"sleep": func(r *workflow.Run) (string, error) { return "", workflow.Sleep(r, "s", time.Minute) },
		"wait":  func(r *workflow.Run) (string, error) { return word.Wait(r, workflow.Forever) },
		"child": func(r *workflow.Run) (string, error) { return workflow.Call(r, "c", child, 0) },
		"branch": func(r *workflow.Run) (string, error) {
			return workflow.Go(r, "below", func(r *workflow.Run) (string, error) { return word.Wait(r, workflow.Forever) }).Wait(r)
		},
		"select": func(r *workflow.Run) (string, error) {
			_, err := workflow.Select(r, "s", word.Case(nil), workflow.After(time.Minute))
			return "", err
		},
	} {
		for _, crash := range []bool{false, true} {
			sub(t, fmt.Sprintf("%s/crash=%v", name, crash), func(t *testing.T, k *kit) {
				f := quits(k, func(r *workflow.Run) (string, error) {
					v, err := lose(r)
					if err != nil {
						return "", err
					}
					return act(k, r, "after", v)
				})
				k.open(f, child)
				h := startAndSettle(k, f, "1", 0)
				require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "stop", ""))
				k.settle()
				require.Contains(t, strings.Join(k.journal(h.Run()), "\n"), "cancel stop done")
				if name == "child" {
					info := k.info(find(k, child, "1/b/c").Run())
					require.Equal(t, workflow.Cancelled, info.Status)
					require.Equal(t, "the branch that started it was cancelled", info.Error)
				}
				if crash {
					k.crash()
				}
				say(k, h.Run(), "too late", "")
				returns(k, find(k, f, "1"), "abandoned")
				require.Empty(t, k.effects())
				require.Equal(t, 1, k.info(h.Run()).Unread, "the branch receives nothing any more")
			})
		}
	}
}

// Rule: one commit cancels a branch, cancels its child, and gives back the signal that it has
// received and not used, all or nothing.
func (suite) CancelIsOneCommit(t *testing.T) {
	child := workflow.Define("child", func(r *workflow.Run, _ int) (string, error) { return last.Wait(r, workflow.Forever) })
	flow := func(k *kit) *workflow.Flow[int, string] {
		return quits(k, func(r *workflow.Run) (string, error) {
			calls := workflow.Go(r, "calls", func(r *workflow.Run) (string, error) { return workflow.Call(r, "c", child, 0) })
			if _, err := word.Wait(r, workflow.Forever); err != nil {
				return "", err
			}
			return calls.Wait(r)
		})
	}
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				k.open(flow(k), child)
				stop := k.gate("stop")
				h := start(k, flow(k), "1", 0)
				say(k, h.Run(), "hello", "")
				require.NoError(k.t, last.Send(k.t.Context(), k.e, h.Run(), "stop", ""))
				<-stop.reached
				g := k.hold()
				require.Empty(k.t, pending(k, h.Run()))
				close(stop.open)
				g.endLife(at)
			},
			then: func(k *kit) {
				k.slots = -1
				k.open(flow(k), child)
				h, c := find(k, flow(k), "1"), find(k, child, "1/b/calls/c")
				if at == before {
					require.Empty(k.t, pending(k, h.Run()))
					require.Empty(k.t, k.info(c.Run()).Cancelling)
				} else {
					require.Equal(k.t, []string{"hello"}, pending(k, h.Run()))
					require.Equal(k.t, "the branch that started it was cancelled", k.info(c.Run()).Cancelling)
				}
				require.NoError(k.t, k.e.Check(k.t.Context()))
				k.restartWithSlots(8)
				returns(k, find(k, flow(k), "1"), "abandoned")
				require.Equal(k.t, []string{"hello"}, pending(k, h.Run()))
				require.Equal(k.t, workflow.Cancelled, k.info(c.Run()).Status)
			},
		}
	})
}

// Rule: a branch that has ended keeps its result when it is cancelled, before a crash and after it.
func (suite) CancelAfterTheEnd(t *testing.T, k *kit) {
	f := quits(k, func(r *workflow.Run) (string, error) { return act(k, r, "s", "done") })
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "stop", ""))
	k.settle()
	k.crash()
	returns(k, find(k, f, "1"), "done")
	require.Equal(t, []string{"b/s"}, k.effects())
}

// Rule: a branch cancels a branch beside it or below it, and never itself or one around it.
func (suite) CancelOfItself(t *testing.T, k *kit) {
	var above, itself error
	f := workflow.Define("itself", func(r *workflow.Run, _ int) (string, error) {
		own := make(chan *workflow.Branch[string], 1)
		b := workflow.Go(r, "b", func(r *workflow.Run) (string, error) {
			self := <-own
			below := workflow.Go(r, "below", func(r *workflow.Run) (string, error) {
				above = self.Cancel(r, "above")
				return word.Wait(r, workflow.Forever)
			})
			if err := workflow.Sleep(r, "a moment", time.Hour); err != nil {
				return "", err
			}
			itself = self.Cancel(r, "itself")
			if err := below.Cancel(r, "below"); err != nil {
				return "", err
			}
			if _, err := below.Wait(r); !errors.Is(err, workflow.ErrAbandoned) {
				return "", fmt.Errorf("below: %w", err)
			}
			return act(k, r, "s", "here")
		})
		own <- b
		return b.Wait(r)
	})
	k.open(f)
	returns(k, start(k, f, "1", 0), "here")
	require.ErrorIs(t, above, workflow.ErrNested)
	require.ErrorIs(t, itself, workflow.ErrNested)
}

// Rule: code that cancels another branch than the journal says does not fit it.
func (suite) CancelOfAnotherBranch(t *testing.T, k *kit) {
	flow := func(cancelled int) *workflow.Flow[int, string] {
		return workflow.Define("two", func(r *workflow.Run, _ int) (string, error) {
			var all []*workflow.Branch[string]
			for _, name := range []string{"a", "b"} {
				all = append(all, workflow.Go(r, name, func(r *workflow.Run) (string, error) { return word.Wait(r, workflow.Forever) }))
			}
			if err := all[cancelled].Cancel(r, "stop"); err != nil {
				return "", err
			}
			return all[1-cancelled].Wait(r)
		})
	}
	k.open(flow(0))
	h := startAndSettle(k, flow(0), "1", 0)
	k.restart("2", flow(1))
	require.ErrorContains(t, k.e.Verify(t.Context(), h.Run()), `cancel "stop" of the branches ["a"]`)
	say(k, h.Run(), "hello", "")
	k.settle()
	info := k.info(h.Run())
	require.Equal(t, workflow.Blocked, info.Status)
	require.Contains(t, info.Error, `cancel "stop" of the branches ["b"]: keep its branches`)
	k.restart("3", flow(0))
	returns(k, find(k, flow(0), "1"), "hello")
}
