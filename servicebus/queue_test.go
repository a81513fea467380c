package servicebus_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/faults"
	"github.com/gopawl/pawl/internal/transport/transporttest"
	"github.com/gopawl/pawl/servicebus"
)

// credential is a credential without a token.
type credential struct{}

func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{}, errors.New("there is no token")
}

// Rule: a place or an option that cannot be is refused, and no error has the key of the place.
func TestOpenRefuses(t *testing.T) {
	good := place("127.0.0.1:1")
	for where, o := range map[string]*servicebus.Options{
		"":                                 nil,
		"app.servicebus.windows.net":       nil,
		"Endpoint=sb://h/":                 nil,
		"SharedAccessKey=" + secret:        nil,
		good + ";EntityPath=mail":          nil,
		good + ";x":                        nil,
		good + ";UseDevelopmentEmulator=y": nil,
		strings.Replace(good, "sb://", "http://", 1):             nil,
		strings.Replace(good, "sb://", "sb://u:"+secret+"@", 1):  nil,
		strings.Replace(good, "sb://127.0.0.1:1", "sb://", 1):    nil,
		strings.Replace(good, "sb://127.0.0.1:1", "sb://%zz", 1): nil,
		good:         {Prefix: "a/b"},
		good + ";":   {Prefix: strings.Repeat("p", 33)},
		" " + good:   {Lock: time.Millisecond},
		good + " ":   {MaxCrashes: -2},
		"  " + good:  {MaxPayload: -1},
		good + "  ":  {MaxMessage: 1},
		"   " + good: {Timeout: -1},
		good + "   ": {Credential: credential{}},
	} {
		q, err := servicebus.Open(t.Context(), where, o)
		require.ErrorIs(t, err, pawl.ErrInvalid, where)
		require.NotContains(t, err.Error(), secret)
		require.Nil(t, q)
	}
}

// Rule: a service that is not there is unavailable, for every call, and no error has the key of the place.
func TestUnavailable(t *testing.T) {
	q := open(t, place("127.0.0.1:1"), servicebus.Options{})
	_, enqueue := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	_, fetch := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1})
	_, dead := q.Dead(t.Context(), "default", "k")
	_, retry := q.RetryDead(t.Context(), "default", "k", 1)
	_, stats := q.Stats(t.Context())
	token := open(t, "app.servicebus.windows.net", servicebus.Options{Credential: credential{}, Timeout: time.Second})
	_, other := token.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	for _, err := range []error{enqueue, fetch, dead, retry, stats, other} {
		require.ErrorIs(t, err, servicebus.ErrUnavailable)
		require.NotContains(t, err.Error(), secret)
	}
}

// Rule: a key that the service refuses makes the queue unavailable, and stands in no error and no log.
func TestWrongKey(t *testing.T) {
	var log bytes.Buffer
	q := open(t, strings.Replace(here(t), "KeyName=app", "KeyName=wrong", 1),
		servicebus.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace})})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, servicebus.ErrUnavailable)
	require.ErrorContains(t, err, "401")
	require.NotContains(t, err.Error()+log.String(), secret)
}

// Rule: package engine opens a queue by a connection string.
func TestEngine(t *testing.T) {
	q, err := engine.Open(t.Context(), "servicebus:"+here(t))
	require.NoError(t, err)
	require.IsType(t, (*servicebus.Queue)(nil), q)
	require.NoError(t, pawl.Require(q, pawl.Shared|pawl.Synced))
	require.NoError(t, q.Close())
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrClosed)
	_, err = q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1})
	require.ErrorIs(t, err, pawl.ErrClosed)
	q, err = engine.Open(t.Context(), "servicebus:SharedAccessKey="+secret)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.NotContains(t, err.Error(), secret)
	require.Nil(t, q)
}

// Rule: a Service Bus queue that nobody created is named in the error, a name that is too long is refused, and so is a
// fetch of every kind.
func TestQueuesOfTheNamespace(t *testing.T) {
	q := open(t, here(t), servicebus.Options{Prefix: "missing"})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, servicebus.ErrUnavailable)
	require.ErrorContains(t, err, `no queue "missing/default/k"; create it`)
	_, err = q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1, Wait: pawl.WaitNot})
	require.ErrorContains(t, err, `no queue "missing/default/k"; create it`)
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Queue: strings.Repeat("É", 44)})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "260 bytes")
	_, err = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	require.ErrorContains(t, err, "servicebus")
	require.ErrorContains(t, err, "every kind")
}

