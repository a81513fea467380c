package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

// sized is a string that is encoded in n bytes.
func sized(t *testing.T, n int) string {
	t.Helper()
	s := strings.Repeat("x", n)
	for range 2 {
		b, err := driver.EncodePayload(s)
		require.NoError(t, err)
		s = s[:len(s)-(len(b)-n)]
	}
	b, err := driver.EncodePayload(s)
	require.NoError(t, err)
	require.Len(t, b, n)
	return s
}

// Rule: names and IDs may have the documented length, and not one byte more.
func (suite) Scenario41Names(t *testing.T, k *kit) {
	calls := workflow.Define("calls", func(r *workflow.Run, name string) (string, error) {
		var errs []error
		check := func(err error) { errs = append(errs, err) }
		_, err := workflow.Step(r, name, func(context.Context) (int, error) { return 1, nil })
		check(err)
		_, err = workflow.StepTx(r, name, func(Tx) (int, error) { return 1, nil })
		check(err)
		check(workflow.Sleep(r, name, 0))
		_, err = workflow.DefineSignal[int](name).Wait(r, 0)
		if errors.Is(err, workflow.ErrTimeout) {
			err = nil
		}
		check(err)
		_, err = workflow.Go(r, name, func(*workflow.Run) (int, error) { return 1, nil }).Wait(r)
		check(err)
		_, err = workflow.Version(r, name, 1, 1)
		check(err)
		check(workflow.Publish(r, name, 1))
		refused := 0
		for _, err := range errs {
			if errors.Is(err, pawl.ErrInvalid) {
				refused++
			} else if err != nil {
				return "", err
			}
		}
		return fmt.Sprint(refused, " of ", len(errs)), nil
	})
	k.open(calls)
	for name, refused := range map[string]int{
		strings.Repeat("n", workflow.MaxName):   0,
		strings.Repeat("n", workflow.MaxName+1): 7,
		"":                                      7, "a/b": 7, "a#b": 7, "a\x00b": 7, "_a": 7,
	} {
		out, err := outcome(k, start(k, calls, fmt.Sprintf("%q", name), name))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(refused, " of 7"), out, "%q", name)

		flow := workflow.Define(name, func(*workflow.Run, int) (int, error) { return 1, nil })
		_, err = flow.Start(t.Context(), k.e, "1", 1)
		require.Equal(t, refused > 0, errors.Is(err, pawl.ErrInvalid), "%q: %v", name, err)
	}
	for id, ok := range map[string]bool{
		strings.Repeat("i", workflow.MaxID): true, strings.Repeat("i", workflow.MaxID+1): false, "": false, "a\x00b": false, "a/b#c": true,
	} {
		_, err := calls.Start(t.Context(), k.e, id, "s")
		require.Equal(t, ok, err == nil, "%q", id)
	}
}

// Rule: a value may have the documented size, and not one byte more. A result that is too large
// fails its step at once, since the step's outside effect has happened.
func (suite) Scenario41Values(t *testing.T, k *kit) {
	echo := workflow.Define("echo", func(r *workflow.Run, in string) (string, error) {
		w, err := word.Wait(r, workflow.Forever)
		return w[:min(len(w), len(in))], err
	})
	make := workflow.Define("make", func(r *workflow.Run, n int) (string, error) {
		s, err := act(k, r, "make", sized(t, n))
		if err != nil {
			return "", err
		}
		if r.ID() == "output" {
			s += "x"
		}
		return s, nil
	})
	k.codec = nil // the limits are those of the stored form
	k.open(echo, make)
	fits, large := sized(t, workflow.MaxValue), sized(t, workflow.MaxValue+1)
	_, err := echo.Start(t.Context(), k.e, "large", large)
	require.ErrorIs(t, err, workflow.ErrTooLarge)
	h := start(k, echo, "fits", fits)
	require.ErrorIs(t, word.Send(t.Context(), k.e, h.Run(), large, ""), workflow.ErrTooLarge)
	say(k, h.Run(), fits, "")
	returns(k, h, fits)

	returns(k, start(k, make, "fits", workflow.MaxValue), fits)
	for id, n := range map[string]int{"output": workflow.MaxValue, "result": workflow.MaxValue + 1} {
		_, err = outcome(k, start(k, make, id, n))
		require.ErrorIs(t, err, workflow.ErrTooLarge, id)
	}
	require.Equal(t, []string{"make", "make", "make"}, k.effects())
}

