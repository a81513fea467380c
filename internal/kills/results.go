package kills

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// resultOf returns the result of a job in these tests. It fills one page or several.
func resultOf(id pawl.ID) []byte { return bytes.Repeat(id[:], 1+int(id[15])*4) }

// ackResults acks jobs with results from several goroutines.
func ackResults(ctx context.Context, q Queue) error {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				if _, err := q.Enqueue(ctx, &pawl.Envelope{Kind: "k", Retain: time.Hour}); err != nil {
					panic(err)
				}
				leases, err := q.Fetch(ctx, pawl.Request{Max: 1})
				if err != nil {
					panic(err)
				}
				s := leases[0].Ack()
				s.Result = resultOf(leases[0].ID)
				if err := q.Settle(ctx, s); err != nil {
					panic(err)
				}
				Say("acked", leases[0].ID, 0)
			}
		})
	}
	all.Wait()
	return nil
}

// Results guards the rule: a result and its ack are one. Whenever the process is killed, a completed job has its whole
// result, no other job has one, and each job whose ack was acknowledged is completed.
func (e Engine) Results(t *testing.T) {
	var place string
	var acked map[string]bool
	total := 0
	for cycle := range Count(t, 8) {
		if cycle%8 == 0 { // a queue of at most some seconds of jobs
			place, acked = e.New(t), make(map[string]bool)
		}
		total += e.kill(t, "results", place, func(_, id string, _ uint64) { acked[id] = true }, func(q Queue) {
			completed := 0
			for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.NoError(t, err)
				if e.State != pawl.Completed {
					require.False(t, acked[e.ID.String()], "an acknowledged ack is gone")
					require.Nil(t, e.Result)
					continue
				}
				require.Equal(t, resultOf(e.ID), e.Result)
				if acked[e.ID.String()] {
					completed++
				}
			}
			require.Equal(t, len(acked), completed, "acknowledged acks that are there")
		})
	}
	t.Logf("%d acknowledged acks with results", total)
}
