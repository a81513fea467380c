package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// every is the rate of one start each d.
func every(d time.Duration) pawl.Rate { return pawl.Rate{Starts: 1, Per: d} }

// Rule: a flow with a rate starts so many runs in a period, and no more. The others start by themselves when their time
// comes, in order, also after a crash, and say what they wait for.
func (suite) StartsAreLimited(t *testing.T, k *kit) {
	f := desk(k, workflow.StartRate(pawl.Rate{Starts: 3, Per: time.Minute, Burst: 2})) // one each 30 s after a burst
	k.open(f)
	begin := k.now()
	runs := queueUp(k, f, "", "", "", "", "", "")
	served(k, 0, 1)
	for i := 2; i < 6; i++ {
		info := k.info(runs[i].Run())
		require.Equal(t, workflow.Waiting, info.Status)
		require.Equal(t, "flow desk", info.Rate)
		require.Empty(t, info.Place)
		require.Empty(t, info.Holders)
		require.True(t, info.Due.Equal(begin.Add(time.Duration(i-1)*30*time.Second)), "run %d waits until %v", i, info.Due)
	}
	k.pass(30*time.Second - 1)
	served(k, 0, 1)
	k.pass(1)
	served(k, 0, 1, 2)
	k.crash()
	served(k, 0, 1, 2)
	k.pass(30 * time.Second)
	served(k, 0, 1, 2, 3)
	bye(k, find(k, f, "0"))
	served(k, 0, 1, 2, 3)
	k.close()
	<-time.After(5 * time.Minute)
	k.again()
	k.settle()
	require.Len(t, k.effects(), 6, "two start at once, in any order")
	require.Empty(t, k.info(runs[5].Run()).Rate)
	k.pass(time.Hour)
	startAndSettle(k, f, "6", 6)
	require.Equal(t, "serve 6", k.effects()[6])
}

// Rule: each key has its own rate. With a rate of the flow too, a key with many runs does not delay those of others, and
// neither rate is exceeded.
func (suite) StartsOfKeysAreLimited(t *testing.T, k *kit) {
	f := desk(k, workflow.StartRatePerKey(every(time.Hour)), workflow.StartRate(every(time.Minute)))
	k.open(f)
	runs := queueUp(k, f, "a", "a", "a", "b", "", "c")
	served(k, 0)
	for i, rate := range []string{"", "key a", "key a", "flow desk", "flow desk", "flow desk"} {
		require.Equal(t, rate, k.info(runs[i].Run()).Rate, "run %d", i)
	}
	k.pass(time.Minute)
	served(k, 0, 3)
	k.pass(2 * time.Minute)
	served(k, 0, 3, 4, 5)
	k.pass(time.Hour - 3*time.Minute - 1)
	served(k, 0, 3, 4, 5)
	k.pass(1)
	served(k, 0, 3, 4, 5, 1)
	k.crash()
	k.pass(time.Hour)
	served(k, 0, 3, 4, 5, 1, 2)
	bye(k, runs...)
	require.NotZero(t, k.rowsIn("places"), "the rates are used up")
	k.pass(2 * time.Hour)
	require.Zero(t, k.rowsIn("places"), "nothing is left of a key once its rate is not used up any more")
}

// Rule: a run takes its place when it starts, so one that waits for its rate keeps no place from others, and one that
// waits for a place uses up no start.
func (suite) StartsAndPlaces(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpen(1), workflow.StartRate(every(time.Minute)))
	k.open(f)
	runs := queueUp(k, f, "", "", "", "")
	served(k, 0)
	k.pass(time.Hour)
	served(k, 0)
	info := k.info(runs[1].Run())
	require.Equal(t, "flow desk", info.Place)
	require.Empty(t, info.Rate)
	require.Equal(t, []pawl.ID{runs[0].Run()}, info.Holders)
	bye(k, runs[0])
	served(k, 0, 1)
	bye(k, runs[1])
	served(k, 0, 1)
	require.Equal(t, "flow desk", k.info(runs[2].Run()).Rate)
	k.pass(time.Minute - 1)
	served(k, 0, 1)
	k.pass(1)
	served(k, 0, 1, 2)
	bye(k, runs[2:]...)
	k.pass(time.Hour)
	served(k, 0, 1, 2, 3)
}

