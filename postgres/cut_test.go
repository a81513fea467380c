package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/postgres/internal/torture/proxy"
)

// cutter is a proxy of the server that breaks a connection at a commit.
type cutter struct {
	url string

	before atomic.Bool // the next commit does not reach the server
	after  atomic.Bool // the answer of the next commit does not reach the client
	ended  atomic.Bool // the server ends the connection once it has carried out the next commit
	outage atomic.Bool // the next cut begins an outage
	away   atomic.Bool // there is an outage

	trips atomic.Int64 // round trips so far

	freezes atomic.Bool   // the next commit freezes the proxy
	frozen  atomic.Bool   // nothing passes, and no connection ends
	stuck   chan struct{} // closed when something did not pass
	thawed  chan struct{}
	once    sync.Once
}

// freeze holds everything up until thaw.
func (c *cutter) freeze() { c.frozen.Store(true) }
func (c *cutter) thaw() {
	if c.frozen.CompareAndSwap(true, false) {
		close(c.thawed)
	}
}

// hold waits while the proxy is frozen.
func (c *cutter) hold() {
	if c.frozen.Load() {
		c.once.Do(func() { close(c.stuck) })
		<-c.thawed
	}
}

const socketName = ".s.PGSQL.5432"

func newCutter(t *testing.T) *cutter {
	folder := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(folder, socketName))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	c := &cutter{url: "host=" + folder + " user=pawl dbname=postgres", stuck: make(chan struct{}), thawed: make(chan struct{})}
	t.Cleanup(c.thaw)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.serve(client)
		}
	}()
	return c
}

func (c *cutter) serve(client net.Conn) {
	defer client.Close()
	if c.away.Load() {
		return
	}
	upstream, err := net.Dial("unix", filepath.Join(hostOf(), socketName))
	if err != nil {
		return
	}
	defer upstream.Close()
	var silent, ends atomic.Bool
	go func() {
		defer client.Close()
		pass(client, upstream, func(answer []byte) bool {
			c.hold()
			if _, rest, found := bytes.Cut(answer, []byte(committed)); found && ends.Load() {
				_, _ = client.Write(append(answer[:len(answer)-len(rest):len(answer)-len(rest)], endOfSession...))
				return false
			}
			return !silent.Load()
		})
	}()
	pass(upstream, client, func(sent []byte) bool {
		if c.away.Load() {
			return false
		}
		for _, end := range []string{"S\x00\x00\x00\x04", "c\x00\x00\x00\x04"} { // of statements, or of a COPY
			c.trips.Add(int64(bytes.Count(sent, []byte(end))))
		}
		if !proxy.Commits(sent) {
			c.hold()
			return true
		}
		if c.freezes.CompareAndSwap(true, false) {
			c.freeze()
		}
		c.hold()
		before, after := c.before.CompareAndSwap(true, false), c.after.CompareAndSwap(true, false)
		if after {
			silent.Store(true)
		}
		if c.ended.CompareAndSwap(true, false) {
			ends.Store(true)
		}
		if before || after {
			c.away.Store(c.outage.Load())
		}
		return !before
	})
}

// What a server sends once it has carried out a commit, and when an administrator ends a session.
const (
	committed    = "C\x00\x00\x00\x0bCOMMIT\x00"
	endOfSession = "E\x00\x00\x00\x46SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection by an administrator\x00\x00"
)

// pass copies what allowed allows.
func pass(to, from net.Conn, allowed func([]byte) bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil || !allowed(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// Rule: a call whose commit breaks takes effect once and returns nil, whether the server got the
// commit or not, and whether it said that it ended the connection or not.
func TestConnectionBreaksAtACommit(t *testing.T) {
	schema := newSchema(t)
	proxy := newCutter(t)
	events := make(map[pawl.EventType]int)
	q, err := postgres.Open(t.Context(), proxy.url, &postgres.Options{
		Schema: schema, Poll: postgres.NoPoll, Logger: hclog.NewNullLogger(),
		OnEvent: func(e pawl.Event) { events[e.Type]++ },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	for _, cut := range []*atomic.Bool{&proxy.before, &proxy.after, &proxy.ended} {
		clear(events)
		during := func(what string, call func() error) {
			t.Helper()
			cut.Store(true)
			require.NoError(t, call(), what)
			require.False(t, cut.Load(), "the connection broke at the %s", what)
		}
		e := &pawl.Envelope{Kind: "k"}
		during("enqueue", func() error { return withid.Enqueue(t.Context(), q, e) })
		var leases []*pawl.Lease
		during("fetch", func() (err error) {
			leases, err = q.Fetch(t.Context(), pawl.Request{Max: 9, Wait: pawl.WaitNot})
			return err
		})
		require.Len(t, leases, 1)
		require.Equal(t, e.ID, leases[0].ID)
		during("extend", func() error {
			lost, err := q.Extend(t.Context(), leases...)
			require.Empty(t, lost)
			return err
		})
		during("nack", func() error { return q.Settle(t.Context(), leases[0].Nack(0, nil)) })
		job, err := q.Job(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, 1, job.Attempts)
		leases, err = q.Fetch(t.Context(), pawl.Request{Max: 9, Wait: pawl.WaitNot})
		require.NoError(t, err)
		during("ack", func() error { return q.Settle(t.Context(), leases[0].Ack()) })
		require.Equal(t, "map[enqueued:1 fetched:2 retried:1 succeeded:1]", fmt.Sprint(events))
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counts{}, stats.Queues[0].Counts)
	}
}
