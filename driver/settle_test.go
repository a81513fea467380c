package driver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Rule: an abandoned job has a reason that fits into a record, so that an export of it can be
// restored.
func TestAbandonNeedsAReason(t *testing.T) {
	l := &pawl.Lease{Envelope: new(pawl.Envelope)}
	for _, reason := range []pawl.Reason{"", pawl.Reason(strings.Repeat("x", pawl.MaxNameBytes+1))} {
		require.ErrorIs(t, driver.CheckSettle([]pawl.Settlement{l.Abandon(reason, nil)}), pawl.ErrInvalid)
	}
	require.NoError(t, driver.CheckSettle([]pawl.Settlement{l.Abandon(pawl.ReasonPermanent, nil), l.Ack()}))
}