// Rule: the key of a run that waits for a place of its flow keeps its rate for this run.
func (suite) StartsOfKeysAndPlaces(t *testing.T, k *kit) {
	f := desk(k, workflow.MaxOpen(1), workflow.MaxOpenPerKey(2), workflow.StartRatePerKey(every(time.Minute)))
	k.open(f)
	runs := queueUp(k, f, "a", "a", "b", "a", "b")
	served(k, 0)
	k.pass(time.Hour)
	served(k, 0)
	require.Equal(t, "flow desk", k.info(runs[1].Run()).Place)
	require.Equal(t, "key a", k.info(runs[3].Run()).Rate, "the start of another run comes first")
	bye(k, runs[0])
	served(k, 0, 2)
	bye(k, runs[2])
	served(k, 0, 2, 1)
	bye(k, runs[1])
	k.pass(time.Hour)
	bye(k, runs[3], runs[4])
	k.pass(time.Hour)
	require.Len(t, k.effects(), 5)
	require.NoError(t, k.e.Check(t.Context()))
}

// Rule: a run that waits for a rate follows requests. A cancel and a deadline end it at once, and it uses up no start. A
// resume does not start it. A paused run that misses its turn goes to the end of the line, and delays nobody.
func (suite) WaitingForARateIsControlled(t *testing.T, k *kit) {
	f := desk(k, workflow.StartRate(every(time.Hour)))
	k.open(f)
	runs := queueUp(k, f, "", "", "", "", "", "")
	late, err := f.Start(t.Context(), k.e, "late", 9, workflow.Deadline(time.Minute))
	require.NoError(t, err)
	require.NoError(t, k.e.Cancel(t.Context(), runs[1].Run(), "not needed"))
	require.NoError(t, k.e.Terminate(t.Context(), runs[2].Run(), "not needed"))
	require.NoError(t, k.e.Pause(t.Context(), runs[3].Run()))
	require.NoError(t, k.e.Resume(t.Context(), runs[5].Run()))
	say(k, runs[5].Run(), "early", "")
	served(k, 0)
	require.Equal(t, workflow.Cancelled, k.info(runs[1].Run()).Status)
	require.Equal(t, workflow.Terminated, k.info(runs[2].Run()).Status)
	require.Equal(t, "flow desk", k.info(runs[5].Run()).Rate)
	k.pass(time.Minute)
	require.Equal(t, workflow.Cancelled, k.info(late.Run()).Status)
	require.Empty(t, k.journal(late.Run()))
	k.pass(time.Hour - time.Minute)
	served(k, 0, 4)
	require.Equal(t, workflow.Paused, k.info(runs[3].Run()).Status)
	require.NoError(t, k.e.Resume(t.Context(), runs[3].Run()))
	k.pass(time.Hour)
	served(k, 0, 4, 5)
	k.pass(time.Hour)
	served(k, 0, 4, 5, 3)
}

// Rule: a run whose job is gone or dead delays nobody, and waits for its turn again when it is resumed.
func (suite) WaitingForARateWithoutAJob(t *testing.T, k *kit) {
	f := desk(k, workflow.StartRate(every(time.Hour)))
	k.open(f)
	runs := queueUp(k, f, "", "", "", "")
	require.NoError(t, k.q.Cancel(t.Context(), runs[1].Run()))
	require.Equal(t, workflow.Dead, k.info(runs[1].Run()).Status)
	k.pass(time.Hour)
	served(k, 0, 2)
	require.NoError(t, k.e.Resume(t.Context(), runs[1].Run()))
	k.pass(time.Hour)
	served(k, 0, 2, 3)
	k.pass(time.Hour)
	served(k, 0, 2, 3, 1)
}

