package postgres_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// behindProxy runs a test in virtual time, with a proxy and a queue behind it.
func behindProxy(t *testing.T, test func(t *testing.T, schema string, proxy *cutter, q *postgres.Queue)) {
	t.Helper()
	proxy := newCutter(t)
	inVirtualTime(t, func(t *testing.T, schema string) {
		test(t, schema, proxy, openAt(t, proxy.url, schema, noPoll, virtual))
	})
}

// during makes a call whose commit reaches the server, after which the server is away for longer
// than the queue waits.
func (c *cutter) during(t *testing.T, call func() error) {
	t.Helper()
	c.outage.Store(true)
	c.after.Store(true)
	require.ErrorIs(t, call(), pawl.ErrUnknownOutcome)
	c.outage.Store(false)
}

// Rule: jobs that a fetch of unknown outcome leased are released, and no crash is counted.
func TestFetchOfUnknownOutcome(t *testing.T) {
	behindProxy(t, func(t *testing.T, schema string, proxy *cutter, q *postgres.Queue) {
		e := &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		proxy.during(t, func() error {
			_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
			return err
		})
		proxy.away.Store(false)
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.Equal(t, e.ID, leases[0].ID)
		require.Zero(t, leases[0].Crashes)
		require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})) // which removes what is left of the fetch
		require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".claim"))
	})
}

// Rule: a fetch that waits, and that gets jobs by a commit of unknown outcome, returns that outcome: these jobs may
// be leased.
func TestWaitingFetchOfUnknownOutcome(t *testing.T) {
	behindProxy(t, func(t *testing.T, schema string, proxy *cutter, q *postgres.Queue) {
		fetched := make(chan error, 1)
		go func() {
			_, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
			fetched <- err
		}()
		synctest.Wait()
		proxy.during(t, func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) })
		require.ErrorIs(t, <-fetched, pawl.ErrUnknownOutcome)
		proxy.away.Store(false)
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.Zero(t, leases[0].Crashes)
	})
}

// Rule: a process that ends releases the jobs that a fetch of unknown outcome leased. No crash is counted.
func TestCloseAfterAFetchOfUnknownOutcome(t *testing.T) {
	behindProxy(t, func(t *testing.T, schema string, proxy *cutter, q *postgres.Queue) {
		e := &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		proxy.during(t, func() error {
			_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
			return err
		})
		time.Sleep(30*time.Second + 500*time.Millisecond) // the queue has tried to release it, and tries again in a second
		proxy.away.Store(false)
		require.NoError(t, q.Close())
		require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".process"))
		leases, err := open(t, schema, virtual).Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.Equal(t, e.ID, leases[0].ID)
		require.Zero(t, leases[0].Crashes)
	})
}

// Rule: a fetch of unknown outcome has leased jobs, and another session has one of them locked. That job is not lost
// when the process ends before it is free: another process takes the lease back.
func TestPartOfAFetchOfUnknownOutcomeIsLocked(t *testing.T) {
	behindProxy(t, func(t *testing.T, schema string, proxy *cutter, q *postgres.Queue) {
		one, two := &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), q, one, two))
		proxy.during(t, func() error {
			_, err := q.Fetch(t.Context(), pawl.Request{Max: 2, Wait: pawl.WaitNot})
			return err
		})
		session, err := pgx.Connect(t.Context(), server.url)
		require.NoError(t, err)
		t.Cleanup(func() { _ = session.Close(context.Background()) }) // which the schema waits for
		tx, err := session.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "SELECT FROM "+schema+".job WHERE id = $1 FOR UPDATE", two.ID.String())
		require.NoError(t, err)
		proxy.away.Store(false)
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 2})
		require.NoError(t, err)
		require.Len(t, leases, 1)
		require.Equal(t, one.ID, leases[0].ID)
		require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "other"})) // which removes the claims that have ended
		require.NoError(t, q.Close())
		require.NoError(t, session.Close(t.Context()))
		leases, err = open(t, schema, virtual).Fetch(patient(t), pawl.Request{Kinds: []string{"k"}, Max: 1})
		require.NoError(t, err)
		require.Equal(t, two.ID, leases[0].ID)
	})
}

