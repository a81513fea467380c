package workflowtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
	"github.com/gopawl/pawl/workflow/workflowtest"
)

// trip is a flow with a step, a wait, and a sleep.
var (
	trip = workflow.Define("trip", func(r *workflow.Run, to string) (string, error) {
		booking, err := workflow.Step(r, "book", func(context.Context) (string, error) { return "seat in " + to, nil })
		if err != nil {
			return "", err
		}
		gate, err := called.Wait(r, 2*time.Hour)
		if errors.Is(err, workflow.ErrTimeout) {
			gate = "no gate"
		} else if err != nil {
			return "", err
		}
		if err := workflow.Sleep(r, "flight", 90*time.Minute); err != nil {
			return "", err
		}
		return booking + ", " + gate, nil
	})
	called = workflow.DefineSignal[string]("called")
)

// tripJournal is what the journal of a trip is.
const tripJournal = `step book: "seat in Rome"
wait called, 2h0m0s: failed: no signal came in time
sleep flight, 1h30m0s
`

// trial is a test that a test makes fail.
type trial struct {
	testing.TB
	mu     sync.Mutex
	failed string
}

// Errorf implements testing.TB.
func (t *trial) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed += fmt.Sprintf(format, args...)
}

// Fatalf implements testing.TB.
func (t *trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Failed implements testing.TB.
func (t *trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed != ""
}

// failure runs a test with its cleanups and returns how it failed.
func failure(t *testing.T, test func(t testing.TB)) string {
	try := new(trial)
	t.Run("fails", func(t *testing.T) {
		try.TB = t
		done := make(chan struct{})
		go func() {
			defer close(done)
			test(try)
		}()
		<-done
	})
	return try.failed
}

// Rule: a run stops where it waits, only Skip, Advance and Result move the clock, exactly to the
// deadline, and the result comes without waiting.
func TestSkip(t *testing.T) {
	k := workflowtest.New(t, nil, trip)
	run := workflowtest.Start(k, trip, "1", "Rome")
	require.Equal(t, workflow.Waiting, run.Info().Status)
	require.Equal(t, workflowtest.Epoch, k.Now())
	require.Equal(t, 2*time.Hour, k.Skip())
	require.Equal(t, workflow.Sleeping, run.Info().Status)
	require.Equal(t, 90*time.Minute, k.Skip())
	require.Equal(t, workflow.Done, run.Info().Status)
	out, err := run.Result()
	require.NoError(t, err)
	require.Equal(t, "seat in Rome, no gate", out)
	require.Equal(t, workflowtest.Epoch.Add(210*time.Minute), k.Now())
	require.Equal(t, tripJournal, run.Journal().String())
	require.Equal(t, []string{"book", "called", "flight"}, run.Journal().Steps())
}

// Rule: a run continues on a signal; an error is returned unchanged.
func TestSend(t *testing.T) {
	k := workflowtest.New(t, nil, trip)
	run := workflowtest.Start(k, trip, "1", "Oslo")
	k.Advance(time.Hour)
	workflowtest.Send(run, called, "gate 4")
	out, err := run.Result()
	require.NoError(t, err)
	require.Equal(t, "seat in Oslo, gate 4", out)
	require.Equal(t, workflowtest.Epoch.Add(150*time.Minute), k.Now())

	run = workflowtest.Start(k, trip, "2", "Oslo")
	require.NoError(t, k.Engine().Cancel(t.Context(), run.Run(), "strike"))
	_, err = run.Result()
	require.ErrorIs(t, err, workflow.ErrCancelled)
}

// Rule: Advance settles at each deadline on the way, so that later deadlines are exact, and goes no
// further.
func TestAdvance(t *testing.T) {
	k := workflowtest.New(t, nil, trip)
	first := workflowtest.Start(k, trip, "1", "Rome")
	k.Advance(time.Hour)
	second := workflowtest.Start(k, trip, "2", "Rome")
	k.Advance(150*time.Minute - 1)
	require.Equal(t, workflow.Sleeping, first.Info().Status)
	require.Equal(t, workflow.Sleeping, second.Info().Status)
	k.Advance(1)
	require.Equal(t, workflow.Done, first.Info().Status)
	require.Equal(t, tripJournal, first.Journal().String())
	k.Advance(time.Hour)
	require.Equal(t, tripJournal, second.Journal().String())
}

// Rule: the kit works in a bubble as outside; there a waiting step takes no time and does not move
// the queue's clock.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := workflowtest.New(t, nil, trip)
		k.Stub("book", func(context.Context) (any, error) {
			<-time.After(time.Hour)
			return "seat in Rome", nil
		})
		k.CrashAfter("book")
		run := workflowtest.Start(k, trip, "1", "Rome")
		k.Crash()
		out, err := run.Result()
		require.NoError(t, err)
		require.Equal(t, "seat in Rome, no gate", out)
		require.Equal(t, tripJournal, run.Journal().String())
		require.Equal(t, 2, k.Attempts("book"))
	})
}