// Rule: a journal may have the documented number of entries and bytes. The next call is refused
// with an error that a function may handle.
func (suite) Scenario41Journal(t *testing.T, k *kit) {
	race.SkipLone(t)
	many := workflow.Define("many", func(r *workflow.Run, _ int) (int, error) {
		const branches, perBranch = 100, 98
		_, err := workflow.Each(r, "b", numbers(branches), strconv.Itoa, branches, func(r *workflow.Run, _ int) (int, error) {
			for range perBranch {
				if err := workflow.Sleep(r, "s", -1); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		if err != nil {
			return 0, err
		}
		for range workflow.MaxEntries - branches*perBranch - (1 + branches) { // an Each and each of its branches is an entry
			if err := workflow.Sleep(r, "s", -1); err != nil {
				return 0, err
			}
		}
		if err := workflow.Sleep(r, "one more", -1); !errors.Is(err, workflow.ErrTooMany) {
			return 0, fmt.Errorf("one more: %w", err)
		}
		return 1, nil
	})
	bytes := workflow.Define("bytes", func(r *workflow.Run, _ int) (int, error) {
		for range workflow.MaxJournal / workflow.MaxValue {
			if _, err := workflow.Step(r, "large", func(context.Context) (string, error) { return sized(t, workflow.MaxValue), nil }); err != nil {
				return 0, err
			}
		}
		if err := workflow.Sleep(r, "night", time.Hour); err != nil { // so that it is counted again
			return 0, err
		}
		_, err := workflow.Step(r, "one more", func(context.Context) (int, error) { return 1, nil })
		if !errors.Is(err, workflow.ErrTooLarge) {
			return 0, fmt.Errorf("one more: %w", err)
		}
		_, err = workflow.Step(r, "fails", func(context.Context) (int, error) {
			return 0, errors.New("broken" + strings.Repeat(".", 1000))
		}, workflow.MaxRetries(0))
		if text := err.Error(); !errors.Is(err, workflow.ErrTooLarge) || !strings.Contains(text, "broken") || len(text) > 500 {
			return 0, fmt.Errorf("one that fails: %w", err)
		}
		return 1, nil
	})
	k.codec = nil // the limits are those of the stored form
	k.open(many, bytes)
	h := start(k, many, "1", 0)
	succeeds(k, h)
	require.Equal(t, workflow.MaxEntries, k.info(h.Run()).Steps)
	succeeds(k, start(k, bytes, "1", 0))
}

// Rule: the errors in a journal count, as results do, whatever failed: everything that is
// stored of them, both when they are written and when they are read.
func (suite) Scenario41Errors(t *testing.T, k *kit) {
	const size = 3000
	broken := errors.New(strings.Repeat("x", size))
	child := workflow.Define("child", func(*workflow.Run, int) (int, error) { return 0, broken })
	f := workflow.Define("f", func(r *workflow.Run, _ int) (int, error) {
		_, err := workflow.Step(r, "s", func(context.Context) (int, error) { return 0, fmt.Errorf("wrapped: %w", broken) }, workflow.MaxRetries(1))
		if !errors.Is(err, broken) {
			return 0, err
		}
		if _, err := workflow.Call(r, "c", child, 0); !errors.Is(err, broken) {
			return 0, err
		}
		return 0, workflow.Sleep(r, "night", time.Hour)
	})
	k.open(f, child)
	h := startAndSettle(k, f, "1", 0)
	for range 2 {
		k.settle()
		k.pass(10 * time.Minute) // for the second attempt
		bytes := k.info(h.Run()).Bytes
		require.Greater(t, bytes, int64(6*size), "of each its text, and those that it wraps")
		require.Less(t, bytes, int64(6*size+1000))
		k.crash()
		require.NoError(t, k.e.Resume(t.Context(), h.Run()))
	}
}

// Rule: a run may publish under the documented number of names, and the documented number of
// bytes. A refusal is an error that a function may handle. Existing values can still be
// replaced.
func (suite) Scenario41Published(t *testing.T, k *kit) {
	race.SkipLone(t)
	names := workflow.Define("names", func(r *workflow.Run, fit int) (int, error) {
		for n := range fit {
			if err := workflow.Publish(r, fmt.Sprint(n), n); err != nil {
				return 0, err
			}
		}
		if fit < workflow.MaxPublish {
			return 0, nil
		}
		if err := workflow.Publish(r, "one more", 1); !errors.Is(err, workflow.ErrTooMany) {
			return 0, fmt.Errorf("one more: %w", err)
		}
		return 0, workflow.Publish(r, "0", "again")
	})
	bytes := workflow.Define("bytes", func(r *workflow.Run, _ int) (int, error) {
		fits := workflow.MaxJournal/workflow.MaxValue - 1 // each has a checksum
		for n := range fits {
			if err := workflow.Publish(r, fmt.Sprint(n), sized(t, workflow.MaxValue)); err != nil {
				return 0, err
			}
		}
		if err := workflow.Publish(r, "one more", sized(t, workflow.MaxValue)); !errors.Is(err, workflow.ErrTooLarge) {
			return 0, fmt.Errorf("one more: %w", err)
		}
		return 0, workflow.Publish(r, "0", sized(t, workflow.MaxValue))
	})
	k.codec = nil // the limits are those of the stored form
	k.open(names, bytes)
	h := start(k, names, "1", workflow.MaxPublish)
	succeeds(k, h)
	published, err := k.e.Published(t.Context(), h.Run())
	require.NoError(t, err)
	require.Len(t, published, workflow.MaxPublish)
	succeeds(k, start(k, bytes, "1", 0))
	_, err = outcome(k, start(k, names, "2", 1))
	require.NoError(t, err, "each run has its own")
}

// Rule: the documented number of branches may run concurrently, and the documented number of
// signals may be unconsumed. The next one is refused until a branch has ended, or a signal was
// received.
func (suite) Scenario41BranchesAndSignals(t *testing.T, k *kit) {
	f := workflow.Define("branches", func(r *workflow.Run, _ int) (string, error) {
		branch := func() *workflow.Branch[string] {
			return workflow.Go(r, "b", func(r *workflow.Run) (string, error) {
				k.at("branch")
				return "", nil
			})
		}
		first := branch() // which waits at the gate
		held := make(chan struct{})
		var all []*workflow.Branch[string]
		for range workflow.MaxBranches - 1 {
			all = append(all, workflow.Go(r, "h", func(*workflow.Run) (string, error) {
				<-held
				return "", nil
			}))
		}
		_, err := branch().Wait(r)
		if !errors.Is(err, workflow.ErrTooMany) {
			return "", fmt.Errorf("one more: %w", err)
		}
		k.at("full")
		if _, err := first.Wait(r); err != nil {
			return "", err
		}
		_, err = branch().Wait(r)
		close(held)
		if err != nil {
			return "", err
		}
		if _, err := workflow.All(r, all...); err != nil {
			return "", err
		}
		return word.Wait(r, workflow.Forever)
	})
	branch := k.gate("branch")
	full := k.gate("full")
	k.open(f)
	h := start(k, f, "1", 0)
	<-full.reached
	close(branch.open)
	close(full.open)
	k.settle()
	require.Equal(t, workflow.Waiting, k.info(h.Run()).Status)

	var senders sync.WaitGroup
	for range 50 {
		senders.Go(func() {
			for range workflow.MaxSignals / 50 {
				require.NoError(t, last.Send(t.Context(), k.e, h.Run(), "", ""))
			}
		})
	}
	senders.Wait()
	require.Equal(t, workflow.MaxSignals, k.info(h.Run()).Unread)
	require.ErrorIs(t, last.Send(t.Context(), k.e, h.Run(), "", ""), workflow.ErrTooMany)
	require.ErrorIs(t, word.Send(t.Context(), k.e, h.Run(), "", ""), workflow.ErrTooMany)
}
