package workflows

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeStore is a store whose workflows take as long as their caller's turn says.
type fakeStore struct {
	calls atomic.Int64
	takes func(call int64) time.Duration
	wrong int // what is added to each result
	err   error
}

func (s *fakeStore) run(_ context.Context, _ string, input int) (int, error) {
	<-time.After(s.takes(s.calls.Add(1)))
	return input + steps + s.wrong, s.err
}

func (s *fakeStore) close() error { return nil }

func second(int64) time.Duration { return time.Second }

// What has its result while the window is open counts, and its time is from its start.
func TestWindowCountsResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{takes: second}
		l := newLoad(s, trial{Callers: 2, Window: 10 * time.Second})
		require.NoError(t, l.run(t.Context()))
		f := l.figures()
		require.Equal(t, 10*time.Second, f.Took)
		// Of the two results at the end of the window one closes it.
		require.InDelta(t, 20, f.Workflows, 1)
		require.Equal(t, time.Second, f.P50)
		require.Equal(t, time.Second, f.P99)
	})
}

// The window of a slow engine stays open until enough counted.
func TestWindowWaitsForEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(&fakeStore{takes: second}, trial{Callers: 2, Window: time.Second, Count: 12})
		require.NoError(t, l.run(t.Context()))
		f := l.figures()
		require.Equal(t, 6*time.Second, f.Took)
		require.Equal(t, 12, f.Workflows)
	})
}

// The window opens when the slowest caller has had its first result, so that nothing of the
// start counts.
func TestWindowOpensWhenAllAreWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &fakeStore{takes: func(call int64) time.Duration {
			if call == 1 {
				return time.Minute
			}
			return time.Second
		}}
		l := newLoad(s, trial{Callers: 2, Window: 10 * time.Second})
		require.NoError(t, l.run(t.Context()))
		require.Equal(t, time.Minute, l.opened.Sub(began))
		require.Equal(t, time.Second, l.figures().P99)
	})
}

// A trial by number counts as many as it was told.
func TestTrialByNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{takes: second}
		l := newLoad(s, trial{Callers: 4, Count: 30})
		require.NoError(t, l.run(t.Context()))
		f := l.figures()
		require.Equal(t, 30, f.Workflows)
		require.EqualValues(t, s.calls.Load(), f.All)
	})
}

// A workflow with another result than its steps give is no figure but an error.
func TestWrongResultFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoad(&fakeStore{takes: second, wrong: -1}, trial{Callers: 1, Count: 1})
		require.ErrorContains(t, l.run(t.Context()), "its result is 5, not 6")
	})
}

// The error of an engine ends the trial.
func TestFailedWorkflowEndsTheTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		l := newLoad(&fakeStore{takes: second, err: broken}, trial{Callers: 1, Window: time.Hour})
		require.ErrorIs(t, l.run(t.Context()), broken)
	})
}
