package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/workflow"
)

// seenTwice calls check with the result of a step as seen on the first run, and after a death.
func seenTwice[T any](t *testing.T, value T, check func(t *testing.T, first, again T)) {
	t.Helper()
	bubble(t, func(t *testing.T, k *kit) {
		var seen []T
		f := workflow.Define("see", func(r *workflow.Run, _ int) (int, error) {
			v, err := workflow.Step(r, "see", func(context.Context) (T, error) { return value, nil })
			if err != nil {
				return 0, err
			}
			seen = append(seen, v)
			return 0, workflow.Sleep(r, "night", time.Hour)
		})
		k.open(f)
		h := startAndSettle(k, f, "1", 0)
		k.crash()
		succeeds(k, find(k, f, h.ID()))
		require.Len(t, seen, 2)
		check(t, seen[0], seen[1])
	})
}

// identical requires that two values are the same in type and content, including differences
// that == does not see.
func identical[T any](t *testing.T, first, again T) {
	t.Helper()
	require.Equal(t, fmt.Sprintf("%#v", first), fmt.Sprintf("%#v", again))
	require.Equal(t, first, again)
}

// Rule: a step's result is the same on the first run as after a death, whatever its type, since
// it is decoded from the stored form both times.
func (suite) Scenario24ValuesAreEqual(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	type nested struct {
		At   time.Time
		Any  any
		Ptr  *int64
		List []any
		Map  map[string]any
	}
	five := int64(5)
	for _, v := range []any{
		nil, true, int64(math.MaxInt64), int64(math.MinInt64), uint64(math.MaxUint64), int8(-1), 1, -1, 300,
		1.5, float32(0.1), math.Inf(1), "text", []byte{0, 1}, []byte{}, []string{}, []any{1, "a", nil, []any{int64(2)}},
		map[string]any{"n": int64(1), "f": 1.0, "t": time.Unix(5, 6)}, time.Date(2026, 3, 1, 2, 3, 4, 567, zone),
		time.Time{}, time.Hour, nested{At: time.Date(2026, 3, 1, 2, 3, 4, 567, zone), Any: int64(7), Ptr: &five,
			List: []any{time.Unix(1, 2)}, Map: map[string]any{"a": nil}},
	} {
		t.Run(fmt.Sprintf("any of %T", v), func(t *testing.T) { seenTwice(t, v, identical[any]) })
	}
	t.Run("int64", func(t *testing.T) {
		seenTwice(t, int64(1<<53+1), func(t *testing.T, first, again int64) {
			identical(t, first, again)
			require.Equal(t, int64(1<<53+1), first)
		})
	})
	t.Run("time", func(t *testing.T) {
		at := time.Date(2026, 3, 1, 2, 3, 4, 567890123, zone)
		seenTwice(t, at, func(t *testing.T, first, again time.Time) {
			identical(t, first, again)
			require.True(t, first.Equal(at), "to the nanosecond")
		})
	})
	t.Run("a time with a monotonic part", func(t *testing.T) {
		seenTwice(t, time.Now(), identical[time.Time])
	})
	t.Run("struct", func(t *testing.T) {
		v := nested{At: time.Unix(1, 2), Any: 1.5, Ptr: &five, List: []any{}, Map: map[string]any{}}
		seenTwice(t, v, func(t *testing.T, first, again nested) {
			require.Equal(t, first, again)
			require.Equal(t, five, *first.Ptr)
			require.NotSame(t, &five, first.Ptr, "it is a copy on the first run too")
		})
	})
	t.Run("a struct with a field that is not stored", func(t *testing.T) {
		type secret struct{ Open, hidden string }
		seenTwice(t, secret{"a", "b"}, func(t *testing.T, first, again secret) {
			require.Equal(t, secret{"a", ""}, first, "on the first run too")
			require.Equal(t, first, again)
		})
	})
	t.Run("a large one, which lies apart", func(t *testing.T) {
		v := make([]byte, 100_000)
		v[99_999] = 1
		seenTwice(t, v, func(t *testing.T, first, again []byte) {
			require.Equal(t, v, first)
			require.Equal(t, v, again)
		})
	})
}

