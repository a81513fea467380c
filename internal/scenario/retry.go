package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/workflow"
)

// stubborn is a flow of a step that always fails, with three retries, each after an hour.
func stubborn(k *kit) *workflow.Flow[int, int] {
	return workflow.Define("stubborn", func(r *workflow.Run, _ int) (int, error) {
		return workflow.Step(r, "try", func(context.Context) (int, error) {
			k.effect(r)
			k.at(fmt.Sprint("attempt ", len(k.keys())))
			return 0, errors.New("not today")
		}, workflow.MaxRetries(3), workflow.Backoff(hourAt{k, "backoff"}))
	})
}

// Rule: the number of attempts of a step, and the time of the next one, survive a crash: no
// retry is lost, and no backoff is shortened or restarted. An attempt cut off by the crash does
// not count.
func (suite) Scenario40RetriesSurvive(t *testing.T) {
	t.Run("in the backoff", func(t *testing.T) {
		story{
			first: func(k *kit) {
				k.open(stubborn(k))
				start(k, stubborn(k), "1", 0)
				k.pass(time.Hour + 30*time.Minute) // two attempts were made
				_ = k.endLife()
			},
			then: func(k *kit) {
				k.open(stubborn(k))
				h := find(k, stubborn(k), "1")
				k.pass(30*time.Minute - downtime - 1)
				require.Len(k.t, k.keys(), 2)
				require.Equal(k.t, 2, k.entries(h.Run())[0].Attempts)
				k.pass(1)
				require.Len(k.t, k.keys(), 3)
				k.pass(time.Hour)
				require.Equal(k.t, workflow.Failed, k.info(h.Run()).Status)
				_, err := outcome(k, h)
				require.ErrorContains(k.t, err, `step "try" failed 4 times: not today`)
				k.sameKeys("try", 4)
			},
		}.run(t)
	})
	t.Run("in the attempt", func(t *testing.T) {
		story{
			first: func(k *kit) {
				third := k.gate("attempt 3")
				k.open(stubborn(k))
				start(k, stubborn(k), "1", 0)
				<-third.reached
				_ = k.endLife()
			},
			then: func(k *kit) {
				k.open(stubborn(k))
				h := find(k, stubborn(k), "1")
				_, err := outcome(k, h)
				require.ErrorContains(k.t, err, `failed 4 times`)
				k.sameKeys("try", 5)
			},
		}.run(t)
	})
}

// Rule: if one scope of a run retries soon and another sleeps long, the run is not suspended,
// and the end of the sleep is stored: a crash does not restart it.
func (suite) Scenario40DeadlineBesideAShortRetry(t *testing.T) {
	flow := func(k *kit) *workflow.Flow[int, int] {
		return workflow.Define("both", func(r *workflow.Run, _ int) (int, error) {
			b := workflow.Go(r, "short", func(r *workflow.Run) (int, error) {
				return workflow.Step(r, "try", func(context.Context) (int, error) {
					k.effect(r)
					if len(k.keys()) == 1 {
						return 0, pawl.RetryAfter(50*time.Millisecond, errors.New("soon"))
					}
					k.at("second")
					return 1, nil
				})
			})
			k.at("before the sleep")
			if err := workflow.Sleep(r, "long", 2*time.Hour); err != nil {
				return 0, err
			}
			return b.Wait(r)
		})
	}
	story{
		first: func(k *kit) {
			before, second := k.gate("before the sleep"), k.gate("second")
			k.open(flow(k))
			start(k, flow(k), "1", 0)
			<-before.reached
			k.settle() // the other scope waits for its retry
			close(before.open)
			<-second.reached
			k.pass(time.Hour)
			_ = k.endLife()
		},
		then: func(k *kit) {
			k.open(flow(k))
			h := find(k, flow(k), "1")
			k.pass(time.Hour)
			require.Equal(k.t, workflow.Done, k.info(h.Run()).Status)
		},
	}.run(t)
}

// deadly is a flow of steps. Each step kills its process as often as requested, before it does
// anything that is stored.
func deadly(k *kit, kills int) *workflow.Flow[int, int] {
	return workflow.Define("deadly", func(r *workflow.Run, steps int) (int, error) {
		for range steps {
			_, err := workflow.Step(r, "s", func(context.Context) (int, error) {
				k.effect(r)
				n := 0
				for _, key := range k.keys() {
					if key == r.Key() {
						n++
					}
				}
				if n <= kills {
					return 0, k.endLife()
				}
				return 1, nil
			})
			if err != nil {
				return 0, err
			}
		}
		return steps, nil
	})
}

// lives runs lives of a flow that is deadly, in processes that are killed or with crashes in
// this process, and then calls fn.
func lives(t *testing.T, n, kills, steps int, fn func(k *kit)) {
	live := func(k *kit) {
		first := len(k.keys()) == 0
		k.maxCrashes = 3
		k.open(deadly(k, kills))
		if first {
			start(k, deadly(k, kills), "1", steps)
		}
		k.awaitDeath()
	}
	if os.Getenv(lifeVariable) == "" {
		sub(t, "crash", func(t *testing.T, k *kit) {
			for range n {
				live(k)
				k.over()
			}
			k.maxCrashes = 3
			fn(k)
		})
	}
	t.Run("kill", func(t *testing.T) {
		path := os.Getenv(lifeVariable)
		if path == "" {
			path = filepath.Join(memdir.New(t), "jobs.db")
			for range n {
				require.Equal(t, lastWords, life(t, path))
			}
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, path)
				k.maxCrashes = 3
				fn(k)
			})
			return
		}
		synctest.Test(t, func(t *testing.T) {
			k := newKit(t, path)
			k.mortal = true
			live(k)
			t.Fatal("nobody has died")
		})
	})
}

// Rule: a run that kills each process that takes it is dead after as many crashes as the queue
// allows, and other runs continue. An operator can restore it, with its journal.
func (suite) Scenario44PoisonBecomesDead(t *testing.T) {
	lives(t, 3, 3, 1, func(k *kit) {
		other := workflow.Define("other", func(*workflow.Run, int) (int, error) { return 1, nil })
		f := deadly(k, 3)
		k.open(f, other)
		h := find(k, f, "1")
		k.pass(time.Hour)
		info := k.info(h.Run())
		require.Equal(k.t, workflow.Dead, info.Status)
		require.Contains(k.t, info.Error, "poison")
		require.Len(k.t, k.keys(), 3)
		succeeds(k, start(k, other, "1", 0))

		require.NoError(k.t, k.e.Resume(k.t.Context(), h.Run()))
		returns(k, h, 1)
		k.sameKeys("s", 4)
	})
}

// Rule: a run that makes progress between its crashes does not die of them, however many there
// are.
func (suite) Scenario44ProgressForgetsCrashes(t *testing.T) {
	const steps = 4
	lives(t, 2*steps, 2, steps, func(k *kit) {
		f := deadly(k, 2)
		k.open(f)
		returns(k, find(k, f, "1"), steps)
		require.Len(k.t, k.keys(), 3*steps)
	})
}
