package jetstream_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/nats-io/nats.go"
	api "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/transport/transporttest"
	"github.com/gopawl/pawl/jetstream"
)

// Rule: a place or an option that cannot be is refused, and a server that is not there is unavailable.
func TestOpenRefuses(t *testing.T) {
	for where, o := range map[string]*jetstream.Options{
		"localhost:4222":              nil,
		"nats:":                       nil,
		"nats://":                     nil,
		"nats://u:hunter2@h/subject":  nil,
		"nats://u:hunter2@h,http://h": nil,
		"nats://127.0.0.1:1?a=b":      nil,
		"nats://127.0.0.1:1":          {Prefix: "a.b"},
		"nats://127.0.0.1:2":          {Prefix: strings.Repeat("p", 33)},
		"nats://127.0.0.1:3":          {Lease: time.Millisecond},
		"nats://127.0.0.1:4":          {MaxCrashes: -2},
		"nats://127.0.0.1:5":          {MaxPayload: -1},
		"nats://127.0.0.1:6":          {Timeout: -1},
		"nats://127.0.0.1:7":          {Replicas: -1},
	} {
		q, err := jetstream.Open(t.Context(), where, o)
		require.ErrorIs(t, err, pawl.ErrInvalid, where)
		require.NotContains(t, err.Error(), "hunter2")
		require.Nil(t, q)
	}
	_, err := jetstream.Open(t.Context(), "nats://u:hunter2@127.0.0.1:1", nil)
	require.ErrorIs(t, err, jetstream.ErrUnavailable)
	require.NotContains(t, err.Error(), "hunter2")
}

// Rule: package engine opens a queue by its URL.
func TestEngine(t *testing.T) {
	s, err := startServer(t.TempDir(), -1)
	require.NoError(t, err)
	defer s.Shutdown()
	q, err := engine.Open(t.Context(), s.ClientURL())
	require.NoError(t, err)
	require.IsType(t, (*jetstream.Queue)(nil), q)
	require.NoError(t, q.Close())
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrClosed)
	q, err = engine.Open(t.Context(), "nats://127.0.0.1:1")
	require.ErrorIs(t, err, jetstream.ErrUnavailable)
	require.Nil(t, q)
}

// Rule: a queue counts as synced only if its options say that the servers sync.
func TestSynced(t *testing.T) {
	folder := t.TempDir()
	require.ErrorIs(t, pawl.Require(open(t, folder, jetstream.Options{}), pawl.Synced), pawl.ErrUnsupported)
	require.NoError(t, pawl.Require(open(t, folder, jetstream.Options{Synced: true}), pawl.Synced|pawl.Shared))
}

// Rule: a stream that would drop jobs, or that is of another kind, is refused, and nothing in it changes.
func TestForeignStream(t *testing.T) {
	for name, c := range map[string]api.StreamConfig{
		"memory":    {Retention: api.WorkQueuePolicy, AllowMsgSchedules: true, Storage: api.MemoryStorage},
		"retention": {Retention: api.LimitsPolicy, AllowMsgSchedules: true},
		"schedules": {Retention: api.WorkQueuePolicy},
		"age":       {Retention: api.WorkQueuePolicy, AllowMsgSchedules: true, MaxAge: time.Hour},
		"limit":     {Retention: api.WorkQueuePolicy, AllowMsgSchedules: true, MaxMsgs: 10},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			s, release := use(t, folder)
			defer release()
			nc, err := nats.Connect("", nats.InProcessServer(s))
			require.NoError(t, err)
			defer nc.Close()
			js, err := api.New(nc)
			require.NoError(t, err)
			c.Name, c.Subjects = "PAWL", []string{"pawl.job.>", "pawl.delayed.>"}
			_, err = js.CreateStream(t.Context(), c)
			require.NoError(t, err)
			q, err := jetstream.Open(t.Context(), "nats://in-process", &jetstream.Options{NATS: []nats.Option{nats.InProcessServer(s)}})
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, "PAWL")
			require.Nil(t, q)
		})
	}
}

// Rule: a queue and a kind that make too long a name are refused, and nothing is stored.
func TestLongName(t *testing.T) {
	q := open(t, t.TempDir(), jetstream.Options{})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Queue: strings.Repeat(".", 90)})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "consumer")
	require.Equal(t, pawl.Counts{}, transporttest.Counts(t, q))
}

