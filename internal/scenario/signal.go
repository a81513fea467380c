package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

var (
	word = workflow.DefineSignal[string]("word")
	last = workflow.DefineSignal[string]("last")
)

// listen is a flow that receives n words, each within an hour, and returns them.
func listen(k *kit) *workflow.Flow[int, []string] {
	return workflow.Define("listen", func(r *workflow.Run, n int) (words []string, err error) {
		for range n {
			k.at("before a word")
			w, err := word.Wait(r, time.Hour)
			switch {
			case errors.Is(err, workflow.ErrTimeout):
				w = "nothing"
			case err != nil:
				return nil, err
			}
			words = append(words, w)
		}
		return words, nil
	})
}

func say(k *kit, run pawl.ID, w, key string) {
	k.t.Helper()
	require.NoError(k.t, word.Send(k.t.Context(), k.e, run, w, key))
}

// Rule: several starts under one ID with one input make one run, which runs once. With another
// input they are refused. This also holds after the run has ended.
func (suite) Scenario25StartTwice(t *testing.T, k *kit) {
	f := trip(k)
	k.open(f)
	runs := make([]pawl.ID, 100)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() { runs[i] = start(k, f, "1", 10).Run() })
	}
	all.Wait()
	for _, run := range runs {
		require.Equal(t, runs[0], run)
	}
	again := func() {
		t.Helper()
		h := start(k, f, "1", 10)
		require.Equal(t, runs[0], h.Run())
		_, err := f.Start(t.Context(), k.e, "1", 11)
		require.ErrorIs(t, err, workflow.ErrConflict)
		require.ErrorIs(t, k.q.Update(t.Context(), func(tx Tx) error {
			_, err := workflow.StartTx(tx, k.e, f, "1", 11)
			return err
		}), workflow.ErrConflict)
	}
	again()
	k.settle()
	again()
	k.crash()
	again()
	returns(k, find(k, f, "1"), 13)
	again()
	k.settle()
	returns(k, start(k, f, "1", 10), 13)
	require.Equal(t, []string{"a", "b", "c"}, k.effects())

	out, err := outcome(k, start(k, f, "2", 11)) // another ID is another run
	require.NoError(t, err)
	require.Equal(t, 14, out)
}

// Rule: a run started in an app's transaction exists when the transaction is committed, and
// only then.
func (suite) Scenario25StartInATransaction(t *testing.T, k *kit) {
	f := trip(k)
	k.open(f)
	undone := errors.New("undone")
	require.ErrorIs(t, k.q.Update(t.Context(), func(tx Tx) error {
		_, err := workflow.StartTx(tx, k.e, f, "1", 10)
		require.NoError(t, err)
		return undone
	}), undone)
	_, err := f.Handle(t.Context(), k.e, "1")
	require.ErrorIs(t, err, workflow.ErrNotFound)
	var h *workflow.Handle[int]
	require.NoError(t, k.q.Update(t.Context(), func(tx Tx) (err error) {
		h, err = workflow.StartTx(tx, k.e, f, "1", 11)
		return err
	}))
	returns(k, h, 14)
}

// Rule: a signal to a run that does not exist or has ended is refused. Every other signal is
// received, whether it arrived before the run waited, while it ran, while it was suspended, or
// while the program was down.
func (suite) Scenario26SignalAtAnyTime(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	require.ErrorIs(t, word.Send(t.Context(), k.e, pawl.NewID(k.now()), "early", ""), workflow.ErrNotFound)

	k.restartWithSlots(-1)
	h := start(k, f, "1", 4)
	say(k, h.Run(), "before the first claim", "")
	k.restartWithSlots(1)
	begin := k.gate("before a word")
	say(k, h.Run(), "suspended", "")
	<-begin.reached
	say(k, h.Run(), "running", "")
	close(begin.open)
	k.settle()
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
	k.restartWithSlots(-1)
	say(k, h.Run(), "stopped", "")
	k.restartWithSlots(1)
	returns(k, find(k, f, "1"), []string{"before the first claim", "suspended", "running", "stopped"})

	before := k.journal(h.Run())
	require.ErrorIs(t, word.Send(t.Context(), k.e, h.Run(), "late", ""), workflow.ErrNotRunning)
	require.Equal(t, before, k.journal(h.Run()))
	require.Zero(t, k.info(h.Run()).Unread)
}

// restartWithSlots closes the file and opens it with another worker.
func (k *kit) restartWithSlots(n int) {
	k.t.Helper()
	k.close()
	k.slots = n
	k.again()
}

// Rule: a signal that is durable before the timeout is stored counts, even if the time is over.
// A later signal is for the next wait.
func (suite) Scenario26SignalAtTheDeadline(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	h := start(k, f, "1", 3)
	k.pass(time.Hour - 1)
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
	say(k, h.Run(), "in time", "")
	k.settle()

	k.restartWithSlots(-1)
	k.pass(2 * time.Hour)
	say(k, h.Run(), "over time", "")
	k.restartWithSlots(1)
	k.pass(time.Hour) // exactly
	require.Equal(t, workflow.Done, k.info(h.Run()).Status)
	returns(k, find(k, f, "1"), []string{"in time", "over time", "nothing"})

	h = start(k, f, "2", 2)
	k.pass(time.Hour)
	say(k, h.Run(), "next", "")
	returns(k, h, []string{"nothing", "next"})
}

