package worker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPaceAhead(t *testing.T) {
	for _, c := range []struct {
		rule            string
		handler, settle time.Duration
		slots, want     int
	}{
		{"nothing before a handler was seen", 0, 10 * time.Millisecond, 16, 0},
		{"nothing before a settle was seen", time.Millisecond, 0, 16, 0},
		{"nothing when handlers are long", time.Second, 5 * time.Millisecond, 16, 0},
		{"nothing when they are much longer", time.Hour, 5 * time.Millisecond, 64, 0},
		{"nothing below one whole job", time.Second, 499 * time.Millisecond, 1, 0},
		{"one job at half a handler a settle", time.Second, 500 * time.Millisecond, 1, 1},
		{"what the slots finish in two settles", time.Millisecond, 5 * time.Millisecond, 8, 80},
		{"bounded for handlers that do nothing", time.Microsecond, 10 * time.Millisecond, 16, maxAhead},
		{"bounded without overflow", time.Nanosecond, math.MaxInt64, math.MaxInt, maxAhead},
	} {
		t.Run(c.rule, func(t *testing.T) {
			p := pace{handler: c.handler, settle: c.settle}
			require.Equal(t, c.want, p.ahead(c.slots))
		})
	}
}

// Averages start at the first value and follow a change slowly.
func TestPaceSmooths(t *testing.T) {
	var p pace
	p.ran(80 * time.Millisecond)
	p.settled(16 * time.Millisecond)
	require.Equal(t, pace{handler: 80 * time.Millisecond, settle: 16 * time.Millisecond}, p)
	p.ran(0)
	p.settled(0)
	require.InDelta(t, 70*time.Millisecond, p.handler, float64(time.Microsecond))
	require.Equal(t, 14*time.Millisecond, p.settle)
	for range 1000 {
		p.ran(0)
	}
	require.Positive(t, p.handler, "a handler that takes no time must not divide by zero")
}
