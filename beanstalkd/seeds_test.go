package beanstalkd_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/internal/transport/transporttest"
)

// Rule: each row of the table of nack and abandon, what is refused, and a drain.
func TestTable(t *testing.T) {
	t.Parallel()
	url(t)
	transporttest.Run(t, transporttest.Engine{
		Name: "beanstalkd", ShowsLeases: true,
		New: func(t *testing.T, o transporttest.Options) func() transporttest.Queue {
			with := beanstalkd.Options{Prefix: newPrefix(), Lease: o.Lease, MaxCrashes: o.MaxCrashes, OnEvent: o.OnEvent, Collector: o.Collector}
			return func() transporttest.Queue { return open(t, url(t), with) }
		},
	})
}

// Rule: kick: a dead job that is kicked by any other client of the server runs with its attempts from 0 on and keeps its history.
func TestKickedByAnotherClient(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{Prefix: "kicked"})
	id := transporttest.Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Abandon(pawl.ReasonPermanent, transporttest.ErrBoom)))
	nc, err := net.Dial("tcp", strings.TrimPrefix(url(t), "beanstalkd://"))
	require.NoError(t, err)
	defer nc.Close()
	_, err = nc.Write([]byte("use kicked/default/k\r\nkick 1\r\n"))
	require.NoError(t, err)
	answer := make([]byte, len("USING kicked/default/k\r\nKICKED 1\r\n"))
	_, err = io.ReadFull(nc, answer)
	require.NoError(t, err)
	require.Contains(t, string(answer), "KICKED 1")
	l := transporttest.Fetch(t, q)
	require.Equal(t, id, l.ID)
	require.Zero(t, l.Attempts)
	require.Zero(t, l.Crashes)
	require.Nil(t, l.Death)
	require.NoError(t, transporttest.Keys(t).Verify(l.Envelope))
	require.NoError(t, q.Settle(t.Context(), l.Release()))
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Abandon(pawl.ReasonExhausted, transporttest.ErrBoom)))
	e, err := q.Dead(t.Context(), "default", "k")
	require.NoError(t, err)
	require.Equal(t, 1, e.Attempts)
	require.Equal(t, pawl.ReasonExhausted, e.Death.Reason)
	require.Len(t, e.History, 2)
	_, err = q.RetryDead(t.Context(), "default", "k", 10)
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Ack()))
}

// Rule: release keeps the place of a job.
func TestReleaseKeepsThePlace(t *testing.T) {
	q := open(t, url(t), beanstalkd.Options{})
	first, second := transporttest.Signed(t, q), transporttest.Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Release()))
	l := transporttest.Fetch(t, q)
	require.Equal(t, first, l.ID)
	require.Zero(t, l.Crashes)
	require.NoError(t, q.Settle(t.Context(), l.Nack(0, transporttest.ErrBoom)))
	other := transporttest.Fetch(t, q)
	require.Equal(t, second, other.ID)
	require.NoError(t, q.Settle(t.Context(), other.Snooze(time.Hour)))
	require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1}, transporttest.Counts(t, q))
	l = transporttest.Fetch(t, q)
	require.Equal(t, first, l.ID)
	require.Equal(t, 1, l.Attempts)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: an abandon that was cut short after the copy was stored leaves a copy that dies when it
// comes, and does not run.
func TestAbandonCutShort(t *testing.T) {
	prefix := newPrefix()
	q := open(t, url(t), beanstalkd.Options{Prefix: prefix})
	transporttest.Signed(t, q)
	require.NoError(t, q.Settle(t.Context(), transporttest.Fetch(t, q).Abandon(pawl.ReasonPermanent, transporttest.ErrBoom)))
	body := deadBody(t, prefix+"/default/k")
	putRaw(t, prefix+"/default/k", body)
	transporttest.None(t, q)
	require.Equal(t, pawl.Counts{Dead: 2}, transporttest.Counts(t, q))
}
