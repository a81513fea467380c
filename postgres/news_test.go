package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: each message of a process is shorter than the 8000 bytes that the server takes, and they name
// all queues, or any, and all cancelled leases.
func TestMessages(t *testing.T) {
	for _, queues := range []int{0, 1, mostQueues, mostQueues + 1, 1000} {
		for _, leases := range []int{0, 1, mostCancelled, 3*mostCancelled + 1} {
			var n news
			for i := range queues {
				n.ready(fmt.Sprint(i, strings.Repeat("\xff", pawl.MaxNameBytes-4)))
			}
			for range leases {
				n.cancelled = append(n.cancelled, cancelled{pawl.NewID(time.Now()), -1 << 63})
			}
			var got news
			for _, m := range n.messages("0123456789abcdef") {
				payload, err := json.Marshal(m)
				require.NoError(t, err)
				require.Less(t, len(payload), 8000)
				var read message
				require.NoError(t, json.Unmarshal(payload, &read))
				got.any = got.any || read.Any
				for _, queue := range read.Queues {
					got.ready(string(queue))
				}
				got.cancelled = append(got.cancelled, read.Cancelled...)
			}
			require.Equal(t, n.cancelled, got.cancelled)
			if !got.any {
				require.Equal(t, n.queues, got.queues)
			}
			require.Equal(t, queues > mostQueues, got.any)
		}
	}
}
