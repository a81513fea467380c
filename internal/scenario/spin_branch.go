package scenario

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

// loops continue until the branch of a round succeeds.
var loops = map[string]func(r *workflow.Run){
	"branch": func(r *workflow.Run) {
		for {
			if _, err := workflow.Go(r, "b", long).Wait(r); err == nil {
				return
			}
		}
	},
	"each": func(r *workflow.Run) {
		for {
			if _, err := workflow.Each(r, "e", []int{1, 2, 3}, strconv.Itoa, 2, func(r *workflow.Run, _ int) (int, error) { return long(r) }); err == nil {
				return
			}
		}
	},
	"deep": func(r *workflow.Run) {
		for {
			_, err := workflow.Go(r, "b", func(r *workflow.Run) (int, error) { return workflow.Go(r, "c", long).Wait(r) }).Wait(r)
			if err == nil {
				return
			}
		}
	},
}

func long(r *workflow.Run) (int, error) {
	return workflow.Step(r, "s", func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
}

// Rule: a loop that begins a new branch in each round also ends when the run is cancelled, or
// when its own branch has lost a race, although each branch is refused only once.
func (suite) Scenario37SpinningOverBranchesIsEnded(t *testing.T) {
	for name, loop := range loops {
		for _, lost := range []bool{false, true} {
			sub(t, name, func(t *testing.T, k *kit) {
				f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
					if !lost {
						loop(r)
						return 1, nil
					}
					loser := workflow.Go(r, "loser", func(r *workflow.Run) (int, error) { loop(r); return 1, nil })
					winner := workflow.Go(r, "winner", func(r *workflow.Run) (int, error) { _, err := last.Wait(r, workflow.Forever); return 1, err })
					_, _, err := workflow.Race(r, "first", winner, loser)
					return 1, err
				})
				k.open(f)
				h := startAndSettle(k, f, "1", 0)
				want := workflow.Cancelled
				if lost {
					want = workflow.Done
					require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "me", ""))
				} else {
					require.NoError(t, h.Cancel(t.Context(), "enough"))
				}
				k.settle()
				require.Equal(t, want, k.info(h.Run()).Status)
			})
		}
	}
}

// Rule: so does a loop that fills the journal, with branches or with versions.
func (suite) Scenario41SpinningInAFullJournalIsEnded(t *testing.T) {
	race.SkipLone(t)
	for name, round := range map[string]func(r *workflow.Run, n int) error{
		"branch": func(r *workflow.Run, _ int) error {
			_, err := workflow.Go(r, "b", func(r *workflow.Run) (int, error) { return 1, workflow.Sleep(r, "s", 0) }).Wait(r)
			return err
		},
		"version": func(r *workflow.Run, _ int) error { _, err := workflow.Version(r, "v", 1, 1); return err },
	} {
		sub(t, name, func(t *testing.T, k *kit) {
			f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
				for range workflow.MaxEntries {
					if err := workflow.Sleep(r, "full", 0); err != nil {
						return 0, err
					}
				}
				for n := 0; round(r, n) != nil; n++ {
					if n == 3*workflow.MaxEntries {
						return n, nil // otherwise it would continue forever
					}
				}
				return 1, nil
			})
			k.open(f)
			h := start(k, f, "1", 0)
			_, err := outcome(k, h)
			require.ErrorContains(t, err, "Restart begins a new one")
		})
	}
}

// Rule: the losers of many races do not count as such a loop, however often their branches have
// one name: the scope that begins them continues.
func (suite) Scenario34ManyLosersAreNoSpin(t *testing.T, k *kit) {
	const rounds, each = 98, 100 // as many as a journal has room for
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		for range rounds {
			decided := make(chan struct{})
			branches := []*workflow.Branch[int]{workflow.Go(r, "winner", func(*workflow.Run) (int, error) { return 1, nil })}
			for range each {
				branches = append(branches, workflow.Go(r, "loser", func(r *workflow.Run) (int, error) {
					<-decided
					return 1, workflow.Sleep(r, "s", 0)
				}))
			}
			_, _, err := workflow.Race(r, "first", branches...)
			close(decided)
			if err != nil {
				return 0, err
			}
			for _, b := range branches[1:] {
				_, _ = b.Wait(r)
			}
		}
		return 1, nil
	})
	k.open(f)
	succeeds(k, start(k, f, "1", 0))
}