// errStock and stockError are errors of failing steps.
var errStock = errors.New("out of stock")

type stockError struct{ Left int }

func (e *stockError) Error() string { return fmt.Sprintf("only %d left", e.Left) }

// Rule: the error of a step is the same on the first run as after a death: its text, its type,
// and what errors.Is and errors.As find in it.
func (suite) Scenario24ErrorsAreEqual(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		is, not []error
	}{
		{"a sentinel", errStock, []error{errStock}, []error{fs.ErrNotExist}},
		{"wrapped", fmt.Errorf("reserve: %w", errStock), []error{errStock}, []error{fs.ErrNotExist}},
		{"joined", errors.Join(errStock, fs.ErrNotExist), []error{errStock, fs.ErrNotExist}, []error{fs.ErrExist}},
		{"of a type", &stockError{3}, []error{&stockError{3}}, []error{&stockError{4}, errStock}},
		{"permanent", pawl.Permanent(errStock), []error{errStock}, nil},
	} {
		sub(t, c.name, func(t *testing.T, k *kit) {
			var seen []error
			f := workflow.Define("see", func(r *workflow.Run, _ int) (int, error) {
				_, err := workflow.Step(r, "see", func(context.Context) (int, error) {
					k.effect(r)
					return 0, c.err
				}, workflow.MaxRetries(0))
				seen = append(seen, err)
				return 0, workflow.Sleep(r, "night", time.Hour)
			})
			k.open(f)
			startAndSettle(k, f, "1", 0)
			k.crash()
			succeeds(k, find(k, f, "1"))
			k.sameKeys("see", 1)
			require.Len(t, seen, 2)
			require.Equal(t, seen[0], seen[1])
			require.ErrorContains(t, seen[0], c.err.Error())
			for _, err := range seen {
				var step *workflow.StepError
				require.ErrorAs(t, err, &step)
				require.Equal(t, "see", step.Step)
				var own *stockError
				require.False(t, errors.As(err, &own), "values are not remembered, so they are not there at first")
				for _, target := range c.is {
					require.ErrorIs(t, err, target)
				}
				for _, target := range c.not {
					require.NotErrorIs(t, err, target)
				}
			}
		})
	}
}

// Rule: if a result cannot be stored, or not be read back into its type, the step fails on the
// first run: nothing is seen that a death would change.
func (suite) Scenario24NotStorable(t *testing.T) {
	type closed struct{ C chan int }
	check := func(t *testing.T, step func(r *workflow.Run, k *kit) error, text string) {
		bubble(t, func(t *testing.T, k *kit) {
			var seen []error
			f := workflow.Define("see", func(r *workflow.Run, _ int) (int, error) {
				seen = append(seen, step(r, k))
				return 0, workflow.Sleep(r, "night", time.Hour)
			})
			k.open(f)
			startAndSettle(k, f, "1", 0)
			k.crash()
			succeeds(k, find(k, f, "1"))
			k.sameKeys("see", 1) // it is not retried: it took effect
			require.Len(t, seen, 2)
			require.Equal(t, seen[0], seen[1])
			require.ErrorContains(t, seen[0], text)
		})
	}
	t.Run("a channel", func(t *testing.T) {
		check(t, func(r *workflow.Run, k *kit) error {
			_, err := workflow.Step(r, "see", func(context.Context) (closed, error) {
				k.effect(r)
				return closed{make(chan int)}, nil
			})
			return err
		}, "the result cannot be stored")
	})
	t.Run("an interface with methods", func(t *testing.T) {
		check(t, func(r *workflow.Run, k *kit) error {
			_, err := workflow.Step(r, "see", func(context.Context) (fmt.Stringer, error) {
				k.effect(r)
				return time.Hour, nil
			})
			return err
		}, "the result cannot be read back")
	})
	t.Run("too large", func(t *testing.T) {
		check(t, func(r *workflow.Run, k *kit) error {
			_, err := workflow.Step(r, "see", func(context.Context) ([]byte, error) {
				k.effect(r)
				return make([]byte, workflow.MaxValue), nil
			})
			return err
		}, "value is too large")
	})
}
