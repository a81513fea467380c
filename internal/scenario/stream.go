package scenario

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

var lines = workflow.DefineStream[string]("lines")

// linesOf returns the values of the items of a run, and requires that none is missing.
func linesOf(k *kit, run pawl.ID) (all []string) {
	k.t.Helper()
	for item, err := range lines.Read(k.t.Context(), k.e, run, 0) {
		require.NoError(k.t, err)
		require.EqualValues(k.t, len(all)+1, item.N)
		require.Zero(k.t, item.Skipped)
		all = append(all, item.Value)
	}
	return all
}

// tale is a flow whose function and branch append to one stream, a day apart, in two rounds.
func tale() *workflow.Flow[int, int] {
	return workflow.Define("tale", func(r *workflow.Run, round int) (int, error) {
		say := func(r *workflow.Run, text string) error { return lines.Append(r, fmt.Sprint(text, " ", round)) }
		if err := say(r, "begun"); err != nil {
			return 0, err
		}
		side := workflow.Go(r, "side", func(r *workflow.Run) (int, error) {
			for range 2 {
				if err := workflow.Sleep(r, "work", 24*time.Hour); err != nil {
					return 0, err
				}
				if err := say(r, "side"); err != nil {
					return 0, err
				}
			}
			return 0, workflow.Sleep(r, "rest", 24*time.Hour)
		})
		if err := say(r, "begun"); err != nil {
			return 0, err
		}
		if _, err := side.Wait(r); err != nil {
			return 0, err
		}
		if err := say(r, "ended"); err != nil {
			return 0, err
		}
		if err := workflow.Sleep(r, "rest", 24*time.Hour); err != nil {
			return 0, err
		}
		if round == 0 {
			return 0, workflow.Restart(r, 1)
		}
		return 0, nil
	})
}

// Rule: what a run appends between its calls is in its stream once, in the order of its calls, after each wake, each
// crash, and a restart. To append it again costs no commit.
func (suite) StreamHasEachItemOnce(t *testing.T, k *kit) {
	k.open(tale())
	h := startAndSettle(k, tale(), "1", 0)
	var want []string
	for round := range 2 {
		for i, text := range []string{"begun", "side", "side", "ended"} {
			if want = append(want, fmt.Sprint(text, " ", round)); i == 0 {
				want = append(want, fmt.Sprint(text, " ", round))
			}
			require.Equal(t, want, linesOf(k, h.Run()))
			k.crash()
			k.settle()
			require.Equal(t, want, linesOf(k, h.Run()))
			require.NoError(t, k.e.Check(t.Context()))
			if i == 1 {
				before := commits(k)
				require.NoError(t, k.e.Resume(t.Context(), h.Run())) // a commit
				k.settle()
				require.LessOrEqual(t, commits(k), before+2, "it is leased, and suspended again")
			}
			k.pass(24 * time.Hour)
		}
	}
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	require.Equal(t, want, linesOf(k, h.Run()))
}

// Rule: a watcher gets each item once, in order, and its end when the run has ended. One that comes back continues
// behind what it has seen, also after the end.
func (suite) StreamIsWatched(t *testing.T, k *kit) {
	f := workflow.Define("counts", func(r *workflow.Run, n int) (int, error) {
		for i := range n {
			if err := workflow.Sleep(r, "work", time.Hour); err != nil {
				return 0, err
			}
			if err := lines.Append(r, fmt.Sprint(i+1)); err != nil {
				return 0, err
			}
		}
		return 0, workflow.Sleep(r, "work", time.Hour)
	})
	k.open(f)
	h := start(k, f, "1", 3)
	next, stop := iter.Pull2(lines.Watch(t.Context(), k.e, h.Run(), 0))
	defer stop()
	for want := 1; want <= 3; want++ {
		item, err, more := next()
		require.True(t, more)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(want), item.Value)
		require.EqualValues(t, want, item.N)
		require.Empty(t, item.Step)
		require.WithinDuration(t, k.now(), item.At, time.Minute)
		var later []string
		for item, err := range lines.Read(t.Context(), k.e, h.Run(), item.N+1) {
			require.NoError(t, err)
			later = append(later, item.Value)
		}
		require.Empty(t, later, "it is the last one")
	}
	_, _, more := next()
	require.False(t, more)
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	var seen []string
	for item, err := range lines.Watch(t.Context(), k.e, h.Run(), 2) {
		require.NoError(t, err)
		seen = append(seen, item.Value)
	}
	require.Equal(t, []string{"2", "3"}, seen)
}

