package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// match is a flow in which a branch that calls a child races with a branch that waits for
// nothing. The flow continues when the race is decided. The child runs until it is cancelled.
func match(k *kit) (parent *workflow.Flow[int, string], child *workflow.Flow[int, int]) {
	child = workflow.Define("child", func(r *workflow.Run, _ int) (int, error) {
		return workflow.Step(r, "long", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
	})
	parent = workflow.Define("match", func(r *workflow.Run, _ int) (string, error) {
		loser := workflow.Go(r, "loser", func(r *workflow.Run) (int, error) {
			k.at("loser")
			return workflow.Call(r, "c", child, 0)
		})
		winner := workflow.Go(r, "winner", func(*workflow.Run) (int, error) {
			k.at("winner")
			return 1, nil
		})
		if _, _, err := workflow.Race(r, "first", winner, loser); err != nil {
			return "", err
		}
		received, err := word.Wait(r, workflow.Forever)
		if err != nil {
			return "", err
		}
		if _, err := loser.Wait(r); !errors.Is(err, workflow.ErrAbandoned) {
			return "", fmt.Errorf("the loser: %w", err)
		}
		return received, workflow.Sleep(r, "night", time.Hour) // so that the journal is read again
	})
	return parent, child
}

// goesOn requires that the run of a match is open after its race, and ends correctly.
func goesOn(k *kit, h *workflow.Handle[string]) {
	k.t.Helper()
	k.settle()
	require.Contains(k.t, k.journal(h.Run()), "wait word pending")
	require.Equal(k.t, workflow.Waiting, k.info(h.Run()).Status)
	say(k, h.Run(), "over", "")
	returns(k, h, "over")
	require.NoError(k.t, k.e.Check(k.t.Context()))
}

// Rule: the commit that decides a race asks the children of the losers to end, together with
// the decision or not at all. They end before their parent.
func (suite) Scenario34ChildOfALoserIsCancelled(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f, child := match(k)
				winner := k.gate("winner")
				k.open(f, child)
				start(k, f, "1", 0)
				g := k.hold() // the child is running
				close(winner.open)
				k.settle()
				g.endLife(at)
			},
			then: func(k *kit) {
				f, child := match(k)
				k.slots = -1
				k.open(f, child)
				h, c := find(k, f, "1"), find(k, child, "1/loser/c")
				decided := at == after
				require.Equal(k.t, decided, strings.Contains(fmt.Sprint(k.journal(h.Run())), "race first done"), "%v", k.journal(h.Run()))
				require.Equal(k.t, decided, k.info(c.Run()).Cancelling != "")
				if !decided {
					require.NoError(k.t, k.e.Terminate(k.t.Context(), c.Run(), "the loser is not to win now"))
					return
				}
				k.restartWithSlots(8)
				k.settle()
				require.Equal(k.t, workflow.Cancelled, k.info(c.Run()).Status)
				goesOn(k, find(k, f, "1"))
			},
		}
	})
}

// Rule: it is also cancelled if nothing dies, at once, while it is running.
func (suite) Scenario34ChildOfALoserEndsAtOnce(t *testing.T, k *kit) {
	f, child := match(k)
	winner := k.gate("winner")
	k.open(f, child)
	h := startAndSettle(k, f, "1", 0)
	close(winner.open)
	k.settle()
	info := k.info(find(k, child, "1/loser/c").Run())
	require.Equal(t, workflow.Cancelled, info.Status)
	require.Equal(t, "the branch that started it has lost a race", info.Error)
	goesOn(k, h)
}

// Rule: a loser that is about to start a child starts none, even if its commit fails and each
// call in the commit is retried.
func (suite) Scenario34LoserBeforeItsChild(t *testing.T) {
	for name, commit := range map[string]func(*group){"commit": (*group).commit, "undone": (*group).undone} {
		sub(t, name, func(t *testing.T, k *kit) {
			f, child := match(k)
			loser, winner := k.gate("loser"), k.gate("winner")
			k.open(f, child)
			start(k, f, "1", 0)
			<-loser.reached
			<-winner.reached
			g := k.hold()
			close(loser.open)
			k.settle() // it waits for the queue
			close(winner.open)
			k.settle()
			commit(g)
			_, err := child.Handle(t.Context(), k.e, "1/loser/c")
			require.ErrorIs(t, err, workflow.ErrNotFound)
			k.crash()
			goesOn(k, find(k, f, "1"))
		})
	}
}

// Rule: if an entry was never written because its branch had lost, another call gets its number
// after a crash, and keeps its result.
func (suite) Scenario34NumberOfAChildThatNeverWas(t *testing.T) {
	story{
		first: func(k *kit) {
			f, child := match(k)
			loser, winner := k.gate("loser"), k.gate("winner")
			k.open(f, child)
			start(k, f, "1", 0)
			<-loser.reached
			<-winner.reached
			g := k.hold()
			close(loser.open)
			k.settle()
			close(winner.open)
			k.settle()
			g.endLife(after)
		},
		then: func(k *kit) {
			f, child := match(k)
			k.open(f, child)
			goesOn(k, find(k, f, "1"))
		},
	}.run(t)
}

// Rule: a child that is in the file when the race is decided is cancelled, even if the loser
// that starts it does not know that yet.
func (suite) Scenario34LoserWhileItStartsItsChild(t *testing.T, k *kit) {
	f, child := match(k)
	loser, winner := k.gate("loser"), k.gate("winner")
	k.open(f, child)
	h := start(k, f, "1", 0)
	<-loser.reached
	<-winner.reached
	g := k.hold()
	close(loser.open)
	k.settle()
	rest := make(chan struct{})
	answer := g.last(func(driver.Writer) error { // the rows of the child are written
		<-rest
		return nil
	})
	g.commit()
	close(winner.open)
	k.settle() // the decision waits for the queue
	close(rest)
	require.NoError(t, <-answer)
	k.settle()
	require.Equal(t, workflow.Cancelled, k.info(find(k, child, "1/loser/c").Run()).Status)
	goesOn(k, h)
}

// within calls fn in a branch of a branch, and so on, each with a name of the maximum length.
func within[T any](r *workflow.Run, depth int, fn func(r *workflow.Run) (T, error)) (T, error) {
	if depth == 0 {
		return fn(r)
	}
	return workflow.Go(r, strings.Repeat("b", workflow.MaxName), func(r *workflow.Run) (T, error) {
		return within(r, depth-1, fn)
	}).Wait(r)
}

// Rule: a race whose result is too large to store returns an error, and nobody has lost it: its
// branches continue.
func (suite) RaceThatIsTooLargeToBeDecided(t *testing.T, k *kit) {
	var raced error
	f := workflow.Define("race", func(r *workflow.Run, _ int) (string, error) {
		return within(r, 5, func(r *workflow.Run) (string, error) {
			branches := []*workflow.Branch[string]{workflow.Go(r, "listens", func(r *workflow.Run) (string, error) {
				return word.Wait(r, workflow.Forever)
			})}
			for range 980 {
				branches = append(branches, workflow.Go(r, "b", func(*workflow.Run) (string, error) { return "", nil }))
			}
			if _, _, raced = workflow.Race(r, "first", branches...); raced == nil {
				return "", nil
			}
			return branches[0].Wait(r)
		})
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	require.ErrorIs(t, raced, workflow.ErrTooLarge)
	say(k, h.Run(), "heard", "")
	returns(k, h, "heard")
}
