package beanstalkd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/engine"
	"github.com/gopawl/pawl/internal/transport/transporttest"
)

// Rule: a place or an option that cannot be is refused, and a server that is not there is
// unavailable.
func TestOpenRefuses(t *testing.T) {
	for where, o := range map[string]*beanstalkd.Options{
		"localhost:11300":              nil,
		"beanstalkd:":                  nil,
		"beanstalkd://":                nil,
		"beanstalkd://u:p@h":           nil,
		"beanstalkd://h/tube":          nil,
		"beanstalkd://127.0.0.1:1?a=b": nil,
		"beanstalkd://127.0.0.1:1":     {Prefix: "a/b"},
		"beanstalkd://127.0.0.1:1#":    {Prefix: strings.Repeat("p", 33)},
		"beanstalkd://127.0.0.1:2":     {Lease: time.Second},
		"beanstalkd://127.0.0.1:3":     {Lease: 2500 * time.Millisecond},
		"beanstalkd://127.0.0.1:4":     {MaxCrashes: -2},
		"beanstalkd://127.0.0.1:5":     {MaxPayload: -1},
		"beanstalkd://127.0.0.1:6":     {Timeout: -1},
	} {
		q, err := beanstalkd.Open(t.Context(), where, o)
		require.ErrorIs(t, err, pawl.ErrInvalid, where)
		require.Nil(t, q)
	}
	_, err := beanstalkd.Open(t.Context(), "beanstalkd://127.0.0.1:1", nil)
	require.ErrorIs(t, err, beanstalkd.ErrUnavailable)
}

// Rule: package engine opens a queue by its URL.
func TestEngine(t *testing.T) {
	q, err := engine.Open(t.Context(), url(t))
	require.NoError(t, err)
	require.IsType(t, (*beanstalkd.Queue)(nil), q)
	require.NoError(t, q.Close())
	q, err = engine.Open(t.Context(), "beanstalkd://127.0.0.1:1")
	require.ErrorIs(t, err, beanstalkd.ErrUnavailable)
	require.Nil(t, q)
}

// Rule: a server without a log is never taken for a durable one: the log says so, and a program that
// declares or requires synced changes does not start. With a log, the declaration counts.
func TestSynced(t *testing.T) {
	var log bytes.Buffer
	q := open(t, url(t), beanstalkd.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	require.Contains(t, log.String(), "the server has no log")
	require.ErrorIs(t, pawl.Require(q, pawl.Synced), pawl.ErrUnsupported)
	require.NoError(t, pawl.Require(q, pawl.Shared|pawl.Priorities))

	_, err := beanstalkd.Open(t.Context(), url(t), &beanstalkd.Options{Synced: true})
	require.ErrorIs(t, err, pawl.ErrUnsupported)
	require.ErrorContains(t, err, "beanstalkd")
	require.ErrorContains(t, err, "-b and -f0")

	s, err := startServer("", "-b", t.TempDir(), "-f0")
	require.NoError(t, err)
	defer s.Stop()
	require.NoError(t, pawl.Require(open(t, s.url, beanstalkd.Options{Synced: true}), pawl.Synced))
	require.ErrorIs(t, pawl.Require(open(t, s.url, beanstalkd.Options{}), pawl.Synced), pawl.ErrUnsupported)
}

// Rule: a job that does not fit is refused as such, and the largest payload comes back.
func TestSizes(t *testing.T) {
	s, err := startServer("")
	require.NoError(t, err)
	defer s.Stop()
	q := open(t, s.url, beanstalkd.Options{})
	require.Less(t, q.MaxPayload(), 65535)
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: make([]byte, q.MaxPayload())})
	require.ErrorIs(t, err, pawl.ErrPayloadTooLarge) // with its envelope
	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Payload: make([]byte, q.MaxPayload()-200)})
	require.NoError(t, err)
	for range 30 { // the history stays within the room for it
		require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Nack(0, errors.New(strings.Repeat("é", 1000)))))
	}
	l := transporttest.Fetch(t, q)
	require.Len(t, l.Payload, q.MaxPayload()-200)
	require.Equal(t, 30, l.Attempts)
	require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errors.New(strings.Repeat("é", 1000)))))
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Len(t, e.History, 1)
	require.Equal(t, 31, e.History[0].Attempt)
	require.Equal(t, 31, e.Failures)
	require.Contains(t, e.LastError(), "éé")

	_, err = q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k", Queue: strings.Repeat("-", 70)})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "tube")
}

