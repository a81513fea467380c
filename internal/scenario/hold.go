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

// costs returns how many commits a run of each flow takes until it waits or has ended.
func costs(k *kit, flows ...*workflow.Flow[int, int]) (n []int) {
	k.t.Helper()
	var all []workflow.Definition
	for _, f := range flows {
		all = append(all, f)
	}
	k.open(all...)
	k.settle()
	for _, f := range flows {
		before := commits(k)
		startAndSettle(k, f, "1", 0)
		n = append(n, commits(k)-before)
	}
	return n
}

// inOrder is a flow of steps that do nothing, and of what comes behind them.
func inOrder(name string, steps int, behind func(r *workflow.Run) error) *workflow.Flow[int, int] {
	return workflow.Define(name, func(r *workflow.Run, _ int) (int, error) {
		for range steps {
			if _, err := workflow.Step(r, "s", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
		}
		return steps, behind(r)
	})
}

// Rule: the end of a step waits for the next write of its run. So n steps in a row take n-1 commits: one before each but
// the first. The commit of what comes next has the end of the last: the end of the run, a suspension, a published value, an
// item, a version, a child, the start of a step that begins at most once.
func (suite) StepsShareTheNextCommit(t *testing.T) {
	child := workflow.Define("child", func(*workflow.Run, int) (int, error) { return 1, nil })
	for name, behind := range map[string]func(r *workflow.Run) error{
		"end":     func(*workflow.Run) error { return nil },
		"failure": func(*workflow.Run) error { return errPlanned },
		"sleep":   func(r *workflow.Run) error { return workflow.Sleep(r, "night", time.Hour) },
		"wait":    func(r *workflow.Run) error { _, err := word.Wait(r, workflow.Forever); return err },
		"publish": func(r *workflow.Run) error { return workflow.Publish(r, "status", "done") },
		"append":  func(r *workflow.Run) error { return lines.Append(r, "done") },
		"version": func(r *workflow.Run) error { _, err := workflow.Version(r, "v", 1, 2); return err },
		"child":   func(r *workflow.Run) error { _, err := workflow.Call(r, "c", child, 0); return err },
		"step at most once": func(r *workflow.Run) error {
			_, err := workflow.Step(r, "once", func(context.Context) (int, error) { return 1, nil }, workflow.AtMostOnce())
			return err
		},
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			var flows []*workflow.Flow[int, int]
			for _, steps := range []int{0, 1, 5} {
				flows = append(flows, inOrder(fmt.Sprint(name, steps), steps, behind))
			}
			n := costs(k, flows...) // no worker has the child, which would end before or after its parent waits
			require.LessOrEqual(t, n[1], n[0], "one step")
			require.LessOrEqual(t, n[2], n[0]+4, "five steps")
		})
	}
}

// lingers is a flow with a gate between two steps.
func lingers(k *kit, opts ...workflow.StepOption) *workflow.Flow[int, int] {
	return workflow.Define("lingers", func(r *workflow.Run, _ int) (int, error) {
		_, err := workflow.Step(r, "first", func(context.Context) (int, error) {
			k.effect(r)
			return 1, nil
		}, opts...)
		if err != nil {
			return 0, err
		}
		k.at("between")
		return act(k, r, "second", 2)
	})
}

// Rule: a step that has ended does not stay out of the file for long, whatever the function does next. A crash before that
// runs it again under its key, and a crash behind it does not.
func (suite) StepIsStoredSoon(t *testing.T) {
	for _, linger := range []bool{false, true} {
		t.Run(fmt.Sprintf("linger=%v", linger), func(t *testing.T) {
			story{
				first: func(k *kit) {
					f, g := lingers(k), k.gate("between")
					k.open(f)
					h := start(k, f, "1", 0)
					<-g.reached
					k.settle()
					require.Empty(k.t, k.journal(h.Run()))
					if linger {
						k.linger()
						require.Equal(k.t, []string{"step first done: 1"}, k.journal(h.Run()))
					}
					_ = k.endLife()
				},
				then: func(k *kit) {
					f := lingers(k)
					k.open(f)
					returns(k, find(k, f, "1"), 2)
					if linger {
						require.Equal(k.t, []string{"first", "second"}, k.effects())
					} else {
						require.Equal(k.t, []string{"first", "first", "second"}, k.effects())
						k.sameKeys("first", 2)
					}
				},
			}.run(t)
		})
	}
}