// Rule: a child, a fork, a run with a delay, and one that a signal starts wait for the rate, each when it would begin. A
// restart does not.
func (suite) RateCountsEachKindOfStart(t *testing.T, k *kit) {
	f := desk(k, workflow.StartRate(every(time.Hour)))
	parent := workflow.Define("parent", func(r *workflow.Run, n int) (string, error) { return workflow.Call(r, "child", f, n) })
	again := workflow.Define("again", func(r *workflow.Run, n int) (int, error) {
		if _, err := act(k, r, fmt.Sprintf("serve %d", n), n); err != nil || n == 12 {
			return n, err
		}
		return 0, workflow.Restart(r, n+1)
	}, workflow.StartRate(every(time.Hour)))
	k.open(f, parent, again)
	later, err := f.Start(t.Context(), k.e, "later", 1, workflow.Delay(90*time.Minute))
	require.NoError(t, err)
	startAndSettle(k, parent, "1", 2)
	served(k, 2)
	signalled, err := f.Start(t.Context(), k.e, "signalled", 3, word.WithStart("hello", ""))
	require.NoError(t, err)
	served(k, 2)
	require.Equal(t, "flow desk", k.info(signalled.Run()).Rate)
	k.pass(time.Hour)
	served(k, 2, 3)
	returns(k, signalled, "hello")
	fork, err := k.e.Fork(t.Context(), signalled.Run(), "", "fork")
	require.NoError(t, err)
	k.settle()
	require.Equal(t, "flow desk", k.info(fork).Rate)
	k.pass(30 * time.Minute)
	require.Equal(t, "flow desk", k.info(later.Run()).Rate)
	k.pass(30 * time.Minute)
	served(k, 2, 3, 3)
	k.pass(time.Hour)
	served(k, 2, 3, 3, 1)
	returns(k, start(k, again, "1", 10), 12)
	require.Len(t, k.effects(), 7)
}

// Rule: a new rate applies when the app starts. A looser one, or none, lets runs start earlier, and a tighter one later.
func (suite) RateChanges(t *testing.T, k *kit) {
	with := func(r pawl.Rate) *workflow.Flow[int, string] { return desk(k, workflow.StartRate(r)) }
	k.open(with(every(time.Hour)))
	queueUp(k, with(every(time.Hour)), "", "", "", "", "", "", "")
	served(k, 0)
	k.restart("2", with(every(time.Minute)))
	served(k, 0)
	k.pass(time.Minute)
	served(k, 0, 1)
	k.pass(time.Minute)
	served(k, 0, 1, 2)
	k.restart("3", with(every(10*time.Minute)))
	k.pass(time.Minute)
	served(k, 0, 1, 2, 3)
	k.pass(10*time.Minute - 1)
	served(k, 0, 1, 2, 3)
	k.pass(1)
	served(k, 0, 1, 2, 3, 4)
	k.restart("4", desk(k))
	k.settle()
	require.Len(t, k.effects(), 7)
	require.NoError(t, k.e.Check(t.Context()))
}

// Rule: after the clock was set back, no run waits until it is where it was, and no more start than the rate permits.
func (suite) RateAfterTheClockWasSetBack(t *testing.T, k *kit) {
	f := desk(k, workflow.StartRate(every(time.Minute)))
	k.open(f)
	queueUp(k, f, "", "", "")
	served(k, 0)
	k.jump(-24 * time.Hour)
	served(k, 0)
	k.pass(10 * time.Minute)
	served(k, 0, 1, 2)
	startAndSettle(k, f, "3", 3)
	served(k, 0, 1, 2, 3)
	k.jump(-24 * time.Hour)
	startAndSettle(k, f, "4", 4)
	served(k, 0, 1, 2, 3)
	k.pass(time.Minute)
	served(k, 0, 1, 2, 3, 4)
}

