package transporttest

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: queues take turns by their weights in the long run, over fetches of any size. A round counts unless the broker
// stalled for so long that a fetch may have taken a queue for empty.
func turns(t *testing.T, e Engine) {
	for _, most := range []int{1, 3, 40} {
		for {
			got, slowest := taken(t, e, most)
			if math.Abs(float64(got["heavy"]-30)) <= 2 {
				break
			}
			require.True(t, e.Misses > 0 && slowest >= e.Misses, "%v with fetches of %d, the slowest in %v", got, most, slowest)
			t.Logf("a fetch took %v, so this order does not count: %v with fetches of %d", slowest, got, most)
		}
	}
}

// taken returns how many jobs two queues gave of 40, by fetches of up to most, and how long the slowest fetch took.
func taken(t *testing.T, e Engine, most int) (got map[string]int, slowest time.Duration) {
	q := e.New(t, Options{})()
	for range 40 {
		for _, name := range []string{"heavy", "light"} {
			_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Queue: name})
			require.NoError(t, err)
		}
	}
	got = make(map[string]int)
	for n := 0; n < 40; {
		began := time.Now()
		leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"light", "heavy"}, Kinds: []string{"k"},
			Weights: map[string]int{"heavy": 3}, Max: min(most, 40-n), Wait: pawl.WaitNot})
		took := time.Since(began)
		if e.Misses == 0 || took < e.Misses {
			require.NoError(t, err, "after %v", took)
		}
		slowest = max(slowest, took)
		n += len(leases)
		for _, l := range leases {
			got[l.Queue]++
		}
	}
	return got, slowest
}
