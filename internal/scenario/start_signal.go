package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// greet starts a run that listens, or sends it a word.
func greet(k *kit, f *workflow.Flow[int, []string], id string, n int, w, key string) *workflow.Handle[[]string] {
	k.t.Helper()
	h, err := f.Start(k.t.Context(), k.e, id, n, word.WithStart(w, key))
	require.NoError(k.t, err)
	return h
}

// Rule: a start with a signal starts the run if none has the ID, and otherwise sends the signal to the run
// that has it, whatever its input is. The run receives each signal once, in order, also after a crash. A
// run that has ended refuses a new signal, and is found by one that it knows.
func (suite) StartWithASignal(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	h := greet(k, f, "1", 3, "a", "key a")
	require.Equal(t, h.Run(), greet(k, f, "1", 9, "b", "key b").Run(), "it has another input, and the signal is for it")
	k.settle()
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
	k.crash()
	require.Equal(t, h.Run(), greet(k, f, "1", 3, "z", "key b").Run())
	k.settle()
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status, "it knows the key")
	greet(k, f, "1", 3, "c", "")
	returns(k, find(k, f, "1"), []string{"a", "b", "c"})

	_, err := f.Start(t.Context(), k.e, "1", 3, word.WithStart("late", ""))
	require.ErrorIs(t, err, workflow.ErrNotRunning)
	require.Equal(t, h.Run(), greet(k, f, "1", 3, "a", "key a").Run())
	require.Zero(t, k.info(h.Run()).Unread)
}

// Rule: of many starts with signals for one ID, one starts the run, and the run receives each signal.
func (suite) StartWithSignalsAtOnce(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	const n = 50
	runs, want := make([]pawl.ID, n), make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		want[i] = fmt.Sprint(i)
		all.Go(func() { runs[i] = greet(k, f, "1", n, want[i], want[i]).Run() })
	}
	all.Wait()
	require.Len(t, slices.Compact(runs), 1)
	got, err := outcome(k, find(k, f, "1"))
	require.NoError(t, err)
	require.ElementsMatch(t, want, got)
}

// Rule: a death in the commit of a start with a signal leaves both or neither.
func (suite) StartWithASignalIsWhole(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f := listen(k)
				k.open(f)
				g := k.hold()
				go func() { _, _ = f.Start(context.Background(), k.e, "1", 1, word.WithStart("a", "key")) }()
				g.endLife(at)
			},
			then: func(k *kit) {
				f := listen(k)
				k.slots = -1
				k.open(f)
				_, err := k.e.Find(k.t.Context(), "listen", "1")
				if at == before {
					require.ErrorIs(k.t, err, workflow.ErrNotFound)
				} else {
					require.NoError(k.t, err)
				}
				h := greet(k, f, "1", 1, "a", "key")
				require.Equal(k.t, 1, k.info(h.Run()).Unread)
				k.restartWithSlots(1)
				returns(k, find(k, f, "1"), []string{"a"})
			},
		}
	})
}

// Rule: in an app's transaction, a start with a signal follows the transaction. A run that is at work
// receives the signal right after the commit.
func (suite) StartWithASignalInATransaction(t *testing.T, k *kit) {
	f := k.busy()
	k.open(f)
	work, got := k.gate("at work"), k.gate("got it")
	h := start(k, f, "1", 0)
	<-work.reached
	k.settle() // the branch waits
	undone := errors.New("undone")
	for _, end := range []error{undone, nil} {
		require.ErrorIs(t, k.q.Update(t.Context(), func(tx Tx) error {
			found, err := workflow.StartTx(tx, k.e, f, "1", 0, word.WithStart(fmt.Sprint("hello ", end), "key"))
			require.NoError(t, err)
			require.Equal(t, h.Run(), found.Run())
			return end
		}), end)
	}
	<-got.reached
	close(got.open)
	close(work.open)
	returns(k, h, "hello <nil>")
	require.Zero(t, k.info(h.Run()).Unread)
}

// Rule: a step that starts a run with a signal, and that is repeated after a crash, sends the signal once.
func (suite) StartWithASignalFromARun(t *testing.T, k *kit) {
	other := listen(k)
	f := workflow.Define("starter", func(r *workflow.Run, key string) (pawl.ID, error) {
		return other.StartFrom(r, "1", 2, word.WithStart("a", key))
	})
	first := true
	k.around = []workflow.Middleware{func(next workflow.StepFunc) workflow.StepFunc {
		return func(ctx context.Context, s workflow.StepInfo) (any, error) {
			v, err := next(ctx, s)
			if first && s.Step == "start listen" {
				first = false
				k.refuse()
				return nil, errDead
			}
			return v, err
		}
	}}
	k.open(f, other)
	start(k, f, "1", "")
	k.over()
	k.again()
	h := find(k, f, "1")
	returns(k, h, find(k, other, "1").Run())
	k.settle()
	require.Equal(t, workflow.Waiting, k.info(find(k, other, "1").Run()).Status, "it waits for the second word")
	k.pass(time.Hour)
	returns(k, find(k, other, "1"), []string{"a", "nothing"})

	_, err := outcome(k, start(k, f, "2", "another key"))
	require.ErrorIs(t, err, workflow.ErrNotRunning)
}

// Rule: a signal that the run could not receive is refused with the start, and nothing starts.
func (suite) StartWithABadSignal(t *testing.T, k *kit) {
	f := workflow.Define("picky", func(r *workflow.Run, _ int) (string, error) { return word.Wait(r, workflow.Forever) }, workflow.Receives(word))
	k.open(f)
	for reason, opts := range map[string][]workflow.StartOption{
		"two signals": {word.WithStart("a", ""), word.WithStart("b", "")},
		"NUL, / or #": {workflow.DefineSignal[int]("a/b").WithStart(1, "")},
		"at most":     {word.WithStart(string(make([]byte, workflow.MaxValue)), "")},
		"takes word":  {last.WithStart("a", "")},
	} {
		_, err := f.Start(t.Context(), k.e, "1", 0, opts...)
		require.ErrorContains(t, err, reason)
		_, err = f.Handle(t.Context(), k.e, "1")
		require.ErrorIs(t, err, workflow.ErrNotFound)
	}
	h := start(k, f, "1", 0)
	_, err := f.Start(t.Context(), k.e, "1", 0, last.WithStart("a", ""))
	require.ErrorIs(t, err, workflow.ErrUndeclared)
	_, err = f.Start(t.Context(), k.e, "1", 0, word.WithStart("a", ""))
	require.NoError(t, err)
	returns(k, h, "a")
}