// Rule: engines over one store have one rate.
func (suite) RateOfSeveralEngines(t *testing.T, k *kit) {
	f := desk(k, workflow.StartRate(every(time.Hour)), workflow.MaxOpen(3))
	k.open(f)
	far := workflow.Open(&foreign{k.q}, &workflow.Options{Build: "1", Codec: k.codec, Logger: hclog.NewNullLogger()})
	ctx, stop := context.WithCancel(t.Context())
	w := worker.New(k.q, &worker.Options{Concurrency: 1, Drain: 1, Logger: hclog.NewNullLogger()})
	require.NoError(t, far.Handle(ctx, w, f))
	gone := make(chan error)
	go func() { gone <- w.Run(ctx) }()
	for n, e := range []*workflow.Engine{far, k.e, far, k.e} {
		_, err := f.Start(t.Context(), e, fmt.Sprint(n), n)
		require.NoError(t, err)
		k.settle()
	}
	served(k, 0)
	k.pass(time.Hour)
	served(k, 0, 1)
	k.pass(time.Hour)
	served(k, 0, 1, 2)
	k.pass(time.Hour)
	served(k, 0, 1, 2)
	bye(k, find(k, f, "1"))
	k.pass(time.Minute)
	served(k, 0, 1, 2, 3)
	stop()
	<-gone
}

// Rule: a start that is lost in its commit leaves nothing in line. The commit that ends a run has the next one start, or
// neither happens.
func (suite) StartLostInACommit(t *testing.T) {
	rated := func(k *kit) *workflow.Flow[int, string] {
		return desk(k, workflow.StartRate(every(time.Hour)), workflow.MaxOpen(1))
	}
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f := rated(k)
				k.open(f)
				queueUp(k, f, "")
				commit := k.hold()
				go func() { _, _ = f.Start(context.Background(), k.e, "1", 1) }()
				commit.endLife(at)
			},
			then: func(k *kit) {
				f := rated(k)
				k.open(f)
				if at == before {
					startAndSettle(k, f, "1", 1)
				}
				bye(k, find(k, f, "0"))
				k.pass(time.Hour - 2*time.Minute)
				served(k, 0)
				k.pass(2 * time.Minute)
				served(k, 0, 1)
			},
		}
	})
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				f := rated(k)
				k.open(f)
				h := queueUp(k, f, "", "")[0]
				k.pass(time.Hour)
				commit := k.hold()
				go func() { _ = k.e.Terminate(context.Background(), h.Run(), "") }()
				commit.endLife(at)
			},
			then: func(k *kit) {
				f := rated(k)
				k.open(f)
				err := k.e.Terminate(k.t.Context(), find(k, f, "0").Run(), "")
				if at == before {
					require.NoError(k.t, err)
				}
				served(k, 0, 1)
			},
		}
	})
}

// Rule: a start counts once. A run that has started, and whose process dies before its first call, goes on at once.
func (suite) StartCountsOnce(t *testing.T, k *kit) {
	f := workflow.Define("desk", func(r *workflow.Run, n int) (int, error) {
		k.at("begin")
		return act(k, r, fmt.Sprintf("serve %d", n), n)
	}, workflow.StartRate(every(time.Hour)))
	g := k.gate("begin")
	k.open(f)
	start(k, f, "0", 0)
	<-g.reached
	k.refuse()
	close(g.open)
	k.over()
	k.again()
	served(k, 0)
}

// Rule: no rate that nobody can keep to, and none with costs.
func (suite) RateOfStartsIsRefused(t *testing.T, k *kit) {
	k.open()
	for _, r := range []pawl.Rate{{}, {Starts: 1}, {Starts: 1, Per: time.Minute, Burst: 2}, {Starts: 9, Per: time.Minute, MaxCost: 2}} {
		for _, opt := range []workflow.Option{workflow.StartRate(r), workflow.StartRatePerKey(r)} {
			_, err := desk(k, opt).Start(t.Context(), k.e, "1", 1)
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
	}
}
