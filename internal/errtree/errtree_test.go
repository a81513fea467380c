package errtree_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/errtree"
)

type wanted struct{ n int }

func (w *wanted) Error() string      { return fmt.Sprint("wanted ", w.n) }
func (w *wanted) StackTrace() string { return fmt.Sprint("stack ", w.n) }

// converts is an error that turns itself into another one.
type converts struct{ ok bool }

func (c converts) Error() string { return "converts" }
func (c converts) As(target any) bool {
	if to, ok := target.(**wanted); ok && c.ok {
		*to = &wanted{9}
		return true
	}
	return false
}

type empty struct{ error }

func (empty) Unwrap() error { return nil }

// Rule: Find returns what errors.As finds.
func TestFindIsAs(t *testing.T) {
	plain := errors.New("plain")
	for _, err := range []error{
		nil,
		plain,
		&wanted{1},
		(*wanted)(nil),
		fmt.Errorf("outer: %w", &wanted{2}),
		fmt.Errorf("two: %w, %w", plain, fmt.Errorf("deep: %w", &wanted{3})),
		errors.Join(plain, &wanted{4}, &wanted{5}),
		errors.Join(nil, plain),
		errors.Join(errors.Join(plain), fmt.Errorf("after: %w", &wanted{6})),
		converts{true},
		converts{},
		fmt.Errorf("outer: %w", errors.Join(converts{}, converts{true}, &wanted{7})),
		empty{plain},
		errors.Join(empty{plain}, &wanted{8}),
		&fs.PathError{Err: &wanted{10}},
	} {
		var as *wanted
		ok := errors.As(err, &as)
		found, also := errtree.Find[*wanted](err)
		require.Equal(t, ok, also, "%v", err)
		require.Equal(t, as, found, "%v", err)

		var traced interface{ StackTrace() string }
		ok = errors.As(err, &traced)
		stack, also := errtree.Find[interface{ StackTrace() string }](err)
		require.Equal(t, ok, also, "%v", err)
		require.Equal(t, traced, stack, "%v", err)
	}
}

// Rule: a search of an error that converts itself into nothing needs no memory.
func TestFindNeedsNoMemory(t *testing.T) {
	err := fmt.Errorf("outer: %w", errors.New("inner"))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, ok := errtree.Find[*wanted](err); ok {
			t.Fatal("found")
		}
	}))
}