// Rule: a job that was enqueued twice with one ID, within the duplicate window, is stored once, and the second call says so.
func TestSameID(t *testing.T) {
	q := open(t, t.TempDir(), jetstream.Options{})
	e := &pawl.Envelope{Kind: "k", ID: transporttest.Signed(t, q)}
	_, err := q.Enqueue(t.Context(), e)
	require.ErrorIs(t, err, pawl.ErrConflict)
	require.Equal(t, pawl.Counts{Ready: 1}, transporttest.Counts(t, q))
}

// Rule: a message of somebody else at the subject of a line moves to the dead jobs, and the log says so; it does not run,
// and it keeps nobody from the dead jobs of the line.
func TestForeignBody(t *testing.T) {
	folder := t.TempDir()
	var log bytes.Buffer
	q := open(t, folder, jetstream.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	s, release := use(t, folder)
	defer release()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	require.NoError(t, err)
	defer nc.Close()
	for _, body := range []string{"", "x", "\x01\x00\x00\x00\x09short", "\x01\x00\x00\x00\x00"} {
		_, err := nc.Request("pawl.job.default.k", []byte(body), time.Minute)
		require.NoError(t, err)
	}
	require.Equal(t, pawl.Counts{Ready: 4}, transporttest.Counts(t, q))
	transporttest.None(t, q)
	require.Equal(t, pawl.Counts{Dead: 4}, transporttest.Counts(t, q))
	require.Equal(t, 4, strings.Count(log.String(), "cannot be read"))
	_, err = q.Dead(t.Context(), "default", "k")
	require.ErrorIs(t, err, pawl.ErrNotFound)

	id := transporttest.Signed(t, q)
	l := transporttest.Fetch(t, q)
	require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, transporttest.ErrBoom)))
	e, err := q.Dead(t.Context(), "default", l.Kind)
	require.NoError(t, err)
	require.Equal(t, id, e.ID)
	retried, err := q.RetryDead(t.Context(), "default", l.Kind, 10)
	require.NoError(t, err)
	require.Equal(t, 1, retried)
	require.Equal(t, pawl.Counts{Ready: 1, Dead: 4}, transporttest.Counts(t, q))
}

// Rule: a process with another length of leases uses that of the consumer, and logs it.
func TestOtherLease(t *testing.T) {
	folder := t.TempDir()
	q := open(t, folder, jetstream.Options{Lease: time.Minute})
	transporttest.None(t, q)
	transporttest.Signed(t, q)
	var log bytes.Buffer
	other := open(t, folder, jetstream.Options{Lease: time.Hour, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	l := transporttest.Fetch(t, other)
	require.Equal(t, time.Minute, l.Length)
	require.Contains(t, log.String(), "another length")
	require.NoError(t, other.Settle(t.Context(), l.Ack()))
}

// ending is a context that ends right after the first look at it.
type ending struct {
	context.Context
	looks *int
}

func (c ending) Err() error {
	if *c.looks++; *c.looks == 1 {
		return nil
	}
	return c.Context.Err()
}

// Rule: a fetch whose context ends while it asks the server says that, and does not call the server unavailable.
func TestFetchWhoseContextEnds(t *testing.T) {
	q := open(t, t.TempDir(), jetstream.Options{})
	transporttest.None(t, q) // creates the consumer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := q.Fetch(ending{ctx, new(int)}, pawl.Request{Kinds: []string{"k"}, Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrNotAccepted)
	require.NotErrorIs(t, err, jetstream.ErrUnavailable)
}

// Rule: a drain of all kinds waits for a delayed job of a kind that has no other jobs.
func TestDrainOfDelayedKind(t *testing.T) {
	q := open(t, t.TempDir(), jetstream.Options{})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = q.Fetch(ctx, pawl.Request{Max: 1, Wait: pawl.WaitFinished})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitDrained})
	require.ErrorIs(t, err, pawl.ErrEmpty)
}

// Rule: a job that is due later than the server can count is delayed, and not ready at once.
func TestLongestDelay(t *testing.T) {
	q := open(t, t.TempDir(), jetstream.Options{})
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", NotBefore: time.Now().Add(math.MaxInt64)})
	require.NoError(t, err)
	transporttest.Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Snooze(math.MaxInt64)))
	id := transporttest.Signed(t, q)
	l := transporttest.Fetch(t, q)
	require.Equal(t, id, l.ID)
	require.NoError(t, q.Settle(t.Context(), l.Nack(time.Second, transporttest.ErrBoom)))
	l = transporttest.Fetch(t, q) // the first that the server delays no longer
	require.Equal(t, id, l.ID)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
	require.Equal(t, pawl.Counts{Delayed: 2}, transporttest.Counts(t, q))
}
