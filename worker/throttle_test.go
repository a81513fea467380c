package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// Rule: a throttle lets the queue rest, and counts no attempt, however often it happens.
func TestThrottle(t *testing.T) {
	bubble(t, func(t *testing.T, q *bolt.Queue) {
		enqueue(t, q, "a", pawl.MaxRetries(0))
		n := 0
		r := handleAll(t, q, worker.Options{}, func(*pawl.Job[string]) error {
			if n++; n < 3 {
				return fmt.Errorf("fetch a page: %w", pawl.Throttle(time.Minute, pawl.ThisQueue))
			}
			return nil
		})
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute}, r.at)
		require.Equal(t, []int{1, 1, 1}, r.attempts)
	})
}

// Rule: a throttle that the queue refuses is a failed attempt, whose error says why.
func TestThrottleThatIsRefused(t *testing.T) {
	for _, c := range []struct {
		rest pawl.Rest
		opts []pawl.Option
		why  string
	}{
		{pawl.ThisKey, nil, "has no key that could rest"},
		{pawl.ThisKey, []pawl.Option{pawl.Key("a")}, "has no limits per key"},
		{"host", nil, `"host"`},
	} {
		bubble(t, func(t *testing.T, q *bolt.Queue) {
			id := enqueue(t, q, "a", append(c.opts, pawl.MaxRetries(1))...)
			r := handleAll(t, q, worker.Options{Policy: pawl.Fixed(time.Hour)}, func(*pawl.Job[string]) error {
				return pawl.Throttle(time.Minute, c.rest)
			})
			require.Equal(t, []int{1, 2}, r.attempts)
			e := stored(t, q, id)
			require.Equal(t, pawl.ReasonExhausted, e.Death.Reason)
			require.Contains(t, e.LastError(), c.why)
		})
	}
}
