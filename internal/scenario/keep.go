package scenario

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// full is a flow that leaves rows in every bucket: large and small results, versions, a child,
// published values, and signals, one of which it receives. It ends when it receives the last
// signal.
func full(k *kit) *workflow.Flow[string, string] {
	return workflow.Define("full", func(r *workflow.Run, in string) (string, error) {
		if _, err := workflow.Version(r, "v", 1, 2); err != nil {
			return "", err
		}
		large, err := act(k, r, "large", strings.Repeat("x", 100_000))
		if err != nil {
			return "", err
		}
		if err := workflow.Publish(r, "percent", 50); err != nil {
			return "", err
		}
		if err := lines.Append(r, "half"); err != nil {
			return "", err
		}
		w, err := word.Wait(r, workflow.Forever)
		if err != nil {
			return "", err
		}
		small, err := act(k, r, "small", "small")
		if err != nil {
			return "", err
		}
		if _, err := workflow.Call(r, "child", nap, 0); err != nil {
			return "", err
		}
		l, err := last.Wait(r, workflow.Forever)
		return fmt.Sprint(in, len(large), w, small, l), err
	}, workflow.Retain(24*time.Hour))
}

// startFull starts a run of full that waits for the last signal.
func startFull(k *kit, id string) *workflow.Handle[string] {
	k.t.Helper()
	h := start(k, full(k), id, "in")
	for i, w := range []string{"got", "unread", "unread"} {
		say(k, h.Run(), w, fmt.Sprint("key ", i))
	}
	k.pass(time.Hour) // for the child
	require.Equal(k.t, []string{"last"}, k.info(h.Run()).Waits)
	return h
}

func endFull(k *kit, h *workflow.Handle[string], l string) {
	k.t.Helper()
	require.NoError(k.t, last.Send(k.t.Context(), k.e, h.Run(), l, ""))
	returns(k, h, "in"+fmt.Sprint(100_000)+"gotsmall"+l)
}

