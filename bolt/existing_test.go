package bolt

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Envelopes that were reported as Existing are as good as new once the job that had their key
// is gone or no longer blocks them. Even in one batch, each gets its own ID, for which a
// signature is valid.
func TestExistingEnvelopesAreEnqueuedAgain(t *testing.T) {
	ring, err := pawl.NewKeyring("key", map[string][]byte{"key": bytes.Repeat([]byte("s"), pawl.MinSecretBytes)})
	require.NoError(t, err)
	for _, signed := range []bool{false, true} {
		for end, do := range map[string]func(*Queue, pawl.ID) error{
			"gone":      func(q *Queue, _ pawl.ID) error { return q.Settle(t.Context(), leaseOne(t, q).Ack()) },
			"cancelled": func(q *Queue, id pawl.ID) error { return q.Cancel(t.Context(), id) },
		} {
			for _, n := range []int{1, 2, 3} {
				t.Run(fmt.Sprint(end, ", signed ", signed, ", ", n), func(t *testing.T) {
					q := openTest(t, nil)
					var producer pawl.Enqueuer = q
					if signed {
						producer = ring.Signing(q)
					}
					holder := add(t, q, func(e *pawl.Envelope) { e.UniqueKey = "unique" })
					var batch []*pawl.Envelope
					for range n {
						batch = append(batch, &pawl.Envelope{Kind: "k", UniqueKey: "unique"})
					}
					for range 2 {
						done, err := producer.Enqueue(t.Context(), batch...)
						require.NoError(t, err)
						for _, d := range done {
							require.Equal(t, pawl.Enqueued{ID: holder.ID, Existing: true}, d)
						}
					}
					require.NoError(t, do(q, holder.ID))
					for i, e := range batch {
						e.UniqueKey = fmt.Sprint(i)
					}
					batch[0].UniqueKey = "unique"
					done, err := producer.Enqueue(t.Context(), batch...)
					require.NoError(t, err)
					ids := map[pawl.ID]bool{holder.ID: true}
					for i, d := range done {
						require.False(t, d.Existing)
						require.False(t, ids[d.ID], "the ID is that of another")
						ids[d.ID] = true
						require.Equal(t, batch[i].UniqueKey, find(t, q, d.ID).UniqueKey)
						if signed {
							require.NoError(t, ring.Verify(find(t, q, d.ID)))
						}
					}
					require.Equal(t, n, countsOf(t, q, pawl.DefaultQueue).Ready)
				})
			}
		}
	}
}