// Rule: a reader learns why it gets nothing more: there is no such run, the name or the type is wrong, its context has
// ended, or the queue is closed. It may stop at any time.
func (suite) StreamIsNotRead(t *testing.T, k *kit) {
	f := workflow.Define("one", func(r *workflow.Run, _ int) (int, error) {
		if err := lines.Append(r, "a"); err != nil {
			return 0, err
		}
		_, err := word.Wait(r, workflow.Forever)
		return 0, err
	})
	k.open(f)
	h := startAndSettle(k, f, "1", 0)
	first := func(items iter.Seq2[workflow.Item[string], error]) error {
		for _, err := range items {
			return err
		}
		return nil
	}
	require.NoError(t, first(lines.Watch(t.Context(), k.e, h.Run(), 0)))
	require.ErrorIs(t, first(lines.Watch(t.Context(), k.e, pawl.ID{1}, 0)), workflow.ErrNotFound)
	require.ErrorIs(t, first(lines.Read(t.Context(), k.e, pawl.ID{1}, 0)), workflow.ErrNotFound)
	require.ErrorIs(t, first(workflow.DefineStream[string]("a/b").Read(t.Context(), k.e, h.Run(), 0)), pawl.ErrInvalid)
	require.NoError(t, first(workflow.DefineStream[string]("none").Read(t.Context(), k.e, h.Run(), 0)))
	for _, err := range workflow.DefineStream[int]("lines").Read(t.Context(), k.e, h.Run(), 0) {
		require.ErrorContains(t, err, `stream "lines": item 1: `)
	}
	_, err := k.e.Items(t.Context(), h.Run(), "lines", 0, 0)
	require.ErrorIs(t, err, pawl.ErrInvalid)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, first(lines.Watch(ctx, k.e, h.Run(), 2)), context.Canceled)
	ended := make(chan error, 1)
	go func() { ended <- first(lines.Watch(t.Context(), k.e, h.Run(), 2)) }()
	k.settle()
	k.close()
	require.ErrorIs(t, <-ended, pawl.ErrClosed)
}

// Rule: the item and its count are one commit, so a run whose append is lost, or whose answer is lost, appends it once.
func (suite) AppendLostInItsCommit(t *testing.T) {
	flow := func(k *kit) *workflow.Flow[int, int] {
		return workflow.Define("appends", func(r *workflow.Run, _ int) (int, error) {
			for _, text := range []string{"a", "b"} {
				k.at("before " + text)
				if err := lines.Append(r, text); err != nil {
					return 0, err
				}
			}
			if _, err := word.Wait(r, workflow.Forever); err != nil {
				return 0, err
			}
			return 0, lines.Append(r, "c")
		})
	}
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f, g := flow(k), k.gate("before b")
				k.open(f)
				go func() { _, _ = f.Start(context.Background(), k.e, "1", 0) }()
				<-g.reached
				commit := k.hold()
				close(g.open)
				commit.endLife(at)
			},
			then: func(k *kit) {
				k.slots = -1
				f := flow(k)
				k.open(f)
				h, want := find(k, f, "1"), []string{"a"}
				if at == after {
					want = append(want, "b")
				}
				require.Equal(k.t, want, linesOf(k, h.Run()))
				require.NoError(k.t, k.e.Check(k.t.Context()))
				k.close()
				k.slots = 1
				k.again()
				say(k, h.Run(), "go", "")
				returns(k, find(k, f, "1"), 0)
				require.Equal(k.t, []string{"a", "b", "c"}, linesOf(k, h.Run()))
			},
		}
	})
}