// Rule: a step that begins at most once is stored as soon as it has ended, since a crash before that would fail it.
func (suite) AtMostOnceIsStoredAtOnce(t *testing.T) {
	story{
		first: func(k *kit) {
			f, g := lingers(k, workflow.AtMostOnce()), k.gate("between")
			k.open(f)
			start(k, f, "1", 0)
			<-g.reached
			_ = k.endLife()
		},
		then: func(k *kit) {
			f := lingers(k, workflow.AtMostOnce())
			k.open(f)
			returns(k, find(k, f, "1"), 2)
			require.Equal(k.t, []string{"first", "second"}, k.effects())
		},
	}.run(t)
}

// Rule: a worker that stops stores the steps that have ended, however soon its function returns.
func (suite) StopStoresWhatHasEnded(t *testing.T, k *kit) {
	f, g := lingers(k), k.gate("between")
	k.open(f)
	start(k, f, "1", 0)
	<-g.reached
	began := time.Now()
	k.stop()
	<-time.After(time.Millisecond) // the worker interrupts the run
	close(g.open)
	<-k.gone
	require.Less(t, time.Since(began), 5*time.Millisecond)
	k.close()
	k.again()
	returns(k, find(k, f, "1"), 2)
	require.Equal(t, []string{"first", "second"}, k.effects())
}

// Rule: the results that wait for a write are few: a large one is written at once.
func (suite) LargeResultIsStoredAtOnce(t *testing.T, k *kit) {
	f := workflow.Define("large", func(r *workflow.Run, _ int) (int, error) {
		_, err := workflow.Step(r, "s", func(context.Context) ([]byte, error) { return make([]byte, 100<<10), nil })
		k.at("between")
		return 0, err
	})
	g := k.gate("between")
	k.open(f)
	h := start(k, f, "1", 0)
	<-g.reached
	k.settle()
	require.Len(t, k.entries(h.Run()), 1)
	close(g.open)
	returns(k, h, 0)
}

// Rule: if another process cancelled a run, the commit in which the run then cancels its children also has the steps that ended
// before. They are undone after a crash behind it.
func (suite) CancelOfChildrenStoresWhatHasEnded(t *testing.T) {
	child := workflow.Define("child", func(r *workflow.Run, _ int) (string, error) { return word.Wait(r, workflow.Forever) })
	family := func(k *kit) *workflow.Flow[int, string] {
		return workflow.Define("family", func(r *workflow.Run, _ int) (string, error) {
			called := workflow.Go(r, "called", func(r *workflow.Run) (string, error) { return workflow.Call(r, "child", child, 0) })
			k.at("begun")
			if _, err := act(k, r, "pay", 1); err != nil {
				return "", err
			}
			r.Undo("refund", func(context.Context) error { k.effect(r); return nil })
			k.at("between")
			return called.Wait(r)
		})
	}
	story{
		first: func(k *kit) {
			f, begun, between := family(k), k.gate("begun"), k.gate("between")
			k.open(f, child)
			h := start(k, f, "1", 0)
			<-begun.reached
			k.settle() // the child waits
			close(begun.open)
			<-between.reached
			beside := workflow.Open(struct{ Queue }{k.q}, &workflow.Options{Codec: k.codec})
			require.NoError(k.t, beside.Cancel(k.t.Context(), h.Run(), "not needed"))
			require.NoError(k.t, k.e.Resume(k.t.Context(), h.Run())) // it notices
			commit := k.hold()
			close(between.open)
			commit.endLife(after)
		},
		then: func(k *kit) {
			f := family(k)
			k.open(f, child)
			k.settle()
			require.Equal(k.t, workflow.Cancelled, k.info(find(k, f, "1").Run()).Status)
			require.Equal(k.t, []string{"pay", "_undo/refund"}, k.effects())
		},
	}.run(t)
}