// Rule: with the bubble's clock a wait also moves the queue's clock.
func TestBubbleClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := workflowtest.New(t, &workflowtest.Options{Now: time.Now}, trip)
		run := workflowtest.Start(k, trip, "1", "Rome")
		<-time.After(2 * time.Hour)
		k.Settle()
		require.Equal(t, workflow.Sleeping, run.Info().Status)
		require.Equal(t, 90*time.Minute, k.Skip())
		require.Equal(t, workflow.Done, run.Info().Status)
	})
}

// Rule: while the queue's clock stands still, a wait that does not suspend its run takes real time: one of less than 100
// ms, and one beside a step that works.
func TestWaitsOnAClockThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var short, beside time.Duration
		f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			for range 2 {
				if err := workflow.Sleep(r, "short", 50*time.Millisecond); err != nil {
					return 0, err
				}
			}
			short = time.Since(began) //workflowvet:ok the test measures real time
			works := workflow.Go(r, "works", func(r *workflow.Run) (int, error) {
				return workflow.Step(r, "work", func(context.Context) (int, error) { time.Sleep(3 * time.Hour); return 1, nil })
			})
			waits := workflow.Go(r, "waits", func(r *workflow.Run) (int, error) {
				defer func() { beside = time.Since(began) - short }() //workflowvet:ok the test measures real time
				return 1, workflow.Sleep(r, "long", 2*time.Hour)
			})
			_, err := workflow.All(r, works, waits)
			return 1, err
		})
		k := workflowtest.New(t, nil, f)
		run := workflowtest.Start(k, f, "1", 0)
		require.Equal(t, workflow.Done, run.Info().Status)
		require.Equal(t, workflowtest.Epoch, k.Now())
		require.InDelta(t, 100*time.Millisecond, short, float64(10*time.Millisecond))
		require.InDelta(t, 2*time.Hour, beside, float64(time.Second))
	})
}

// Rule: if a clock that stands still is moved once, the waits of an active run end as that clock says, and real time counts
// for what is left.
func TestWaitOnAClockThatMovesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock atomic.Int64
		clock.Store(workflowtest.Epoch.UnixNano())
		began := time.Now()
		var waited time.Duration
		f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
			works := workflow.Go(r, "works", func(r *workflow.Run) (int, error) {
				return workflow.Step(r, "work", func(context.Context) (int, error) {
					time.Sleep(time.Second)
					clock.Add(int64(2*time.Hour - time.Nanosecond))
					time.Sleep(3 * time.Hour)
					return 1, nil
				})
			})
			waits := workflow.Go(r, "waits", func(r *workflow.Run) (int, error) {
				defer func() { waited = time.Since(began) }() //workflowvet:ok the test measures real time
				return 1, workflow.Sleep(r, "long", 2*time.Hour)
			})
			_, err := workflow.All(r, works, waits)
			return 1, err
		})
		k := workflowtest.New(t, &workflowtest.Options{Now: func() time.Time { return time.Unix(0, clock.Load()) }}, f)
		run := workflowtest.Start(k, f, "1", 0)
		k.Settle()
		require.Equal(t, workflow.Done, run.Info().Status)
		require.LessOrEqual(t, waited, 2*time.Minute)
	})
}

