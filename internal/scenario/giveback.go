package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// limited is a flow in which a branch that receives a word races with a branch that waits for
// nothing. The function returns the result of the race, the result of the loser's Wait, and the
// next word.
func limited(k *kit) *workflow.Flow[bool, []string] {
	return workflow.Define("limited", func(r *workflow.Run, acts bool) ([]string, error) {
		loser := workflow.Go(r, "loser", func(r *workflow.Run) (string, error) {
			k.at("loser")
			w, err := word.Wait(r, workflow.Forever)
			if err != nil {
				return "", err
			}
			r.Undo("forget the word", func(context.Context) error { return errors.New("nobody has named it") }, workflow.MaxRetries(0))
			k.at("between")
			if acts {
				if w, err = workflow.Step(r, "act", func(context.Context) (string, error) { return "acted on " + w, nil }); err != nil {
					return "", err
				}
			}
			k.at("loser has it")
			return w, nil
		})
		winner := workflow.Go(r, "winner", func(*workflow.Run) (string, error) {
			k.at("winner")
			return "winner", nil
		})
		_, first, err := workflow.Race(r, "first", winner, loser)
		if err != nil {
			return nil, err
		}
		lost, err := loser.Wait(r)
		if errors.Is(err, workflow.ErrAbandoned) {
			lost, err = "abandoned", nil
		}
		if err != nil {
			return nil, err
		}
		next, err := word.Wait(r, time.Hour)
		if errors.Is(err, workflow.ErrTimeout) {
			next, err = "nothing", nil
		}
		if err == nil {
			err = workflow.Sleep(r, "night", time.Hour) // so that the journal is read again
		}
		if next == "fail" {
			err = errors.New("as it was asked")
		}
		return []string{first, lost, next}, err
	})
}

// pending returns the words that a run has not read, in order.
func pending(k *kit, run pawl.ID) (words []string) {
	k.t.Helper()
	signals, err := k.e.Signals(k.t.Context(), run)
	require.NoError(k.t, err)
	for _, s := range signals {
		var w string
		require.NoError(k.t, driver.DecodePayload(s.Payload, &w))
		words = append(words, w)
	}
	require.Equal(k.t, len(words), k.info(run).Unread)
	return words
}

// Rule: the commit that decides a race gives back the signal that a loser received and has not
// used, together with the decision or not at all. The branch then has no result, before a crash
// and after it.
func (suite) Scenario34LoserGivesBackItsSignal(t *testing.T) {
	eachDeath(t, func(at death) story {
		return story{
			first: func(k *kit) {
				winner, has := k.gate("winner"), k.gate("loser has it")
				k.open(limited(k))
				h := start(k, limited(k), "1", false)
				say(k, h.Run(), "hello", "")
				say(k, h.Run(), "again", "")
				<-has.reached
				require.Equal(k.t, []string{"again"}, pending(k, h.Run()))
				g := k.hold()
				close(winner.open)
				g.endLife(at)
			},
			then: func(k *kit) {
				k.slots = -1
				k.open(limited(k))
				h := find(k, limited(k), "1")
				if at == before {
					require.Equal(k.t, []string{"again"}, pending(k, h.Run()))
					return // either branch may win now
				}
				require.Equal(k.t, []string{"hello", "again"}, pending(k, h.Run()))
				require.NoError(k.t, k.e.Check(k.t.Context()))
				k.restartWithSlots(8)
				returns(k, find(k, limited(k), "1"), []string{"winner", "abandoned", "hello"})
				require.Equal(k.t, []string{"again"}, pending(k, h.Run()))
			},
		}
	})
}