// Rule: a job that a fetch of unknown outcome leased goes back even if the transaction that should have released it,
// and leased it again, had no effect.
func TestDoubtAboutADoubt(t *testing.T) {
	behindProxy(t, func(t *testing.T, schema string, proxy *cutter, q *postgres.Queue) {
		e := &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		fetch := func() error {
			_, err := q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
			return err
		}
		proxy.during(t, fetch)
		proxy.away.Store(false)
		proxy.outage.Store(true)
		proxy.before.Store(true)
		require.Error(t, fetch())
		proxy.outage.Store(false)
		proxy.away.Store(false)
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.Equal(t, e.ID, leases[0].ID)
	})
}

// Rule: a statement of a view that gets no answer ends after Options.Timeout, with ErrUnavailable.
func TestViewKeepsToItsTimeout(t *testing.T) {
	schema, proxy := newSchema(t), newCutter(t)
	open(t, schema)
	brief := &postgres.Options{Schema: schema, Poll: postgres.NoPoll, Timeout: 500 * time.Millisecond, Logger: hclog.NewNullLogger()}
	q, err := postgres.Open(t.Context(), proxy.url, brief)
	for errors.Is(err, postgres.ErrUnavailable) { // the machine is slow
		q, err = postgres.Open(t.Context(), proxy.url, brief)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	table := driver.NewSpace("view").Table("rows")
	require.ErrorIs(t, q.ViewRows(patient(t), func(r driver.Reader) error {
		proxy.freeze()
		_, err := r.Get(table, []byte("key"))
		return err
	}), postgres.ErrUnavailable)
	proxy.thaw()
}

// Rule: a view whose connection breaks while the function runs returns ErrUnavailable, although the function
// returned its own error. If it returned none, the view still fails. If the connection was broken before the
// first read, the function runs again.
func TestViewWhoseConnectionBreaks(t *testing.T) {
	q := open(t, newSchema(t))
	table, other := driver.NewSpace("view").Table("rows"), driver.NewSpace("other").Table("rows")
	amid := func(r driver.Reader) error {
		_, err := r.Get(table, []byte("key"))
		require.NoError(t, err)
		execute(t, breakConnections)
		_, err = r.Get(other, []byte("key"))
		require.Error(t, err)
		return err
	}
	require.ErrorIs(t, q.ViewRows(patient(t), amid), postgres.ErrUnavailable)
	require.Error(t, q.ViewRows(patient(t), func(r driver.Reader) error {
		_ = amid(r)
		return nil
	}))
	runs := 0
	require.NoError(t, q.ViewRows(patient(t), func(r driver.Reader) error {
		if runs++; runs == 1 {
			execute(t, breakConnections)
		}
		_, err := r.Get(table, []byte("key"))
		return err
	}))
	require.Equal(t, 2, runs)
	require.ErrorIs(t, q.ViewRows(patient(t), func(driver.Reader) error { return io.ErrUnexpectedEOF }), io.ErrUnexpectedEOF)
}

// Rule: a commit that has no effect is not taken for an earlier one whose outcome is unknown.
func TestCommitAfterUnknownOutcome(t *testing.T) {
	behindProxy(t, func(t *testing.T, schema string, proxy *cutter, q *postgres.Queue) {
		proxy.during(t, func() error { return withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}) })
		err := withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})
		require.ErrorIs(t, err, postgres.ErrUnavailable, "the queue has given up until the next call")
		proxy.before.Store(true)
		proxy.away.Store(false)
		e := &pawl.Envelope{Kind: "k"}
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		require.False(t, proxy.before.Load())
		_, err = q.Job(t.Context(), e.ID)
		require.NoError(t, err)
	})
}

// count reads a number from the server.
func count(t testing.TB, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&n))
	return n
}
