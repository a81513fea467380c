package bolt

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
)

// resultOf returns the result of a job in these tests. It fills one page or several.
func resultOf(id pawl.ID) []byte { return bytes.Repeat(id[:], 1+int(id[15])*4) }

// resultRole acks jobs with results from several goroutines. It prints each ID once the ack is
// acknowledged.
func resultRole(args []string) error {
	q, err := Open(args[0], crashOptions())
	if err != nil {
		return err
	}
	say("up")
	ctx := context.Background()
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
				say("done", leases[0].ID)
			}
		})
	}
	all.Wait()
	return nil
}

// Rule: a result and its ack are one. Whenever the process is killed, a completed job has its whole
// result, no other job has one, and each job whose ack was acknowledged is completed.
func TestKilledWithResults(t *testing.T) {
	var path string
	var acked map[string]bool
	total := 0
	for cycle := range kills.Count(t, 8) {
		if cycle%8 == 0 { // a file of at most some seconds of jobs
			path, acked = filepath.Join(memoryFolder(t), "jobs.db"), make(map[string]bool)
		}
		c := startChild(t, "result", path)
		require.Equal(t, "up", c.line(t))
		for _, line := range c.killAfter(t, 40) {
			acked[strings.TrimPrefix(line, "done ")] = true
			total++
		}
		require.Empty(t, c.stderr.String())
		q := openAt(t, path, crashOptions())
		require.NoError(t, q.Check(t.Context()))
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
		require.NoError(t, q.Close())
	}
	t.Logf("%d acknowledged acks with results", total)
}
