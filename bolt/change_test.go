package bolt

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// matchFunc is a condition on the record of a job.
type matchFunc func(*pawl.Envelope) bool

func (fn matchFunc) Matches(job *pawl.Envelope) bool { return fn(job) }
func (matchFunc) ReadsBody() bool                    { return false }

// Rule: a change split by a damaged row reports every job that it changed, even if the rest
// fails.
func TestDividedChangeReportsWhatIsDone(t *testing.T) {
	row := lineKey(nil, line{numberOfOther, numberOfOtherDelayed})
	everyChange(t, bucketQueues, rowAt(row), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		again := matchFunc(func(job *pawl.Envelope) bool {
			if job.ID == s.ids["delayed"] {
				if calls++; calls == 3 { // the first half, after two tries of the whole change
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

// nilCondition is a condition whose methods fail on a nil pointer.
type nilCondition struct{ body bool }

func (c *nilCondition) ReadsBody() bool             { return c.body }
func (c *nilCondition) Matches(*pawl.Envelope) bool { return true }

// Rule: a panic of a condition fails only its own change, whichever method panics.
func TestPanicOfReadsBody(t *testing.T) {
	q := openTest(t, nil)
	e := add(t, q, nil)
	errs, err := q.Change(t.Context(), pawl.Change{Verb: pawl.VerbCancel, If: (*nilCondition)(nil)}, e.ID)
	require.ErrorContains(t, errors.Join(append(errs, err)...), "the condition of the change panicked")
	require.NotErrorIs(t, errors.Join(append(errs, err)...), pawl.ErrPoisoned)
	add(t, q, nil)
}
