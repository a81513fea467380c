package memory

import (
	"fmt"
	"math"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// Weights go on being honoured when virtual time begins anew.
func TestWeightsOverTheEndOfTime(t *testing.T) {
	for _, begin := range []uint64{0, lastTurn - 1, lastTurn - 50*fullTurn, lastTurn, math.MaxUint64 - 50*fullTurn, math.MaxUint64 - 1} {
		t.Run(fmt.Sprint(begin), func(t *testing.T) {
			q := New(&Options{Logger: hclog.NewNullLogger()})
			defer q.Close()
			const rounds = 400
			var batch []*pawl.Envelope
			for range rounds {
				batch = append(batch, &pawl.Envelope{Kind: "k", Queue: "a"}, &pawl.Envelope{Kind: "k", Queue: "b"})
			}
			require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
			q.virtual = begin
			request := pawl.Request{Queues: []string{"a", "b"}, Weights: map[string]int{"a": 1, "b": 3}, Max: 1}
			given := make(map[string]int)
			for n := range rounds {
				leases, err := q.Fetch(t.Context(), request)
				require.NoError(t, err)
				given[leases[0].Queue]++
				require.InDelta(t, float64(n)/4, given["a"], 2, "turns of queue a")
				require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
			}
			require.Less(t, q.virtual, uint64(lastTurn+fullTurn))
		})
	}
}