// Rule: a run that does not end by itself fails the test, which names what it waits for; so does
// Skip without a deadline.
func TestNoEnd(t *testing.T) {
	forever := workflow.Define("forever", func(r *workflow.Run, _ int) (string, error) {
		return called.Wait(r, workflow.Forever)
	})
	for _, end := range []func(*workflowtest.Kit, *workflowtest.Run[string]){
		func(_ *workflowtest.Kit, run *workflowtest.Run[string]) { _, _ = run.Result() },
		func(k *workflowtest.Kit, _ *workflowtest.Run[string]) { k.Skip() },
	} {
		require.Contains(t, failure(t, func(t testing.TB) {
			k := workflowtest.New(t, nil, forever)
			end(k, workflowtest.Start(k, forever, "x", 0))
		}), `workflow forever "x": waiting for called`)
	}
}

// Rule: a flow on a queue that Options.Queues lacks fails the test.
func TestQueues(t *testing.T) {
	side := workflow.Define("side", func(*workflow.Run, int) (int, error) { return 7, nil }, workflow.OnQueue("side"))
	require.Contains(t, failure(t, func(t testing.TB) {
		k := workflowtest.New(t, nil, side)
		workflowtest.Start(k, side, "x", 0)
	}), `workflow side "x": running is on queue "side"`)
	k := workflowtest.New(t, &workflowtest.Options{Queues: []string{"side"}}, side)
	out, err := workflowtest.Start(k, side, "x", 0).Result()
	require.NoError(t, err)
	require.Equal(t, 7, out)
}

// Rule: Options.Handle registers handlers for other kinds, also after a crash, and Skip moves to
// their delayed jobs.
func TestHandle(t *testing.T) {
	mail := pawl.Define[string]("mail")
	f := workflow.Define("mails", func(r *workflow.Run, to string) (int, error) {
		return workflow.StepTx(r, "enqueue", func(tx *bbolt.Tx) (int, error) {
			_, err := mail.Enqueue(context.Background(), workflow.In(r, tx), to, pawl.Delay(time.Hour))
			return 1, err
		})
	})
	var sent []string
	k := workflowtest.New(t, &workflowtest.Options{Handle: func(w *worker.Worker) {
		worker.Handle(w, mail, func(_ context.Context, job *pawl.Job[string]) error {
			sent = append(sent, job.Args)
			return nil
		})
	}}, f)
	workflowtest.Start(k, f, "1", "ada")
	k.Crash()
	require.Empty(t, sent)
	require.Equal(t, time.Hour, k.Skip())
	require.Equal(t, []string{"ada"}, sent)
}

// Rule: a build whose code does not fit the journal blocks the run, a fitting build repairs it, and
// Verify reports both. A build without the flow does not touch it.
func TestDeploy(t *testing.T) {
	k := workflowtest.New(t, nil, trip)
	run := workflowtest.Start(k, trip, "1", "Rome")
	renamed := workflow.Define("trip", func(r *workflow.Run, to string) (string, error) {
		return workflow.Step(r, "reserve", func(context.Context) (string, error) { return to, nil })
	})
	k.Deploy("2", renamed)
	var mismatch *workflow.DeterminismError
	require.ErrorAs(t, k.Engine().Verify(t.Context(), run.Run()), &mismatch)
	k.Advance(2 * time.Hour)
	require.Equal(t, workflow.Blocked, run.Info().Status)
	require.Contains(t, failure(t, func(t testing.TB) {
		k := workflowtest.New(t, nil, trip)
		run := workflowtest.Start(k, trip, "1", "Rome")
		k.Deploy("2", renamed)
		_, _ = run.Result()
	}), `the journal has step "book"`)

	other := workflow.Define("other", func(*workflow.Run, int) (int, error) { return 0, nil })
	k.Deploy("without", other)
	k.Settle()
	require.Equal(t, workflow.Blocked, run.Info().Status)

	k.Deploy("3", trip)
	waiting := workflowtest.Start(k, trip, "2", "Bern")
	k.Deploy("without", other)
	k.Advance(24 * time.Hour)
	require.Equal(t, workflow.Running, waiting.Info().Status)
	k.Deploy("3", trip)
	_, err := waiting.Result()
	require.NoError(t, err)
	out, err := run.Result()
	require.NoError(t, err)
	require.Equal(t, "seat in Rome, no gate", out)
	require.Equal(t, "3", run.Info().Build)
}