// Rule: if one commit writes a timeout and a signal, exactly one of them counts: the wait has
// the signal, or the next wait has.
func (suite) Scenario26SignalInTheCommitOfTheTimeout(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	for i := range 10 {
		h := startAndSettle(k, f, fmt.Sprint(i), 2)
		g := k.hold()
		sent := make(chan error)
		go func() { sent <- word.Send(context.Background(), k.e, h.Run(), "word", "") }()
		k.pass(time.Hour)
		g.commit()
		require.NoError(t, <-sent)
		out, err := outcome(k, h)
		require.NoError(t, err)
		require.Contains(t, [][]string{{"word", "nothing"}, {"nothing", "word"}}, out)
	}
}

// Rule: signals of one name are received in order of arrival, and those with one key once,
// whatever their content, even after a crash and after they were received.
func (suite) Scenario27SignalsInOrder(t *testing.T, k *kit) {
	f := listen(k)
	k.open(f)
	h := start(k, f, "1", 5)
	say(k, h.Run(), "a", "key 1")
	say(k, h.Run(), "b", "")
	k.settle()
	say(k, h.Run(), "z", "key 1")
	k.crash()
	say(k, h.Run(), "z", "key 1")
	say(k, h.Run(), "b", "")
	say(k, h.Run(), "c", "key 2")
	say(k, h.Run(), "z", "key 2")
	k.settle()
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
	say(k, h.Run(), "d", "key 3")
	returns(k, find(k, f, "1"), []string{"a", "b", "b", "c", "d"})
	say(k, h.Run(), "d", "key 3") // it arrived before
}

// Rule: if several scopes wait for one name, each receives its own signal, and a scope that
// receives none keeps waiting.
func (suite) Scenario27TwoWaitForOneName(t *testing.T, k *kit) {
	f := workflow.Define("pair", func(r *workflow.Run, n int) ([]string, error) {
		return workflow.Each(r, "ear", numbers(n), strconv.Itoa, n, func(r *workflow.Run, _ int) (string, error) {
			return word.Wait(r, 3*time.Hour)
		})
	})
	k.open(f)
	h := start(k, f, "1", 8)
	for i := range 8 {
		k.pass(time.Minute)
		require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
		say(k, h.Run(), fmt.Sprint(i), "")
	}
	out, err := outcome(k, h)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, out)
}

// Rule: a wait of no time takes what is there, and a sleep that is over ends: without a
// suspension, and without any time passing.
func (suite) Scenario28NoTime(t *testing.T, k *kit) {
	f := workflow.Define("hasty", func(r *workflow.Run, d time.Duration) (string, error) {
		k.called("hasty")
		if err := workflow.Sleep(r, "nap", d); err != nil {
			return "", err
		}
		if err := workflow.SleepUntil(r, "past", k.now().Add(-time.Hour)); err != nil {
			return "", err
		}
		if err := workflow.SleepUntil(r, "long ago", time.Unix(0, 0)); err != nil {
			return "", err
		}
		k.at("before the wait")
		w, err := word.Wait(r, d)
		if err != nil {
			return "", err
		}
		if _, err = word.Wait(r, d); !errors.Is(err, workflow.ErrTimeout) {
			return "", fmt.Errorf("a second word, or %w", err)
		}
		return w, nil
	})
	k.open(f)
	began := k.now()
	for i, d := range []time.Duration{0, -1, -time.Hour} {
		here := k.gate("before the wait")
		h := start(k, f, fmt.Sprint(i), d)
		<-here.reached
		say(k, h.Run(), "hello", "")
		close(here.open)
		returns(k, h, "hello")
		require.Equal(t, []string{"sleep nap done", "sleep past done", "sleep long ago done",
			"wait word done: hello", "wait word#2 failed: no signal came in time"}, k.journal(h.Run()))
	}
	require.Equal(t, began, k.now())
	require.Equal(t, 3, k.calls("hasty"))
}

// Rule: deadlines are times of the queue's clock: if it is set back they come later, if it is
// set forward they come at once, and nothing gets stuck either way.
func (suite) Scenario29ClockJumps(t *testing.T, k *kit) {
	f := workflow.Define("clock", func(r *workflow.Run, how string) (string, error) {
		var err error
		switch how {
		case "sleep":
			err = workflow.Sleep(r, "nap", time.Hour)
		case "wait":
			if _, err = word.Wait(r, time.Hour); errors.Is(err, workflow.ErrTimeout) {
				err = nil
			}
		case "step":
			_, err = workflow.Step(r, "step", func(context.Context) (int, error) {
				if k.called("attempt of "+r.ID()) == 1 {
					return 0, pawl.RetryAfter(time.Hour, errors.New("not now"))
				}
				return 1, nil
			})
		}
		return how, err
	})
	k.open(f)
	for _, by := range []time.Duration{-time.Hour / 2, time.Hour / 2} {
		for _, how := range []string{"sleep", "wait", "step"} {
			h := startAndSettle(k, f, fmt.Sprint(how, by), how)
			due := k.info(h.Run()).Due
			require.Equal(t, time.Hour, due.Sub(k.now()))
			k.pass(time.Minute)
			k.jump(by)
			k.pass(59*time.Minute - by - 1)
			require.NotEqual(t, workflow.Done, k.info(h.Run()).Status, how)
			require.Equal(t, due, k.info(h.Run()).Due)
			k.pass(1)
			require.Equal(t, workflow.Done, k.info(h.Run()).Status, how)

			h = startAndSettle(k, f, fmt.Sprint(how, by, "far"), how)
			if by > 0 {
				k.jump(24 * time.Hour)
			} else {
				k.jump(-24 * time.Hour)
				require.NotEqual(t, workflow.Done, k.info(h.Run()).Status, how)
				k.pass(25 * time.Hour)
			}
			require.Equal(t, workflow.Done, k.info(h.Run()).Status, how)
		}
	}
}
