package bolt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: a caller that keeps an ended lease does not keep the later leases in memory.
func TestEndedLeaseKeepsNoOther(t *testing.T) {
	q := openTest(t, nil)
	for range 3 {
		add(t, q, nil)
	}
	leases := fetch(t, q, 3)
	var kept *grant
	require.NoError(t, q.do(t.Context(), visit(func() { kept = q.scheduler.leases.byToken.get(leases[1].Token) })))
	require.NotNil(t, kept.next)
	require.NoError(t, q.Settle(t.Context(), leases[1].Ack()))
	var before, behind *grant
	require.NoError(t, q.do(t.Context(), visit(func() { before, behind = kept.prev, kept.next })))
	require.Nil(t, before)
	require.Nil(t, behind)
}
