package bolt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule: a lease that somebody keeps when it has ended keeps none of those that came after
// it in memory.
func TestEndedLeaseKeepsNoOther(t *testing.T) {
	q := openTest(t, nil)
	for range 3 {
		add(t, q, nil)
	}
	leases := fetch(t, q, 3)
	var kept *grant
	require.NoError(t, q.do(t.Context(), visit(func() { kept = q.scheduler.leases.byID[leases[1].ID] })))
	require.NotNil(t, kept.next)
	require.NoError(t, q.Ack(t.Context(), leases[1]))
	var before, behind *grant
	require.NoError(t, q.do(t.Context(), visit(func() { before, behind = kept.prev, kept.next })))
	require.Nil(t, before)
	require.Nil(t, behind)
}

// Rule: where giving way took longer than a transaction does, the scheduler leaves it for a
// hundred times as long.
func TestGatherLeavesOffWhereOthersCompute(t *testing.T) {
	s := &scheduler{intake: newIntake(), lately: 1, lasted: -1} // any time is too long
	before := time.Now()
	s.gather()
	first := s.shunned
	require.True(t, first.After(before))
	s.shunned, s.lately = time.Now().Add(time.Hour), 1
	left := s.shunned
	s.gather()
	require.Equal(t, left, s.shunned, "it did not give way meanwhile")
}
