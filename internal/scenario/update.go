package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

var (
	withdraw = workflow.DefineUpdate[int, int]("withdraw")
	closed   = workflow.DefineSignal[string]("closed")

	errBroke = errors.New("the account has less")
	errFraud = errors.New("this looks like fraud")
)

// account pays requests out of a balance, until it is closed. It pays 13 to nobody.
func account(k *kit, funcs ...func(n, balance int)) *workflow.Flow[int, int] {
	return workflow.Define("account", func(r *workflow.Run, balance int) (int, error) {
		for {
			var q workflow.Request[int, int]
			valid := func(n int) error {
				for _, fn := range funcs {
					fn(n, balance)
				}
				if n > balance {
					k.at("rejected")
					return fmt.Errorf("%w: it has %d", errBroke, balance)
				}
				return nil
			}
			i, err := workflow.Select(r, "next", closed.Case(nil), withdraw.Case(&q, valid))
			if i <= 0 {
				return balance, err
			}
			n, err := act(k, r, "pay", q.Value)
			if err != nil {
				return balance, err
			}
			k.at("answered")
			if n == 13 {
				err = q.Answer(r, 0, errFraud)
			} else {
				balance -= n
				err = q.Answer(r, balance, nil)
			}
			if err != nil {
				return balance, err
			}
		}
	}, workflow.Receives(withdraw, closed))
}

func call(k *kit, run pawl.ID, n int, key string) (int, error) {
	return withdraw.Call(k.t.Context(), k.e, run, n, key)
}

// pays requires that a run answers a request with a balance.
func pays(k *kit, run pawl.ID, n int, key string, want int) {
	k.t.Helper()
	got, err := call(k, run, n, key)
	require.NoError(k.t, err)
	require.Equal(k.t, want, got)
}

// Rule: a run handles the request of a caller, and the caller gets the answer, be it a value or an
// error. Each call with the same key gets the same answer, and the run handles the request once:
// also after a crash, after the end of the run, and if the calls come at once.
func (suite) UpdateIsAnswered(t *testing.T, k *kit) {
	f := account(k)
	k.open(f)
	h := start(k, f, "1", 100)
	pays(k, h.Run(), 30, "first", 70)
	_, err := call(k, h.Run(), 13, "bad")
	require.ErrorIs(t, err, errFraud)
	require.NotErrorIs(t, err, workflow.ErrRejected)
	var answered *workflow.UpdateError
	require.ErrorAs(t, err, &answered)
	require.Equal(t, workflow.UpdateError{Update: "withdraw", Run: h.Run(), Text: errFraud.Error()},
		workflow.UpdateError{Update: answered.Update, Run: answered.Run, Text: answered.Text})

	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { pays(k, h.Run(), 20, "at once", 50) })
	}
	all.Wait()
	k.crash()
	again := func() {
		t.Helper()
		pays(k, h.Run(), 30, "first", 70)
		pays(k, h.Run(), 99, "at once", 50)
		_, err = call(k, h.Run(), 13, "bad")
		require.ErrorIs(t, err, errFraud)
	}
	again()
	pays(k, h.Run(), 10, "", 40)
	require.Equal(t, []string{"pay", "pay#2", "pay#3", "pay#4"}, k.effects())
	require.NoError(t, closed.Send(t.Context(), k.e, h.Run(), "", ""))
	returns(k, find(k, f, "1"), 40)
	again()
	require.Zero(t, k.info(h.Run()).Unread)
}