// Rule: a loser takes no signal once the race is being decided, and a signal that it took while
// the decision waited is given back.
func (suite) Scenario34TakeUnderWay(t *testing.T) {
	for _, taken := range []bool{false, true} {
		sub(t, fmt.Sprintf("taken=%v", taken), func(t *testing.T, k *kit) {
			loser, winner := k.gate("loser"), k.gate("winner")
			k.open(limited(k))
			h := start(k, limited(k), "1", false)
			say(k, h.Run(), "hello", "")
			<-loser.reached
			<-winner.reached
			g := k.hold()
			close(loser.open) // its take waits for the queue
			k.settle()
			if taken {
				rest := make(chan struct{})
				answer := g.last(func(driver.Writer) error { // it has taken the signal, and does not know it
					<-rest
					return nil
				})
				g.commit()
				close(winner.open)
				k.settle()
				close(rest)
				require.NoError(t, <-answer)
			} else {
				close(winner.open)
				g.commit()
			}
			returns(k, h, []string{"winner", "abandoned", "hello"})
			require.Empty(t, pending(k, h.Run()))
			require.NoError(t, k.e.Check(t.Context()))
		})
	}
}

// Rule: a signal that a loser has used stays used, even if the race is decided after a crash.
// So it is decided once each branch has reached the end of the journal.
func (suite) Scenario34UsedSignalStaysUsed(t *testing.T) {
	for _, crash := range []bool{false, true} {
		sub(t, fmt.Sprintf("crash=%v", crash), func(t *testing.T, k *kit) {
			winner, has := k.gate("winner"), k.gate("loser has it")
			k.open(limited(k))
			h := start(k, limited(k), "1", true)
			say(k, h.Run(), "hello", "")
			<-has.reached
			if crash {
				between := k.gate("between")
				has = k.gate("loser has it")
				k.linger() // the step that used it is in the file
				k.crash()
				h = find(k, limited(k), "1")
				<-between.reached
				k.settle()
				require.NotContains(t, k.journal(h.Run()), "race first done")
				close(between.open)
				k.settle()
			} else {
				close(winner.open)
				k.settle()
			}
			require.Empty(t, pending(k, h.Run()))
			close(has.open)
			returns(k, h, []string{"winner", "acted on hello", "nothing"})
		})
	}
}

// Rule: undo steps that a loser named after a signal that it gave back do not run.
func (suite) Scenario34UndoOfASignalThatWentBack(t *testing.T, k *kit) {
	winner, has := k.gate("winner"), k.gate("loser has it")
	k.open(limited(k))
	h := start(k, limited(k), "1", false)
	say(k, h.Run(), "fail", "")
	<-has.reached
	close(winner.open)
	k.settle()
	close(has.open)
	_, err := outcome(k, h)
	require.ErrorContains(t, err, "as it was asked")
	require.NotContains(t, err.Error(), "not all was undone")
}

// both is a flow that collects a word and a last word in nested branches, within an hour.
func both(k *kit) *workflow.Flow[int, string] {
	get := func(r *workflow.Run, s *workflow.Signal[string]) *workflow.Branch[string] {
		return workflow.Go(r, s.Name(), func(r *workflow.Run) (string, error) { return s.Wait(r, workflow.Forever) })
	}
	return workflow.Define("both", func(r *workflow.Run, _ int) (string, error) {
		pair := workflow.Go(r, "pair", func(r *workflow.Run) (string, error) {
			first, err := word.Wait(r, workflow.Forever)
			if err != nil {
				return "", err
			}
			_, err = workflow.All(r, get(r, word), get(r, last))
			return first, err
		})
		limit := workflow.Go(r, "limit", func(r *workflow.Run) (string, error) { return "late", workflow.Sleep(r, "hour", time.Hour) })
		_, v, err := workflow.Race(r, "first", pair, limit)
		if err != nil {
			return "", err
		}
		return v, workflow.Sleep(r, "night", time.Hour)
	})
}