// refunds is a flow that pays, which its undo step refunds, and then comes to a gate.
func refunds(k *kit) *workflow.Flow[int, int] {
	return workflow.Define("refunds", func(r *workflow.Run, _ int) (int, error) {
		if _, err := act(k, r, "pay", 1); err != nil {
			return 0, err
		}
		r.Undo("refund", func(context.Context) error { k.effect(r); return nil })
		k.at("paid")
		return act(k, r, "deliver", 2)
	})
}

// cancels is how a run is cancelled that has just ended a step.
type cancels struct {
	opts   []workflow.StartOption
	run    func(k *kit, run pawl.ID)    // what cancels it; nil if its parent does
	parent func(k *kit, parent pawl.ID) // what happens to the parent before its function returns
}

// Rule: the commit that cancels a run has the steps that ended before, whoever cancels it, and also if the commit fails and its
// mutations run again. So after a crash behind that commit they are undone.
func (suite) CancelStoresWhatHasEnded(t *testing.T) {
	for name, how := range map[string]cancels{
		"operator": {run: func(k *kit, run pawl.ID) { go func() { _ = k.e.Cancel(context.Background(), run, "not needed") }() }},
		"deadline": {run: func(*kit, pawl.ID) { <-time.After(2 * time.Millisecond) },
			opts: []workflow.StartOption{workflow.Deadline(2 * time.Millisecond)}},
		"failed parent":     {parent: func(*kit, pawl.ID) {}},
		"cancelled parent":  {parent: func(k *kit, parent pawl.ID) { _ = k.e.Cancel(context.Background(), parent, "not needed") }},
		"terminated parent": {parent: func(k *kit, parent pawl.ID) { _ = k.e.Terminate(context.Background(), parent, "not needed") }},
	} {
		t.Run(name, func(t *testing.T) { how.storesWhatHasEnded(t, func(_ *kit, commit *group) { commit.endLife(after) }) })
		t.Run(name+", again", func(t *testing.T) {
			how.storesWhatHasEnded(t, func(k *kit, commit *group) {
				commit.undone()
				_ = k.endLife()
			})
		})
	}
}

func (c cancels) storesWhatHasEnded(t *testing.T, endLife func(k *kit, commit *group)) {
	parent := func(k *kit) *workflow.Flow[int, int] {
		return workflow.Define("parent", func(r *workflow.Run, _ int) (int, error) {
			workflow.Go(r, "called", func(r *workflow.Run) (int, error) { return workflow.Call(r, "child", refunds(k), 0) })
			k.at("called")
			return 0, errPlanned
		})
	}
	story{
		first: func(k *kit) {
			f, p, paid := refunds(k), parent(k), k.gate("paid")
			k.open(f, p)
			var commit *group
			if c.run != nil {
				h, err := f.Start(k.t.Context(), k.e, "1", 0, c.opts...)
				require.NoError(k.t, err)
				<-paid.reached
				commit = k.hold()
				c.run(k, h.Run())
			} else {
				called := k.gate("called")
				h := start(k, p, "1", 0)
				<-called.reached
				<-paid.reached
				c.parent(k, h.Run())
				commit = k.hold()
				close(called.open)
			}
			endLife(k, commit)
		},
		then: func(k *kit) {
			f, p := refunds(k), parent(k)
			k.open(f, p)
			k.settle()
			id := "1"
			if c.run == nil {
				id = "1/called/child"
			}
			require.Equal(k.t, workflow.Cancelled, k.info(find(k, f, id).Run()).Status)
			require.Equal(k.t, []string{"pay", "_undo/refund"}, k.effects())
		},
	}.run(t)
}