// Rule: a job that does not fit is refused as such, and a large payload comes back, also from the dead.
func TestSizes(t *testing.T) {
	q := open(t, here(t), servicebus.Options{})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: make([]byte, q.MaxPayload())})
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge) // with its envelope
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: make([]byte, q.MaxPayload()-200)})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Nack(0, errors.New(strings.Repeat("é", 1000)))))
	}
	l := transporttest.Fetch(t, q)
	require.Len(t, l.Payload, q.MaxPayload()-200)
	require.Equal(t, 3, l.Attempts)
	require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errors.New(strings.Repeat("é", 5000)))))
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Len(t, e.Payload, q.MaxPayload()-200)
	require.Equal(t, 4, e.Attempts)
	require.Contains(t, e.LastError(), "éé")

	large := open(t, here(t), servicebus.Options{MaxMessage: 1 << 20}) // more than the service takes
	_, err = large.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: make([]byte, 300<<10)})
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge)
}

// other returns a client of the stand-in that is not of this library.
func other(t *testing.T) *azservicebus.Client {
	c, err := azservicebus.NewClientFromConnectionString(here(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// Rule: a message of somebody else in the Service Bus queue of a kind is dead-lettered, and the log says so; it does not
// run, and it keeps nobody from the dead jobs of the kind.
func TestForeignBody(t *testing.T) {
	var log bytes.Buffer
	prefix := newPrefix()
	q := open(t, here(t), servicebus.Options{Prefix: prefix, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	s, err := other(t).NewSender(servicebus.EntityName(prefix, "default", "k"), nil)
	require.NoError(t, err)
	for _, body := range []string{"", "x", "\x01\x00\x00\x00\x09short", "\x01\x00\x00\x00\x00"} {
		require.NoError(t, s.SendMessage(t.Context(), &azservicebus.Message{Body: []byte(body)}, nil))
	}
	transporttest.None(t, q)
	require.Equal(t, pawl.Counts{Dead: 4}, transporttest.Counts(t, q))
	require.Equal(t, 4, strings.Count(log.String(), "cannot be read"))
	_, err = q.Dead(t.Context(), "default", "k")
	require.ErrorIs(t, err, pawl.ErrNotFound)

	id := transporttest.Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Abandon(pawl.ReasonPermanent, transporttest.ErrBoom)))
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, id, e.ID)
	retried, err := q.RetryDead(t.Context(), "default", "k", 10)
	require.NoError(t, err)
	require.Equal(t, 1, retried)
	require.Equal(t, pawl.Counts{Ready: 1, Dead: 4}, transporttest.Counts(t, q))
}

// Rule: a job that the service dead-letters itself, after too many deliveries, is a dead job with that as its last error.
func TestDeliveredTooOften(t *testing.T) {
	q := open(t, here(t), servicebus.Options{Prefix: newPrefix("most3")})
	id := transporttest.Signed(t, q)
	for range 3 {
		require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Release()))
	}
	transporttest.None(t, q)
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, id, e.ID)
	require.Equal(t, pawl.ReasonPoison, e.Death.Reason)
	require.Equal(t, "too many deliveries", e.LastError())
	require.False(t, e.Death.At.IsZero())
	_, err = q.RetryDead(t.Context(), "default", "k", 1)
	require.NoError(t, err)
	l := transporttest.Fetch(t, q)
	require.Equal(t, id, l.ID)
	require.NoError(t, transporttest.Keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: a lease outlives its connection: its holder extends it and settles it on another one.
func TestLeaseOutlivesItsConnection(t *testing.T) {
	here(t)
	proxy := faults.NewProxy(t, "127.0.0.1:"+shared.port)
	q := open(t, place(proxy.Addr), servicebus.Options{})
	var leases []*pawl.Lease
	for range 5 {
		transporttest.Signed(t, q)
		leases = append(leases, transporttest.Fetch(t, q))
	}
	proxy.Cut()
	lost, err := q.Extend(t.Context(), leases...)
	require.NoError(t, err)
	require.Empty(t, lost)
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack(), leases[1].Nack(time.Hour, transporttest.ErrBoom),
		leases[2].Abandon(pawl.ReasonPermanent, transporttest.ErrBoom), leases[3].Release(), leases[4].Ack()))
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1, Dead: 1}, transporttest.Counts(t, q))
	l := transporttest.Fetch(t, q)
	require.Equal(t, leases[3].ID, l.ID)
	require.Zero(t, l.Crashes)
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, leases[2].ID, e.ID)
	require.Equal(t, "boom", e.LastError())
}

