package admin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Operators get the throughput of the file, wherever the queue is.
func TestSuiteThroughput(t *testing.T) { runSuite(t, throughputCases) }

var throughputCases = []suiteCase{
	{"the throughput counts what happened, by queue", func(f *fixture) {
		f.add(pawl.Envelope{Queue: "a", Kind: "one"})
		f.add(pawl.Envelope{Queue: "b", Kind: "two"})
		leases, err := f.q.Fetch(f.t.Context(), pawl.Request{Queues: []string{"a"}, Max: 1, Wait: pawl.WaitNot})
		require.NoError(f.t, err)
		require.NoError(f.t, f.q.Settle(f.t.Context(), leases[0].Ack()))
	}, nil, func(t *testing.T, s *suiteTest) {
		all, err := s.Throughput(t.Context(), ThroughputQuery{Last: 24 * time.Hour})
		require.NoError(t, err)
		require.Equal(t, 10*time.Minute, all.Step)
		require.Len(t, all.Periods, 144)
		require.Len(t, all.Builds, 1)
		total := all.Total()
		require.EqualValues(t, 2, total.Enqueued)
		require.EqualValues(t, 1, total.Succeeded)
		one, err := s.Throughput(t.Context(), ThroughputQuery{Queue: "b", Last: 24 * time.Hour})
		require.NoError(t, err)
		total = one.Total()
		require.EqualValues(t, 1, total.Enqueued)
		require.Zero(t, total.Succeeded)
	}},
	{"a throughput of more than a week, or of a bad queue, is refused", nil, nil, func(t *testing.T, s *suiteTest) {
		for _, q := range []ThroughputQuery{{Last: 8 * 24 * time.Hour}, {Last: -1}, {Queue: "a\x00"}} {
			_, err := s.Throughput(t.Context(), q)
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
	}},
}