// Rule: a job of somebody else in a tube is buried, and the log says so; it does not run.
func TestForeignBody(t *testing.T) {
	prefix := newPrefix()
	var log bytes.Buffer
	q := open(t, url(t), beanstalkd.Options{Prefix: prefix, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	for _, body := range []string{"", "x", "\x01\x00\x00\x00\x09short", "\x01\x00\x00\x00\x00"} {
		putRaw(t, prefix+"/default/k", body)
	}
	transporttest.None(t, q)
	require.Equal(t, 4, transporttest.Counts(t, q).Dead)
	require.Equal(t, 4, strings.Count(log.String(), "cannot be read"))
	_, err := q.Dead(t.Context(), "default", "k")
	require.ErrorIs(t, err, pawl.ErrCorrupt)
}

// Rule: a fetch that waits gets the job of another client, ends with its context, and ends with the
// queue.
func TestWaitingFetch(t *testing.T) {
	prefix := newPrefix()
	q, other := open(t, url(t), beanstalkd.Options{Prefix: prefix}), open(t, url(t), beanstalkd.Options{Prefix: prefix})
	wait := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() {
			leases, err := q.Fetch(ctx, pawl.Request{Kinds: []string{"k"}, Max: 1})
			for _, l := range leases {
				err = q.Settle(ctx, l.Ack())
			}
			done <- err
		}()
		require.Eventually(t, func() bool { return waiting(t) > 0 }, time.Minute, time.Millisecond)
		return done
	}
	done := wait(t.Context())
	transporttest.Signed(t, other)
	require.NoError(t, <-done)

	ctx, cancel := context.WithCancel(t.Context())
	done = wait(ctx)
	cancel()
	require.ErrorIs(t, <-done, pawl.ErrNotAccepted)
	require.Eventually(t, func() bool { return waiting(t) == 0 }, time.Minute, time.Millisecond)

	done = wait(t.Context())
	require.NoError(t, q.Close())
	require.ErrorIs(t, <-done, pawl.ErrClosed)
	_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrClosed)
}

// Rule: jobs come by priority, then as they were put, over all kinds; a worker gets only kinds that
// it names.
func TestOrderAndKinds(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{})
	for _, job := range []struct {
		kind     string
		priority int8
	}{{"a", 0}, {"b", 0}, {"c", 127}, {"a", math.MinInt8}, {"b", 1}, {"a", 1}} {
		_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: job.kind, Priority: job.priority})
		require.NoError(t, err)
	}
	leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"a", "b"}, Max: 10, Wait: pawl.WaitNot})
	require.NoError(t, err)
	var got []string
	for _, l := range leases {
		got = append(got, fmt.Sprint(l.Kind, l.Priority))
	}
	require.Equal(t, []string{"b1", "a1", "a0", "b0", "a-128"}, got)
	leases, err = q.Fetch(t.Context(), pawl.Request{Max: 10, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.Equal(t, "c", leases[0].Kind)
}

// Rule: names that are too long for a tube have no dead jobs. A look at them, and a retry, leave those of other names alone.
func TestDeadOfLongNames(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{Prefix: newPrefix()})
	id := transporttest.Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Abandon(pawl.ReasonPermanent, transporttest.ErrBoom)))
	dead, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, id, dead.ID)
	_, err = q.Dead(t.Context(), "default", strings.Repeat("k", 200))
	require.ErrorIs(t, err, pawl.ErrNotFound)
	n, err := q.RetryDead(t.Context(), "default", strings.Repeat("k", 200), 10)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, pawl.Counts{Dead: 1}, transporttest.Counts(t, q))
}
