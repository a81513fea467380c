package postgres_test

import (
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// open opens a queue in a schema, and closes it with the test.
func open(t testing.TB, schema string, change ...func(*postgres.Options)) *postgres.Queue {
	t.Helper()
	return openAt(t, server.url, schema, change...)
}

// openAt is open with a connection string.
func openAt(t testing.TB, url, schema string, change ...func(*postgres.Options)) *postgres.Queue {
	t.Helper()
	opts := &postgres.Options{Schema: schema, Poll: 10 * time.Millisecond, Logger: hclog.NewNullLogger()}
	for _, fn := range change {
		fn(opts)
	}
	q, err := postgres.Open(t.Context(), url, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// Rule: a server, a role, or a schema with which the queue cannot work is refused at open, with an
// error that says which.
func TestOpenIsRefused(t *testing.T) {
	schema := newSchema(t)
	require.NoError(t, withid.Enqueue(t.Context(), open(t, schema), &pawl.Envelope{Kind: "k"}))
	newer, older := newSchema(t), newSchema(t)
	open(t, newer)
	open(t, older)
	execute(t, "UPDATE "+newer+".meta SET format = 1000; UPDATE "+older+".meta SET format = 0")
	execute(t, "CREATE ROLE weak LOGIN")
	t.Cleanup(func() { execute(t, "DROP ROLE weak") })
	weak := "host=" + hostOf() + " user=weak dbname=postgres"
	for _, c := range []struct {
		name, url, schema string
		want              error
	}{
		{"no server", "host=/nowhere user=pawl dbname=postgres", schema, postgres.ErrUnavailable},
		{"no connection string", "host='", schema, pawl.ErrInvalid},
		{"a schema that SQL would have to quote", server.url, `a"b`, pawl.ErrInvalid},
		{"a schema of the server", server.url, "pg_pawl", pawl.ErrInvalid},
		{"a role that may not create the schema", weak, newSchema(t), postgres.ErrPermission},
		{"a role that may not use the schema", weak, schema, postgres.ErrPermission},
		{"a read-only server without the schema", server.url + " default_transaction_read_only=on", newSchema(t), postgres.ErrReadOnly},
		{"a read-only server", server.url + " default_transaction_read_only=on", schema, postgres.ErrReadOnly},
		{"a newer schema", server.url, newer, pawl.ErrNewerFormat},
		{"an older schema", server.url, older, postgres.ErrOlderFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := postgres.Open(t.Context(), c.url, &postgres.Options{Schema: c.schema})
			require.ErrorIs(t, err, c.want)
			require.Nil(t, q)
		})
	}
}

// Rule: the minimum and the maximum lease can be opened.
func TestOpenWithTheShortestAndTheLongestLease(t *testing.T) {
	schema := newSchema(t)
	for _, d := range []time.Duration{time.Second, 365 * 24 * time.Hour} {
		q := open(t, schema, noPoll, func(o *postgres.Options) { o.Lease = d })
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	}
}

// Rule: a queue declares everything but synced changes, which it has only if its server syncs. The
// server of the tests does not.
func TestAbilities(t *testing.T) {
	q := open(t, newSchema(t))
	require.NoError(t, pawl.Require(q, driver.Settings|pawl.Shared|pawl.Groups|pawl.OrderedKeys))
	require.ErrorIs(t, pawl.Require(q, pawl.Synced), pawl.ErrUnsupported)
}

// Rule: no error of Open has the password.
func TestOpenKeepsThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://app:hunter2@localhost:1/db", "postgres://app:hunter2@:x/db", "host=/nowhere password=hunter2", "password=hunter2 port=x",
	} {
		_, err := postgres.Open(t.Context(), url, nil)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// Rule: processes that open one new schema at the same time create it once.
func TestOpenAtOnce(t *testing.T) {
	schema := newSchema(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { open(t, schema) })
	}
	wg.Wait()
}

// Rule: a role without rights on the database works in an existing schema, if it has USAGE and
// CREATE on the schema. The name of a schema may be a word of SQL.
func TestSchemaOfTheRole(t *testing.T) {
	newSchema(t) // or skip
	execute(t, `CREATE ROLE app LOGIN; CREATE SCHEMA "order"; GRANT USAGE, CREATE ON SCHEMA "order" TO app`)
	t.Cleanup(func() { execute(t, `DROP SCHEMA "order" CASCADE; DROP ROLE app`) })
	q := openAt(t, "host="+hostOf()+" user=app dbname=postgres", "order")
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
}

// Rule: a client that closes without a lease leaves nothing behind: no row, no goroutine.
func TestCloseLeavesNothing(t *testing.T) {
	schema := newSchema(t)
	clients := func() string {
		stacks := make([]byte, 1<<20)
		return regexp.MustCompile(`postgres\.\(\*Queue\)|pgconn\.`).FindString(string(stacks[:runtime.Stack(stacks, true)]))
	}
	require.Eventually(t, func() bool { return clients() == "" }, time.Minute, 10*time.Millisecond, "connections of earlier tests end")
	q, err := postgres.Open(t.Context(), server.url, &postgres.Options{Schema: schema, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
	require.NoError(t, q.Close())
	require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".process"))
	require.Zero(t, count(t, "SELECT count(*) FROM "+schema+".claim"))
	require.Empty(t, clients())
}

// Rule: Over leaves the pool of the app open.
func TestOverLeavesThePool(t *testing.T) {
	schema := newSchema(t)
	pool, err := pgxpool.New(t.Context(), server.url)
	require.NoError(t, err)
	defer pool.Close()
	q, err := postgres.Over(t.Context(), pool, &postgres.Options{Schema: schema, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	require.NoError(t, q.Close())
	require.NoError(t, q.Close(), "a second close")
	require.NoError(t, pool.Ping(t.Context()))
}

// Rule: the queues of two schemas have nothing in common.
func TestSchemasAreApart(t *testing.T) {
	one, other := open(t, newSchema(t)), open(t, newSchema(t))
	require.NoError(t, withid.Enqueue(t.Context(), one, &pawl.Envelope{Kind: "k"}))
	_, err := other.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
	stats, err := other.Stats(t.Context())
	require.NoError(t, err)
	require.Empty(t, stats.Queues)
}

// Rule: Open with the option that the queue must exist creates none. The other clients of a queue
// are counted.
func TestExisting(t *testing.T) {
	schema := newSchema(t)
	existing := &postgres.Options{Schema: schema, Existing: true, Logger: hclog.NewNullLogger()}
	_, err := postgres.Open(t.Context(), server.url, existing)
	require.ErrorIs(t, err, postgres.ErrNotQueue)
	require.Zero(t, count(t, "SELECT count(*) FROM pg_namespace WHERE nspname = '"+schema+"'"))
	q := open(t, schema)
	n, err := q.Clients(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	other, err := postgres.Open(t.Context(), server.url, existing)
	require.NoError(t, err)
	n, err = q.Clients(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, other.Close())
}
