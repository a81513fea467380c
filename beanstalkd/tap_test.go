package beanstalkd_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/beanstalkd"
	"github.com/gopawl/pawl/internal/transport/transporttest"
)

// newTap forwards connections to the shared server and returns its own place. Before it forwards
// something it calls request or answer, which may block, with all that the client has sent on that
// connection. It ends the connection if request returns false.
func newTap(t testing.TB, request func(sent string) bool, answer func(sent string)) string {
	t.Helper()
	server := strings.TrimPrefix(url(t), "beanstalkd://")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	forward := func(to, from net.Conn, before func(b []byte) bool) {
		defer from.Close()
		defer to.Close()
		b := make([]byte, 1<<16)
		for {
			n, err := from.Read(b)
			if err != nil || !before(b[:n]) {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			var mu sync.Mutex
			var sent string
			go forward(server, client, func(b []byte) bool {
				mu.Lock()
				sent += string(b)
				all := sent
				mu.Unlock()
				return request(all)
			})
			go forward(client, server, func([]byte) bool {
				mu.Lock()
				all := sent
				mu.Unlock()
				answer(all)
				return true
			})
		}
	}()
	return "beanstalkd://" + l.Addr().String()
}

// Rule: a fetch that waits shares no connection with a settlement under way, and leaves it alone
// when its context ends.
func TestSettleBesideWaitingFetch(t *testing.T) {
	for _, test := range []struct {
		name, first string // the first command of the settlement
		settle      func(l *pawl.Lease) pawl.Settlement
		after       pawl.Counts
	}{
		{"ack", "delete", func(l *pawl.Lease) pawl.Settlement { return l.Ack() }, pawl.Counts{}},
		{"nack", "touch", func(l *pawl.Lease) pawl.Settlement { return l.Nack(0, transporttest.ErrBoom) }, pawl.Counts{Ready: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var mu sync.Mutex
			var settling string // the command whose answer is held back
			isSettling := func(sent string) bool {
				mu.Lock()
				defer mu.Unlock()
				return settling != "" && strings.Contains(sent, settling)
			}
			waits, settles, gate := make(chan string, 10), make(chan struct{}), make(chan struct{})
			settled, release := sync.OnceFunc(func() { close(settles) }), sync.OnceFunc(func() { close(gate) })
			where := newTap(t, func(sent string) bool {
				if strings.HasSuffix(sent, "reserve-with-timeout 10\r\n") {
					waits <- sent
				}
				if isSettling(sent) {
					settled()
				}
				return true
			}, func(sent string) {
				if isSettling(sent) {
					<-gate
				}
			})
			prefix := newPrefix()
			q, other := open(t, where, beanstalkd.Options{Prefix: prefix}), open(t, url(t), beanstalkd.Options{Prefix: prefix})
			t.Cleanup(release) // before q closes

			// The queue has a connection with a lease, and one without, which is the next to be used.
			transporttest.Signed(t, other)
			l := transporttest.Fetch(t, q)
			second := make(chan []*pawl.Lease, 1)
			go func() {
				leases, _ := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: 1})
				second <- leases
			}()
			<-waits
			transporttest.Signed(t, other)
			leases := <-second
			require.Len(t, leases, 1)
			require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
			transporttest.None(t, q)

			mu.Lock()
			settling = fmt.Sprintf("%s %d\r\n", test.first, l.Seq)
			mu.Unlock()
			settle := make(chan error, 1)
			go func() { settle <- q.Settle(t.Context(), test.settle(l)) }()
			<-settles
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := q.Fetch(ctx, pawl.Request{Kinds: []string{"other"}, Max: 1})
				ended <- err
			}()
			require.False(t, isSettling(<-waits), "the fetch waits on the connection of the settlement")
			cancel()
			require.ErrorIs(t, <-ended, pawl.ErrNotAccepted)
			release()
			require.NoError(t, <-settle)
			require.Equal(t, test.after, transporttest.Counts(t, other))
		})
	}
}

// Rule: the wait of a fetch is not part of its lease. The whole length is left when the job comes.
func TestLeaseAfterWait(t *testing.T) {
	prefix := newPrefix()
	waits := make(chan string, 10)
	where := newTap(t, func(sent string) bool {
		if strings.HasSuffix(sent, "reserve-with-timeout 10\r\n") {
			waits <- sent
		}
		return true
	}, func(string) {})
	q, other := open(t, where, beanstalkd.Options{Prefix: prefix}), open(t, url(t), beanstalkd.Options{Prefix: prefix})
	got := make(chan *pawl.Lease, 1)
	go func() { got <- transporttest.Fetch(t, q) }()
	<-waits
	put := time.Now()
	transporttest.Signed(t, other)
	l := <-got
	require.False(t, l.Expires.Before(put.Add(l.Length)), "the lease started before the job was put")
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: a fetch that waited does not return a job whose lease expired before it read the answer.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	o := beanstalkd.Options{Prefix: newPrefix(), Lease: 5 * time.Second}
	waits, reserves, gate := make(chan string, 10), make(chan struct{}), make(chan struct{})
	reserved, release := sync.OnceFunc(func() { close(reserves) }), sync.OnceFunc(func() { close(gate) })
	where := newTap(t, func(sent string) bool {
		if strings.HasSuffix(sent, "reserve-with-timeout 10\r\n") {
			waits <- sent
		}
		return true
	}, func(sent string) {
		if strings.Contains(sent, "reserve-with-timeout 10\r\n") {
			reserved()
			<-gate
		}
	})
	q, other := open(t, where, o), open(t, url(t), o)
	t.Cleanup(release) // before q closes
	got := make(chan *pawl.Lease, 1)
	go func() { got <- transporttest.Fetch(t, q) }()
	<-waits
	first := transporttest.Signed(t, other)
	<-reserves
	l := transporttest.Fetch(t, other) // when the server has taken the job back
	require.Equal(t, first, l.ID)
	require.NoError(t, other.Settle(t.Context(), l.Ack()))
	release()
	second := transporttest.Signed(t, other)
	l = <-got
	require.Equal(t, second, l.ID)
	require.NoError(t, q.Settle(t.Context(), l.Ack()))
}

// Rule: a fetch whose connection breaks between two pipelines returns the error, and not the leases
// that ended with the connection. Their jobs come again.
func TestBreakBetweenPipelines(t *testing.T) {
	const jobs = 65 // one more than a pipeline
	prefix := newPrefix()
	where := newTap(t, func(sent string) bool {
		_, second, _ := strings.Cut(sent, "stats-job") // which ends the first pipeline
		return !strings.Contains(second, "reserve-with-timeout")
	}, func(string) {})
	q, other := open(t, where, beanstalkd.Options{Prefix: prefix}), open(t, url(t), beanstalkd.Options{Prefix: prefix})
	for range jobs {
		transporttest.Signed(t, other)
	}
	leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"k"}, Max: jobs, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, beanstalkd.ErrUnavailable)
	require.Empty(t, leases)
	for range jobs {
		require.NoError(t, other.Settle(t.Context(), transporttest.Fetch(t, other).Ack()))
	}
	require.Equal(t, pawl.Counts{}, transporttest.Counts(t, other))
}