// Rule: a request that the run does not accept is answered, and leaves nothing in the journal,
// whether the run waits in memory, in the file, or a crash comes after it. So is one of another type. The code
// that validates sees the state of the run, and never a request that was accepted before a crash.
func (suite) UpdateIsRejected(t *testing.T, k *kit) {
	var mu sync.Mutex
	asked := map[int]int{}
	f := account(k, func(n, _ int) {
		mu.Lock()
		defer mu.Unlock()
		asked[n]++
	})
	k.open(f)
	h := start(k, f, "1", 100)
	pays(k, h.Run(), 30, "", 70)
	k.settle()
	before := k.entries(h.Run())
	rejects := func(key string) {
		t.Helper()
		_, err := call(k, h.Run(), 80, key)
		require.ErrorIs(t, err, workflow.ErrRejected)
		require.ErrorIs(t, err, errBroke)
		require.ErrorContains(t, err, "it has 70")
	}
	rejects("80")
	rejects("80")
	require.Equal(t, 1, asked[80])
	other := workflow.DefineUpdate[string, int]("withdraw")
	_, err := other.Call(t.Context(), k.e, h.Run(), "a lot", "")
	require.ErrorIs(t, err, workflow.ErrRejected)
	k.settle()
	require.Equal(t, before, k.entries(h.Run()))
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)
	require.Zero(t, k.info(h.Run()).Unread)

	k.crash()
	rejects("80")
	rejects("more")
	pays(k, h.Run(), 70, "", 0)
	require.Equal(t, 1, asked[30], "it was accepted before the crash")
	require.NoError(t, closed.Send(t.Context(), k.e, h.Run(), "", ""))
	returns(k, find(k, f, "1"), 0)
	rejects("80")
}

// Rule: whoever asks a run that is unknown, has ended, ends without an answer, or does not declare
// the update gets a clear error at once. A caller that stops waiting learns what the run does.
func (suite) UpdateWithoutAnAnswer(t *testing.T, k *kit) {
	f := account(k)
	deaf := workflow.Define("deaf", func(r *workflow.Run, _ int) (string, error) { return word.Wait(r, time.Hour) })
	k.open(f, deaf)
	_, err := call(k, pawl.ID{1}, 1, "")
	require.ErrorIs(t, err, workflow.ErrNotFound)
	_, err = workflow.DefineUpdate[int, int]("a/b").Call(t.Context(), k.e, pawl.ID{1}, 1, "")
	require.ErrorIs(t, err, pawl.ErrInvalid)

	h := start(k, f, "1", 100)
	_, err = workflow.DefineUpdate[int, int]("deposit").Call(t.Context(), k.e, h.Run(), 1, "")
	require.ErrorIs(t, err, workflow.ErrUndeclared)
	require.NoError(t, closed.Send(t.Context(), k.e, h.Run(), "", ""))
	returns(k, h, 100)
	_, err = call(k, h.Run(), 1, "")
	require.ErrorIs(t, err, workflow.ErrNotRunning)

	never := start(k, deaf, "1", 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = withdraw.Call(ctx, k.e, never.Run(), 1, "key")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "it is waiting")
	for range 2 {
		_, err = call(k, never.Run(), 1, "key")
		require.ErrorIs(t, err, workflow.ErrNotRunning)
		require.ErrorContains(t, err, "without an answer: it is failed")
	}
	require.Equal(t, 1, k.info(never.Run()).Unread)

	waits := start(k, deaf, "2", 0)
	ended := make(chan error, 1)
	go func() {
		_, err := call(k, waits.Run(), 1, "")
		ended <- err
	}()
	k.settle()
	k.close()
	require.ErrorIs(t, <-ended, pawl.ErrClosed)
}

// Rule: a request that starts its run, in one commit, is answered to whoever calls with its key.
func (suite) UpdateStartsTheRun(t *testing.T, k *kit) {
	f := account(k)
	k.open(f)
	for range 2 {
		h, err := f.Start(t.Context(), k.e, "1", 100, withdraw.WithStart(30, "first"))
		require.NoError(t, err)
		pays(k, h.Run(), 30, "first", 70)
	}
	require.Equal(t, []string{"pay"}, k.effects())
}

// Rule: a request has one answer, and only a run that has taken it gives one.
func (suite) UpdateIsAnsweredOnce(t *testing.T, k *kit) {
	var first workflow.Request[int, int]
	f := workflow.Define("twice", func(r *workflow.Run, _ int) (int, error) {
		require.ErrorIs(t, first.Answer(r, 1, nil), pawl.ErrInvalid)
		q, err := withdraw.Wait(r, workflow.Forever, nil)
		if err != nil {
			return 0, err
		}
		if err := q.Answer(r, 0, errors.New("one")); err != nil {
			return 0, err
		}
		return q.Value, q.Answer(r, 2, nil)
	})
	k.open(f)
	h := start(k, f, "1", 0)
	_, err := call(k, h.Run(), 7, "key")
	require.ErrorContains(t, err, "one")
	_, err = outcome(k, h)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = call(k, h.Run(), 7, "key")
	require.ErrorContains(t, err, "one")
}

