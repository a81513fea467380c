package transport_test

import (
	"bytes"
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

// leases are those of a process.
type leases = transport.Leases[string]

func newLeases(logger pawl.Logger) *leases {
	q := &leases{
		MaxCrashes: -1, MaxBody: 1 << 20, Expired: func(*transport.Grant[string]) {},
		Finish: func(context.Context, []*transport.Settling[string]) {},
	}
	q.Logger = logger
	return q
}

// leased returns the lease of a job that a broker has just delivered.
func leased(t *testing.T, q *leases) *pawl.Lease {
	t.Helper()
	e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", Queue: "default"}
	body := transport.AppendBody(e, nil, q.MaxBody)
	all := q.Deliver(t.Context(), time.Now(), []transport.Delivery[string]{{Message: "m", Body: body, Length: time.Minute}})
	require.Len(t, all, 1)
	return all[0]
}

// Rule: a lease that the broker does not answer an extension of is not lost: its holder can extend and settle it until
// it expires. One that the broker says is lost is.
func TestExtensionWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := errors.New("no answer")
		q := newLeases(hclog.NewNullLogger())
		q.Renew = func(context.Context, []*transport.Grant[string]) []error { return []error{answer} }
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

// Rule: a panic of a receiver of events is logged, and reaches neither the caller nor the goroutine that ends a lease.
func TestReceiverThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		q := newLeases(hclog.New(&hclog.LoggerOptions{Output: &log}))
		q.OnEvent = func(pawl.Event) { panic("boom") }
		l := leased(t, q)
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		require.Contains(t, log.String(), "a listener for events panicked")
		leased(t, q)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Contains(t, log.String(), "lease expired")
		require.Contains(t, log.String(), "event=reaped")
	})
}