// Rule: a fetch that does not wait returns as many jobs as are ready, although the service delivers them in parts. Only a
// service that delivers none for a second may hide some.
func TestDeliveredInParts(t *testing.T) {
	t.Parallel()
	for took := time.Hour; took >= time.Second; {
		q := open(t, here(t), servicebus.Options{Prefix: newPrefix("drip")})
		for range 10 {
			transporttest.Signed(t, q)
		}
		began := time.Now()
		leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 10, Wait: pawl.WaitNot})
		if took = time.Since(began); took < time.Second {
			require.NoError(t, err)
			require.Len(t, leases, 10)
		}
	}
}

// Rule: a job can be abandoned although its reason and its error are no texts, and its history has them as they were.
func TestDeathByAnErrorThatIsNoText(t *testing.T) {
	q := open(t, here(t), servicebus.Options{Prefix: newPrefix("bytes")})
	id := transporttest.Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Abandon("r\xff", errors.New("e\xff"))))
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, id, e.ID)
	require.Equal(t, pawl.Reason("r\xff"), e.Death.Reason)
	require.Equal(t, "e\xff", e.LastError())
}

// Rule: a settlement whose connection breaks is tried again over another one, and succeeds once.
func TestSettleOverABrokenConnection(t *testing.T) {
	t.Parallel()
	here(t)
	proxy := faults.NewProxy(t, "127.0.0.1:"+shared.port)
	q := open(t, place(proxy.Addr), servicebus.Options{Timeout: time.Minute}) // after which the client gives up
	transporttest.Signed(t, q)
	l := transporttest.Fetch(t, q)
	proxy.Cut()
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Equal(t, pawl.Counts{}, transporttest.Counts(t, q))
}

// Rule: an ack whose outcome is unknown can be repeated while the lease lasts. Then the job is done.
func TestSettleAgain(t *testing.T) {
	t.Parallel()
	here(t)
	proxy := faults.NewProxy(t, "127.0.0.1:"+shared.port)
	q := open(t, place(proxy.Addr), servicebus.Options{Timeout: 10 * time.Second, Prefix: newPrefix("again")})
	transporttest.Signed(t, q)
	l := transporttest.Fetch(t, q)
	proxy.Down()
	require.ErrorIs(t, q.Settle(t.Context(), l.Ack()), pawl.ErrUnknownOutcome)
	proxy.Up()
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Equal(t, pawl.Counts{}, transporttest.Counts(t, q))
}

// Rule: a Service Bus queue that locks for less than the options say is logged, once.
func TestShorterLock(t *testing.T) {
	var log bytes.Buffer
	q := open(t, here(t), servicebus.Options{Prefix: newPrefix("lock20000"), Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	for range 2 {
		transporttest.Signed(t, q)
		require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Ack()))
	}
	require.Equal(t, 1, strings.Count(log.String(), "locks for less than Options.Lock"))
}

// Rule: a fetch that waits ends with its context, and with the queue.
func TestWaitingFetch(t *testing.T) {
	q := open(t, here(t), servicebus.Options{})
	wait := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := q.Fetch(ctx, pawl.Request{Kinds: []string{"a", "b"}, Max: 1})
			done <- err
		}()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := wait(ctx)
	cancel()
	require.ErrorIs(t, <-done, pawl.ErrNotAccepted)
	done = wait(t.Context())
	require.NoError(t, q.Close())
	require.ErrorIs(t, <-done, pawl.ErrClosed)
}