// Rule: a branch gives back all signals that it and the branches below it have received, in
// order, before those that arrived later. The journal still fits the code and an export.
func (suite) Scenario34BranchesGiveBackAll(t *testing.T, k *kit) {
	k.open(both(k))
	h := start(k, both(k), "1", 0)
	say(k, h.Run(), "one", "")
	say(k, h.Run(), "two", "")
	say(k, h.Run(), "three", "")
	k.settle()
	require.Equal(t, []string{"three"}, pending(k, h.Run()))
	k.restart("2")
	h = find(k, both(k), "1")
	k.pass(time.Hour)
	require.Equal(t, []string{"one", "two", "three"}, pending(k, h.Run()))
	k.restart("3")
	k.settle()
	require.Equal(t, workflow.Sleeping, k.info(h.Run()).Status, k.info(h.Run()).Error)
	require.NoError(t, k.e.Verify(t.Context(), h.Run()))
	require.NoError(t, k.e.Check(t.Context()))
	rows, err := k.e.Rows(t.Context(), h.Run(), "")
	require.NoError(t, err)
	var c workflow.RowsCheck
	carried, err := c.Add(&rows)
	require.NoError(t, err)
	require.Equal(t, 3, carried.Unread)
	returns(k, find(k, both(k), "1"), "late")
}

// Rule: a fork has the signals received by the calls before it, and gives them back itself. It
// does not have a Wait whose signal was given back.
func (suite) Scenario39ForkBeforeASignalWentBack(t *testing.T, k *kit) {
	f := both(k)
	k.warm = cold // so the race begins in a wake, after the sleep, and its fork has slept
	k.open(f)
	h := start(k, f, "1", 0)
	say(k, h.Run(), "one", "")
	k.settle()
	early, err := k.e.Fork(t.Context(), h.Run(), "pair/word#2/word", "early") // it has received the first word
	require.NoError(t, err)
	k.settle()
	say(k, early, "two", "")
	k.pass(time.Hour)
	require.Equal(t, []string{"one"}, pending(k, h.Run()))
	require.Equal(t, []string{"one", "two"}, pending(k, early))
	late, err := k.e.Fork(t.Context(), h.Run(), "first", "late")
	require.NoError(t, err)
	k.settle()
	require.False(t, slices.ContainsFunc(k.entries(late), func(e workflow.Entry) bool {
		return e.Step() == "pair/word" && e.State != workflow.EntryPending // the fork itself may wait until its race is decided
	}), "%v", k.journal(late))
	say(k, late, "two", "")
	require.Equal(t, []string{"two"}, pending(k, late))
	require.NoError(t, k.e.Check(t.Context()))
}

// Rule: a fork omits the versions of a branch behind a call that it omits. So the unchanged code of a branch whose
// signal was given back begins anew, and asks for its version when it gets there.
func (suite) Scenario39ForkBeforeAVersion(t *testing.T, k *kit) {
	f := workflow.Define("versioned", func(r *workflow.Run, _ int) (string, error) {
		loser := workflow.Go(r, "loser", func(r *workflow.Run) (string, error) {
			if _, err := word.Wait(r, workflow.Forever); err != nil {
				return "", err
			}
			if _, err := workflow.Version(r, "tax", 1, 2); err != nil {
				return "", err
			}
			return word.Wait(r, workflow.Forever)
		})
		winner := workflow.Go(r, "winner", func(r *workflow.Run) (string, error) {
			if err := workflow.Sleep(r, "before x", 90*time.Minute); err != nil {
				return "", err
			}
			return "won", workflow.Sleep(r, "after x", 30*time.Minute)
		})
		if err := workflow.Sleep(r, "hour", time.Hour); err != nil {
			return "", err
		}
		if _, err := act(k, r, "x", 1); err != nil {
			return "", err
		}
		_, out, err := workflow.Race(r, "first", loser, winner)
		if err != nil {
			return "", err
		}
		return out, workflow.Sleep(r, "night", time.Hour)
	})
	k.open(f)
	h := start(k, f, "1", 0)
	say(k, h.Run(), "hello", "")
	k.pass(2 * time.Hour)
	require.Contains(t, k.journal(h.Run()), "version loser/tax done: 2")
	require.Equal(t, []string{"hello"}, pending(k, h.Run()))
	fork, err := k.e.Fork(t.Context(), h.Run(), "x", "fork")
	require.NoError(t, err)
	k.settle()
	require.Equal(t, workflow.Waiting, k.info(fork).Status, k.info(fork).Error)
	returns(k, find(k, f, "fork"), "won")
	require.NoError(t, k.e.Check(t.Context()))
}
