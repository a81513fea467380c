package bolt

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// matchFunc is a condition of the record of a job.
type matchFunc func(*pawl.Envelope) bool

func (fn matchFunc) Matches(job *pawl.Envelope) bool { return fn(job) }
func (matchFunc) ReadsBody() bool                    { return false }

// Rule: a change that a damaged row divides reports every job that it changed, even if the
// rest does not come through.
func TestDividedChangeReportsWhatIsDone(t *testing.T) {
	row := lineKey(nil, line{numberOfOther, numberOfOtherDelayed})
	everyChange(t, bucketQueues, rowAt(row), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		again := matchFunc(func(job *pawl.Envelope) bool {
			if job.ID == s.ids["delayed"] {
				if calls++; calls == 3 { // the first half, after two tries of the whole
					cancel()
				}
			}
			return true
		})
		errs, err := q.Change(ctx, pawl.Change{Verb: pawl.VerbRunNow, If: again}, s.ids["delayed"], s.ids["later"], s.ids["other delayed"])
		require.NoError(t, err)
		require.Len(t, errs, 3)
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], pawl.ErrNotAccepted)
		require.ErrorIs(t, errs[2], pawl.ErrNotAccepted)
		require.Equal(t, pawl.Ready, find(t, q, s.ids["delayed"]).State)
		require.Equal(t, pawl.Delayed, find(t, q, s.ids["later"]).State)
	})
}
