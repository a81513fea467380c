package pawl_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

var errInner = &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}

// wrappings are the ways in which a handler passes an error on.
var wrappings = map[string]func(error) error{
	"as it is":        func(err error) error { return err },
	"wrapped by %w":   func(err error) error { return fmt.Errorf("send mail: %w", err) },
	"wrapped twice":   func(err error) error { return fmt.Errorf("a: %w", fmt.Errorf("b: %w", err)) },
	"joined":          func(err error) error { return errors.Join(errors.New("other"), err) },
	"one of two in w": func(err error) error { return fmt.Errorf("%w and %w", errors.New("other"), err) },
}

func requireInner(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, fs.ErrNotExist, "errors.Is reaches what the handler met")
	var path *fs.PathError
	require.ErrorAs(t, err, &path, "and so does errors.As")
	require.Same(t, errInner, path)
}

func TestPermanentIsSeenThroughWrapping(t *testing.T) {
	for name, wrap := range wrappings {
		t.Run(name, func(t *testing.T) {
			err := wrap(pawl.Permanent(errInner))
			require.True(t, pawl.IsPermanent(err))
			requireInner(t, err)

			_, ok := pawl.RetryDelay(err)
			require.False(t, ok)
			_, ok = pawl.SnoozeDelay(err)
			require.False(t, ok)
		})
	}
	require.Equal(t, errInner.Error(), pawl.Permanent(errInner).Error(), "the mark adds no words")
}

func TestRetryAfterIsSeenThroughWrapping(t *testing.T) {
	for name, wrap := range wrappings {
		t.Run(name, func(t *testing.T) {
			err := wrap(pawl.RetryAfter(90*sec, errInner))
			delay, ok := pawl.RetryDelay(err)
			require.True(t, ok)
			require.Equal(t, 90*sec, delay)
			requireInner(t, err)

			require.False(t, pawl.IsPermanent(err))
			_, ok = pawl.SnoozeDelay(err)
			require.False(t, ok)
		})
	}
	require.Equal(t, errInner.Error(), pawl.RetryAfter(sec, errInner).Error(), "the mark adds no words")
}

func TestSnoozeIsSeenThroughWrapping(t *testing.T) {
	for name, wrap := range wrappings {
		t.Run(name, func(t *testing.T) {
			err := wrap(pawl.Snooze(90 * sec))
			delay, ok := pawl.SnoozeDelay(err)
			require.True(t, ok)
			require.Equal(t, 90*sec, delay)

			require.False(t, pawl.IsPermanent(err))
			_, ok = pawl.RetryDelay(err)
			require.False(t, ok)
		})
	}
}

// A handler may end with `return pawl.Permanent(err)` whether err is nil or not.
func TestNoErrorStaysNoError(t *testing.T) {
	require.NoError(t, pawl.Permanent(nil))
	require.NoError(t, pawl.RetryAfter(sec, nil))
}

func TestNegativeDelayOfAnOutcomeCountsAsZero(t *testing.T) {
	for _, given := range []time.Duration{-1, -time.Hour, -1 << 63, 0} {
		delay, ok := pawl.RetryDelay(pawl.RetryAfter(given, errInner))
		require.True(t, ok, "0 is a delay too")
		require.Zero(t, delay)

		delay, ok = pawl.SnoozeDelay(pawl.Snooze(given))
		require.True(t, ok)
		require.Zero(t, delay)
	}
}

func TestPlainErrorsCarryNoMark(t *testing.T) {
	for _, err := range []error{nil, errInner, errors.Join(errInner, errors.New("other"))} {
		require.False(t, pawl.IsPermanent(err))
		_, ok := pawl.RetryDelay(err)
		require.False(t, ok)
		_, ok = pawl.SnoozeDelay(err)
		require.False(t, ok)
	}
}

func TestOutermostRetryAfterCounts(t *testing.T) {
	delay, ok := pawl.RetryDelay(pawl.RetryAfter(sec, fmt.Errorf("b: %w", pawl.RetryAfter(time.Hour, errInner))))
	require.True(t, ok)
	require.Equal(t, sec, delay)
}
