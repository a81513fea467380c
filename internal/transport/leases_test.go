package transport_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

// leased returns the leases of a process, and one that a broker has just delivered.
func leased(t *testing.T, q *transport.Leases[string]) *pawl.Lease {
	t.Helper()
	q.Reporter.Logger = hclog.NewNullLogger()
	q.MaxCrashes, q.MaxBody = -1, 1<<20
	q.Expired = func(*transport.Grant[string]) {}
	e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", Queue: "default"}
	body := transport.AppendBody(e, nil, q.MaxBody)
	leases := q.Deliver(t.Context(), time.Now(), []transport.Delivery[string]{{Message: "m", Body: body, Length: time.Minute}})
	require.Len(t, leases, 1)
	return leases[0]
}

// Rule: a lease that the broker does not answer an extension of is not lost: its holder can extend and settle it until
// it expires. One that the broker says is lost is.
func TestExtensionWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := errors.New("no answer")
		q := &transport.Leases[string]{
			Renew:  func(context.Context, []*transport.Grant[string]) []error { return []error{answer} },
			Finish: func(context.Context, []*transport.Settling[string]) {},
		}
		l := leased(t, q)
		time.Sleep(40 * time.Second)
		lost, err := q.Extend(t.Context(), l)
		require.ErrorIs(t, err, answer)
		require.Empty(t, lost)
		answer = nil
		lost, err = q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, lost)
		time.Sleep(40 * time.Second)
		require.NoError(t, q.Settle(t.Context(), l.Ack()))

		l = leased(t, q)
		answer = errors.New("no answer")
		time.Sleep(40 * time.Second)
		_, err = q.Extend(t.Context(), l)
		require.Error(t, err)
		time.Sleep(40 * time.Second) // the extension without an answer did not lengthen it
		lost, err = q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, []*pawl.Lease{l}, lost)

		l, answer = leased(t, q), pawl.ErrLeaseLost
		lost, err = q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, []*pawl.Lease{l}, lost)
		require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)
	})
}
