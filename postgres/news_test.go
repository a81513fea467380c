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

// Rule: each message of a process is shorter than the 8000 bytes that the server takes, and together
// the messages name all cancelled leases, and all queues. If there are too many queues, they say any
// queue instead.
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

// Rule: a process that learns of another one says that it had news before. A cancelled lease of another
// process is announced immediately.
func TestNewsBeforeTheFirstMessage(t *testing.T) {
	q := &Queue{intake: newIntake()}
	b := &doorbell{q: q, name: "one", ring: func() {}}
	b.announce(news{any: true})
	require.True(t, b.news.isEmpty(), "nobody listens")
	b.hear(message{From: "other", Any: true})
	require.Equal(t, []message{{From: "one", Hello: true}}, b.news.messages(b.name))
	b.news = news{}
	b.hear(message{From: "other", Any: true})
	require.True(t, b.news.isEmpty(), "the others know of it")

	b = &doorbell{q: q, name: "one", ring: func() {}}
	lease := cancelled{pawl.ID{1}, 7}
	b.announce(news{cancelled: []cancelled{lease}})
	require.Equal(t, []message{{From: "one", Cancelled: []cancelled{lease}}}, b.news.messages(b.name))
}
