package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: a restored job has the beginning and the end of a long history, and the next failures are
// added after them.
func TestRestoreALongHistory(t *testing.T) {
	q := open(t, newSchema(t))
	const failures = 500
	e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", State: pawl.Ready, Attempts: failures, Failures: failures, MaxRetries: failures + 9}
	for i := range pawl.HistoryKeepHead + pawl.HistoryKeepTail {
		attempt := i + 1
		if i >= pawl.HistoryKeepHead {
			attempt = failures - pawl.HistoryKeepHead - pawl.HistoryKeepTail + attempt
		}
		e.History = append(e.History, pawl.Failure{Attempt: attempt, At: time.Unix(int64(attempt), 0), Error: fmt.Sprint(attempt)})
	}
	want := append([]pawl.Failure{}, e.History...)
	require.NoError(t, q.Restore(t.Context(), []*pawl.Envelope{e}, nil))
	got, err := q.Job(t.Context(), e.ID)
	require.NoError(t, err)
	require.Equal(t, want, got.History)

	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Nack(0, fmt.Errorf("one more"))))
	got, err = q.Job(t.Context(), e.ID)
	require.NoError(t, err)
	require.Len(t, got.History, len(want))
	require.Equal(t, want[pawl.HistoryKeepHead-1], got.History[pawl.HistoryKeepHead-1])
	require.Equal(t, want[pawl.HistoryKeepHead+1], got.History[pawl.HistoryKeepHead])
	require.Equal(t, "one more", got.LastError())
}