// Rule: a test that leaves a damaged file fails.
func TestSoundness(t *testing.T) {
	require.Contains(t, failure(t, func(t testing.TB) {
		k := workflowtest.New(t, nil, trip)
		workflowtest.Start(k, trip, "1", "Rome")
		require.NoError(t, k.Queue().Update(t.Context(), func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("pawl")).DeleteBucket([]byte("history"))
		}))
	}), `bucket "history" is missing`)
}

// Rule: Of finds a run that others started; a missing one fails the test.
func TestOf(t *testing.T) {
	k := workflowtest.New(t, nil, trip)
	h, err := trip.Start(t.Context(), k.Engine(), "1", "Rome")
	require.NoError(t, err)
	run := workflowtest.Of(k, trip, "1")
	require.Equal(t, h.Run(), run.Run())
	require.Equal(t, "1", run.ID())
	_, err = run.Result()
	require.NoError(t, err)
	require.Contains(t, failure(t, func(t testing.TB) {
		workflowtest.Of(workflowtest.New(t, nil, trip), trip, "2")
	}), "no such run")
}

// Rule: a journal orders branches by number and name, not by time, and shows failures, children,
// versions and undo steps.
func TestJournal(t *testing.T) {
	child := workflow.Define("child", func(r *workflow.Run, n int) (int, error) {
		return n + 1, workflow.Sleep(r, "nap", time.Minute)
	})
	f := workflow.Define("all", func(r *workflow.Run, _ int) (int, error) {
		if _, err := workflow.Version(r, "tax", 1, 2); err != nil {
			return 0, err
		}
		b := workflow.Go(r, "side", func(r *workflow.Run) (int, error) { return workflow.Call(r, "call", child, 1) })
		if _, err := workflow.Each(r, "page", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, strconv.Itoa, 3, func(r *workflow.Run, _ int) (int, error) {
			return workflow.Step(r, "read", func(context.Context) (int, error) { return 1, nil })
		}); err != nil {
			return 0, err
		}
		if _, err := b.Wait(r); err != nil {
			return 0, err
		}
		for range 2 {
			_, err := workflow.Step(r, "fail", func(context.Context) (int, error) { return 0, pawl.Permanent(errors.New("no\nway")) })
			if err == nil {
				return 0, errors.New("it did not fail")
			}
		}
		r.Undo("back", func(context.Context) error { return nil })
		return 0, errors.New("the end")
	})
	k := workflowtest.New(t, nil, f, child)
	run := workflowtest.Start(k, f, "1", 0)
	require.Contains(t, run.Journal().String(), "\nchild side/call: pending\n")
	_, err := run.Result()
	require.ErrorContains(t, err, "the end")
	want := "version tax: 2\nbranch side\neach page\nstep fail: failed: no\nstep fail#2: failed: no\n"
	for i := range 11 {
		want += fmt.Sprintf("branch page/%d\n", i)
	}
	for i := range 11 {
		want += fmt.Sprintf("step page/%d/read: 1\n", i)
	}
	want += "child side/call, 1m0s: 2\nundo _undo/back\n"
	require.Equal(t, want, run.Journal().String())
	require.Equal(t, "sleep nap, 1m0s\n", workflowtest.Of(k, child, "1/side/call").Journal().String())
	require.Len(t, strings.Split(strings.TrimSpace(want), "\n"), len(run.Journal()))
}

// Rule: a run that is blocked before it was ever suspended counts the entries of its journal.
func TestStepsOfABlockedRun(t *testing.T) {
	flow := workflow.Define("flow", func(r *workflow.Run, _ int) (string, error) {
		if _, err := workflow.Step(r, "book", func(context.Context) (string, error) { return "seat", nil }); err != nil {
			return "", err
		}
		panic("between calls")
	})
	k := workflowtest.New(t, nil, flow)
	run := workflowtest.Start(k, flow, "1", 0)
	require.Equal(t, workflow.Blocked, run.Info().Status)
	require.Equal(t, 1, run.Info().Steps)
	require.EqualValues(t, 5, run.Info().Bytes)
}
