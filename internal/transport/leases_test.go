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
		MaxCrashes: -1, MaxBody: 1 << 20, Expired: func(*transport.Grant[string], *pawl.Envelope) bool { return true },
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

// Rule: a lease with the token of another job is lost, also beside the lease that has the token.
func TestExtensionOfForgedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeases(hclog.NewNullLogger())
		q.Renew = func(_ context.Context, some []*transport.Grant[string]) []error { return make([]error, len(some)) }
		l := leased(t, q)
		forged := &pawl.Lease{Envelope: leased(t, q).Envelope, Token: l.Token}
		lost, err := q.Extend(t.Context(), l, forged)
		require.NoError(t, err)
		require.Equal(t, []*pawl.Lease{forged}, lost)
	})
}

// Rule: Over is called once for each message that was delivered: after a settlement, after a lease expired or was lost,
// and for a message that is no lease. It is not called for a lease that goes on.
func TestOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeases(hclog.NewNullLogger())
		over := 0
		q.Over = func(string) { over++ }
		q.Discard = func(string, error) {}
		q.Renew = func(context.Context, []*transport.Grant[string]) []error { return []error{pawl.ErrLeaseLost} }
		kept := true
		q.Finish = func(_ context.Context, all []*transport.Settling[string]) {
			if all[0].Kept = kept; kept {
				all[0].Err = errors.New("refused")
			}
		}
		l := leased(t, q)
		require.Error(t, q.Settle(t.Context(), l.Ack()))
		require.Zero(t, over)
		kept = false
		require.NoError(t, q.Settle(t.Context(), l.Ack()))
		require.Equal(t, 1, over)

		l = leased(t, q)
		_, err := q.Extend(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, 2, over)
		require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrLeaseLost)
		require.Equal(t, 2, over)

		leased(t, q)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, 3, over)

		require.Empty(t, q.Deliver(t.Context(), time.Now(), []transport.Delivery[string]{{Body: []byte("?")}}))
		require.Equal(t, 4, over)
		q.Early = func(string, *pawl.Envelope) bool { return true }
		body := transport.AppendBody(&pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k", Queue: "default"}, nil, q.MaxBody)
		require.Empty(t, q.Deliver(t.Context(), time.Now(), []transport.Delivery[string]{{Body: body, Length: time.Minute}}))
		require.Equal(t, 5, over)
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