// rowsOf counts a run's rows in each bucket, with a digest of their content.
func (k *kit) rowsOf(run pawl.ID) (counts map[string]int, sum [sha256.Size]byte) {
	k.t.Helper()
	counts = make(map[string]int)
	h := sha256.New()
	require.NoError(k.t, k.q.ViewRows(k.t.Context(), func(tx driver.Reader) error {
		for _, table := range space.Tables() {
			err := tx.Scan(table, driver.Span{}, func(key, value []byte) bool {
				if bytes.Contains(key, run[:]) || bytes.Contains(value, run[:]) {
					counts[table.String()]++
					addRow(h, table, key, value)
				}
				return true
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return counts, [sha256.Size]byte(h.Sum(nil))
}

// Rule: a fork has the results of the calls before the step, including separate copies of large
// ones, and makes that call and all later ones itself. Signals and published values are not
// copied, and the original run is unchanged.
func (suite) Scenario39Fork(t *testing.T, k *kit) {
	f := full(k)
	k.open(f, nap)
	h := startFull(k, "1")
	for _, ended := range []bool{false, true} {
		if ended {
			endFull(k, h, "over")
		}
		_, before := k.rowsOf(h.Run())
		effects := len(k.keys())
		id := fmt.Sprintf("fork ended=%v", ended)
		fork, err := k.e.Fork(t.Context(), h.Run(), "small", id)
		require.NoError(t, err)
		_, err = k.e.Fork(t.Context(), h.Run(), "small", id)
		require.ErrorIs(t, err, workflow.ErrConflict)
		k.settle()
		require.Equal(t, h.Run(), k.info(fork).Forked)
		require.Len(t, k.keys(), effects+1)
		require.Equal(t, fork.String()+"/small", k.keys()[effects])
		require.Contains(t, k.journal(fork), "wait word done: got")
		require.Contains(t, k.journal(fork)[1], "step large done: xxx")
		signals, err := k.e.Signals(t.Context(), fork)
		require.NoError(t, err)
		require.Empty(t, signals)
		published, err := k.e.Published(t.Context(), fork)
		require.NoError(t, err)
		require.Empty(t, published)
		require.Empty(t, linesOf(k, fork))
		_, after := k.rowsOf(h.Run())
		require.Equal(t, before, after)

		k.crash()
		k.pass(time.Hour)
		endFull(k, find(k, f, id), "fork")
		h = find(k, f, "1")
	}
	_, err := k.e.Prune(t.Context(), k.now(), nil) // whatever becomes of one run, the other has its own
	require.NoError(t, err)
	_, err = k.e.Fork(t.Context(), h.Run(), "", "late")
	require.ErrorIs(t, err, workflow.ErrNotFound)
}

// Rule: a run that restarts keeps its name and the signals that it has not received, and
// nothing of its journal: its steps run again, under other keys, with the new input.
func (suite) Scenario42Restart(t *testing.T, k *kit) {
	f := workflow.Define("loop", func(r *workflow.Run, round int) (string, error) {
		if _, err := workflow.Version(r, fmt.Sprint("round ", round), 1, 1); err != nil {
			return "", err
		}
		if _, err := act(k, r, "large", strings.Repeat("x", 10_000)); err != nil {
			return "", err
		}
		w, err := word.Wait(r, workflow.Forever)
		if err != nil {
			return "", err
		}
		b := workflow.Go(r, "aside", func(r *workflow.Run) (int, error) { return workflow.Call(r, "child", nap, 0) })
		if w != "end" {
			first := workflow.Go(r, "ahead", func(r *workflow.Run) (int, error) { return 0, workflow.Sleep(r, "s", time.Minute) })
			if _, _, err := workflow.Race(r, "race", first, b); err != nil {
				return "", err
			}
			return "", workflow.Restart(r, round+1)
		}
		if _, err := b.Wait(r); err != nil {
			return "", err
		}
		return fmt.Sprint(w, round), nil
	})
	k.open(f, nap)
	h := start(k, f, "1", 0)
	for i, w := range []string{"a", "b", "c"} {
		say(k, h.Run(), w, fmt.Sprint(i))
	}
	k.pass(3 * time.Minute)
	info := k.info(h.Run())
	require.Equal(t, "1", info.ID)
	require.Equal(t, 3, info.Restarts)
	require.Zero(t, info.Unread)
	require.Equal(t, workflow.Waiting, info.Status)
	require.Len(t, k.journal(h.Run()), 3)
	require.Equal(t, "version round 3 done: 1", k.journal(h.Run())[0])
	counts, _ := k.rowsOf(h.Run())
	require.Equal(t, map[string]int{"runs": 1, "ids": 1, "steps": 3, "blobs": 1, "seen": 3}, counts)
	require.Len(t, k.effects(), 4)
	require.Len(t, distinct(k.keys()), 4)
	input, err := k.e.Input(t.Context(), h.Run())
	require.NoError(t, err)
	var round int
	require.NoError(t, driver.DecodePayload(input, &round))
	require.Equal(t, 3, round)

	say(k, h.Run(), "c", "2") // is still known
	k.crash()
	for _, child := range []string{"1/aside/child", "1/aside/child@1", "1/aside/child@2"} {
		require.Equal(t, workflow.Cancelled, k.info(find(k, nap, child).Run()).Status)
	}
	say(k, h.Run(), "end", "")
	returns(k, find(k, f, "1"), "end3")
	again, err := f.Start(t.Context(), k.e, "1", 0)
	require.NoError(t, err)
	require.Equal(t, h.Run(), again.Run(), "the name is taken by what it was started with")
}

func distinct(all []string) map[string]bool {
	set := make(map[string]bool)
	for _, s := range all {
		set[s] = true
	}
	return set
}

// Rule: at the end of its retention a run is removed completely from all buckets, whoever
// removes it. Its name is free, and open or kept runs stay complete, whatever their age.
func (suite) Scenario43Retention(t *testing.T) {
	for _, by := range []string{"time", "prune"} {
		sub(t, by, func(t *testing.T, k *kit) {
			f := full(k)
			failing := workflow.Define("failing", func(*workflow.Run, int) (int, error) { return 0, errors.New("broken") },
				workflow.Retain(48*time.Hour))
			k.open(f, nap, failing)
			gone, open := startFull(k, "gone"), startFull(k, "open")
			endFull(k, gone, "over")
			counts, _ := k.rowsOf(gone.Run())
			for _, bucket := range []string{"runs", "ids", "steps", "blobs", "signals", "seen", "published", "streams", "items", "ended"} {
				require.NotZero(t, counts[bucket], bucket)
			}
			_, err := outcome(k, start(k, failing, "kept", 0))
			require.ErrorContains(t, err, "broken")
			kept := find(k, failing, "kept").Run()
			child := find(k, nap, "gone/child").Run()
			_, openRows := k.rowsOf(open.Run())
			_, keptRows := k.rowsOf(kept)

			remove := func() {
				t.Helper()
				if by == "prune" {
					_, err := k.e.Prune(t.Context(), k.now().Add(-24*time.Hour+1), nil)
					require.NoError(t, err)
				}
			}
			k.jump(23 * time.Hour)
			k.pass(time.Hour - 1)
			remove()
			require.Equal(t, workflow.Done, k.info(gone.Run()).Status)
			k.pass(1)
			remove()
			counts, _ = k.rowsOf(gone.Run())
			require.Empty(t, counts)
			_, err = f.Handle(t.Context(), k.e, "gone")
			require.ErrorIs(t, err, workflow.ErrNotFound)
			_, err = gone.Result(t.Context())
			require.ErrorIs(t, err, workflow.ErrNotFound)

			if by == "time" { // its children have their own retention
				require.Equal(t, workflow.Done, k.info(child).Status)
				_, rows := k.rowsOf(kept)
				require.Equal(t, keptRows, rows)
			}
			_, rows := k.rowsOf(open.Run())
			require.Equal(t, openRows, rows)
			k.jump(1000 * 24 * time.Hour)
			_, err = outcome(k, start(k, failing, "last", 0))
			require.Error(t, err)
			_, rows = k.rowsOf(open.Run())
			require.Equal(t, openRows, rows)
			endFull(k, open, "at last")

			again := startFull(k, "gone")
			require.NotEqual(t, gone.Run(), again.Run())
			endFull(k, again, "again")
			require.NoError(t, k.e.Check(t.Context()))
		})
	}
}

// Rule: an input or output is stored in the row of the run if it is short, and apart if it is not. A restart may
// change which, and leaves one of them. A fork and a second start read it from either place.
func (suite) Scenario42ValuesGrowAndShrink(t *testing.T, k *kit) {
	long := strings.Repeat("long ", 200)
	next := map[string]string{"a": "b", "b": long + "1", long + "1": long + "2", long + "2": "c", "c": "end"}
	f := workflow.Define("rounds", func(r *workflow.Run, in string) (string, error) {
		if _, err := word.Wait(r, workflow.Forever); err != nil {
			return "", err
		}
		if in == "end" || in == "long end" {
			return strings.Repeat(in, len(in)*len(in)), nil
		}
		return "", workflow.Restart(r, next[in])
	})
	k.open(f)
	h := start(k, f, "1", "a")
	for in := "a"; in != "end"; in = next[in] {
		k.settle()
		stored, err := k.e.Input(t.Context(), h.Run())
		require.NoError(t, err)
		var was string
		require.NoError(t, driver.DecodePayload(stored, &was))
		require.Equal(t, in, was)
		counts, _ := k.rowsOf(h.Run())
		require.Equal(t, len(in)/len(long), counts["blobs"], "the input is in one place")
		fork, err := k.e.Fork(t.Context(), h.Run(), "", "fork of "+in[len(in)-1:]+fmt.Sprint(len(in)))
		require.NoError(t, err)
		stored, err = k.e.Input(t.Context(), fork)
		require.NoError(t, err)
		require.NoError(t, driver.DecodePayload(stored, &was))
		require.Equal(t, in, was)
		require.NoError(t, k.e.Check(t.Context()))
		k.crash()
		say(k, h.Run(), "on", fmt.Sprint(len(in), in[len(in)-1:]))
	}
	say(k, h.Run(), "on", "end")
	h = find(k, f, "1")
	returns(k, h, strings.Repeat("end", 9))
	counts, _ := k.rowsOf(h.Run())
	require.Zero(t, counts["blobs"])
	for id, in := range map[string]string{"short": "end", "long": "long end"} {
		h := start(k, f, id, in)
		again, err := f.Start(t.Context(), k.e, id, in)
		require.NoError(t, err)
		require.Equal(t, h.Run(), again.Run())
		_, err = f.Start(t.Context(), k.e, id, "another")
		require.ErrorIs(t, err, workflow.ErrConflict)
		say(k, h.Run(), "on", "")
		returns(k, h, strings.Repeat(in, len(in)*len(in)))
	}
	require.NoError(t, k.e.Check(t.Context()))
}