// Rule: of branches that take requests, each request goes to one. A branch that loses a race gives back a
// request that it has not used, and what it has answered stays answered.
func (suite) UpdateOfBranches(t *testing.T, k *kit) {
	f := workflow.Define("tellers", func(r *workflow.Run, answers bool) (int, error) {
		loser := workflow.Go(r, "loser", func(r *workflow.Run) (int, error) {
			q, err := withdraw.Wait(r, workflow.Forever, func(n int) error {
				if n > 100 {
					return errBroke
				}
				return nil
			})
			if err == nil && answers {
				err = q.Answer(r, 1, nil)
			}
			if err != nil {
				return 0, err
			}
			return 0, workflow.Sleep(r, "nap", 10*time.Hour)
		})
		winner := workflow.Go(r, "winner", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "nap", time.Hour) })
		if _, _, err := workflow.Race(r, "first", loser, winner); err != nil {
			return 0, err
		}
		q, err := withdraw.Wait(r, time.Minute, nil)
		if errors.Is(err, workflow.ErrTimeout) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return q.Value, q.Answer(r, 2, nil)
	})
	k.open(f)
	for _, answers := range []bool{true, false} {
		h := start(k, f, fmt.Sprint(answers), answers)
		_, err := call(k, h.Run(), 101, "")
		require.ErrorIs(t, err, workflow.ErrRejected)
		want, out := 1, 0
		if !answers {
			want, out = 2, 7
		}
		pays(k, h.Run(), 7, "key", want)
		returns(k, h, out)
		k.crash()
		pays(k, h.Run(), 7, "key", want)
	}
}

// Rule: the answer, and the end of the step that gives it, are one commit. The process may die at
// each point of it, and of the commit that rejects a request: the caller that asks again gets one answer.
func (suite) UpdateLostInItsCommit(t *testing.T) {
	for name, n := range map[string]int{"answered": 30, "rejected": 101} {
		t.Run(name, func(t *testing.T) {
			eachDeath(t, func(at death) story {
				return story{
					func(k *kit) {
						k.open(account(k))
						h, g := start(k, account(k), "1", 100), k.gate(name)
						require.NoError(k.t, withdraw.Send(k.t.Context(), k.e, h.Run(), n, "key"))
						<-g.reached
						k.linger()
						commit := k.hold()
						close(g.open)
						commit.endLife(at)
					},
					func(k *kit) {
						k.open(account(k))
						h := find(k, account(k), "1")
						got, err := call(k, h.Run(), n, "key")
						if n > 100 {
							require.ErrorIs(k.t, err, workflow.ErrRejected)
							for _, e := range k.entries(h.Run()) {
								require.Equal(k.t, workflow.EntryPending, e.State, "it has the Select that waits, and no more")
							}
						} else {
							require.NoError(k.t, err)
							require.Equal(k.t, 70, got)
							k.sameKeys("pay", 1)
						}
						require.Zero(k.t, k.info(h.Run()).Unread)
					},
				}
			})
		})
	}
}

// Rule: a run that asks another one in a step learns why it was rejected, also from its journal.
func (suite) UpdateInAStep(t *testing.T, k *kit) {
	f := account(k)
	asks := workflow.Define("asks", func(r *workflow.Run, run pawl.ID) (bool, error) {
		_, err := workflow.Step(r, "ask", func(ctx context.Context) (int, error) {
			return withdraw.Call(ctx, k.engine(), run, 101, r.Key())
		}, workflow.MaxRetries(0))
		if _, waited := word.Wait(r, workflow.Forever); waited != nil {
			return false, waited
		}
		return errors.Is(err, workflow.ErrRejected) && errors.Is(err, errBroke), nil
	})
	k.open(f, asks)
	to := startAndSettle(k, f, "1", 100)
	h := startAndSettle(k, asks, "1", to.Run())
	k.crash()
	say(k, h.Run(), "go on", "")
	returns(k, find(k, asks, "1"), true)
}