// reads is a flow with a step that appends two items at each attempt, the second of which succeeds.
func reads(k *kit, kills bool) *workflow.Flow[int, int] {
	return workflow.Define("reads", func(r *workflow.Run, _ int) (int, error) {
		return workflow.Step(r, "read", func(context.Context) (int, error) {
			for i := range 2 {
				if err := lines.Append(r, fmt.Sprint("part ", i)); err != nil {
					return 0, err
				}
			}
			if kills {
				return 0, k.endLife()
			}
			if k.called("read") == 1 {
				return 0, errors.New("broken")
			}
			return 7, nil
		}, workflow.Backoff(pawl.Fixed(time.Hour)))
	})
}

// Rule: a step appends at once, at each attempt: one that fails, or that a crash interrupts, leaves its items. They say
// which attempt of which step appended them.
func (suite) StepAppendsAtEachAttempt(t *testing.T) {
	story{
		first: func(k *kit) {
			f := reads(k, true)
			k.open(f)
			go func() { _, _ = f.Start(context.Background(), k.e, "1", 0) }()
			k.awaitDeath()
		},
		then: func(k *kit) {
			f := reads(k, false)
			k.open(f)
			h := find(k, f, "1")
			returns(k, h, 7)
			var attempts []uint64
			for item, err := range lines.Read(k.t.Context(), k.e, h.Run(), 0) {
				require.NoError(k.t, err)
				require.Equal(k.t, fmt.Sprint("part ", (item.N-1)%2), item.Value)
				require.Equal(k.t, "read", item.Step)
				attempts = append(attempts, item.Attempt)
			}
			require.Equal(k.t, []uint64{1, 1, 3, 3, 5, 5}, attempts)
			require.NoError(k.t, k.e.Check(k.t.Context()))
		},
	}.run(t)
}

// Rule: the functions of steps and of undo steps append, also concurrently, and that of a step in a transaction does
// not. What is between the calls of an undo counts as that of a function.
func (suite) StepsAppend(t *testing.T, k *kit) {
	var refused, decides error
	f := workflow.Define("many", func(r *workflow.Run, n int) (int, error) {
		r.Undo("plain", func(context.Context) error { return lines.Append(r, "undone") })
		r.UndoWith("calls", func(r *workflow.Run) error {
			if err := lines.Append(r, "undo begins"); err != nil {
				return err
			}
			if err := workflow.Sleep(r, "pause", time.Hour); err != nil {
				return err
			}
			return lines.Append(r, "undo ends")
		})
		_, err := workflow.Step(r, "work", func(context.Context) (int, error) {
			var all sync.WaitGroup
			errs := make([]error, n)
			for i := range n {
				all.Go(func() { errs[i] = lines.Append(r, "work") })
			}
			all.Wait()
			return 0, errors.Join(errs...)
		})
		if err != nil {
			return 0, err
		}
		_, err = workflow.StepTx(r, "tx", func(Tx) (int, error) {
			refused = lines.Append(r, "never")
			return 0, nil
		})
		if err != nil {
			return 0, err
		}
		if _, err := workflow.Decide(r, "decided", func() int { decides = lines.Append(r, "never"); return 0 }); err != nil {
			return 0, err
		}
		return 0, errors.New("broken")
	})
	k.open(f)
	const times = 5
	h := start(k, f, "1", times)
	_, err := outcome(k, h)
	require.ErrorContains(t, err, "broken")
	require.ErrorIs(t, refused, workflow.ErrNested)
	require.ErrorIs(t, decides, workflow.ErrNested)
	var all []string
	for item, err := range lines.Read(t.Context(), k.e, h.Run(), 0) {
		require.NoError(t, err)
		all = append(all, fmt.Sprintf("%s by %q", item.Value, item.Step))
		if item.Step == "work" {
			require.EqualValues(t, 1, item.Attempt)
		}
	}
	require.Equal(t, append(strings.Split(strings.Repeat("work by \"work\";", times), ";")[:times],
		`undo begins by ""`, `undo ends by ""`, `undone by "_undo/plain"`), all)
}
