package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/scenario"
	"github.com/gopawl/pawl/postgres"
)

// TestScenarios proves the promises of workflows. It takes four minutes, so it runs only if
// PAWL_SLOW_TESTS is set.
func TestScenarios(t *testing.T) {
	if os.Getenv("PAWL_SLOW_TESTS") == "" {
		t.Skip("set PAWL_SLOW_TESTS=1 to run the scenarios of workflows over PostgreSQL")
	}
	scenario.FewerSeeds(t)
	var free *freeSchemas
	if os.Getenv(serverOfParent) == "" { // a child process is killed, and removes nothing
		newSchema(t) // or skip
		free = newFreeSchemas(t, "; DELETE FROM pawl.counters; DELETE FROM pawl.commits")
	}
	scenario.Run(t, scenario.Store{
		Env:    []string{serverOfParent + "=" + server.url},
		Beside: true,
		Open: func(t testing.TB, path string, o scenario.Options) scenario.Queue {
			return openScenario(t, schemaOf(t, path, free), o)
		},
	})
}

// schemaOf returns the schema that a path stands for. The file of the path has its name.
func schemaOf(t testing.TB, path string, free *freeSchemas) string {
	name, err := os.ReadFile(path)
	if err == nil {
		return string(name)
	}
	if os.Getenv(serverOfParent) == "" {
		name = []byte(free.take(t))
	} else { // the schema outlives this process
		name = fmt.Appendf(nil, "killed_%d_%d", os.Getpid(), server.names.Add(1))
	}
	require.NoError(t, os.WriteFile(path, name, 0o600))
	return string(name)
}

// openScenario opens the queue in a schema.
func openScenario(t testing.TB, schema string, o scenario.Options) scenario.Queue {
	q := &mortal{schema: schema, conns: make(map[net.Conn]bool)}
	config, err := pgxpool.ParseConfig(server.url)
	require.NoError(t, err)
	config.MaxConns = 20
	config.ConnConfig.DialFunc = q.dial
	q.pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	q.Queue, err = postgres.Over(t.Context(), q.pool, &postgres.Options{
		Schema: schema, Owner: "scenario", Poll: postgres.NoPoll, Timeout: time.Second,
		Now: o.Now, MaxCrashes: o.MaxCrashes, Logger: hclog.NewNullLogger(),
	})
	require.NoError(t, err)
	_, err = q.pool.Exec(t.Context(), strings.ReplaceAll(scenarioTables, "pawl.", schema+"."))
	require.NoError(t, err)
	return q
}

// scenarioTables are the counters of the app, and the transactions that changed rows of workflows.
const scenarioTables = `CREATE TABLE IF NOT EXISTS pawl.counters (name text PRIMARY KEY, n int8 NOT NULL);
CREATE TABLE IF NOT EXISTS pawl.commits (xid int8 PRIMARY KEY);
CREATE OR REPLACE FUNCTION pawl.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO pawl.commits VALUES (txid_current()) ON CONFLICT DO NOTHING;
	RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON pawl.kv FOR EACH STATEMENT EXECUTE FUNCTION pawl.note();`

// mortal is a queue that can lose its server for ever.
type mortal struct {
	*postgres.Queue
	pool   *pgxpool.Pool
	schema string

	mu    sync.Mutex
	dead  bool
	conns map[net.Conn]bool
}

var errDead = errors.New("the process is dead")

// dial connects to the server.
func (q *mortal) dial(ctx context.Context, network, address string) (net.Conn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.dead {
		return nil, errDead
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		q.conns[conn] = true
	}
	return conn, err
}

// Crash implements [scenario.Queue].
func (q *mortal) Crash() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dead = true
	for conn := range q.conns {
		_ = conn.Close()
	}
	go func() { _ = q.Queue.Close() }()
}

// Close implements [scenario.Queue].
func (q *mortal) Close() error {
	err := q.Queue.Close()
	q.pool.Close()
	return err
}

// Check implements [scenario.Queue]. There is nothing to check: the server guards its tables.
func (q *mortal) Check(context.Context) error { return nil }

// Counts implements [scenario.Queue].
func (q *mortal) Counts(ctx context.Context) (map[string]pawl.Counts, error) {
	return counts(ctx, q.Queue)
}

// Counters implements [scenario.Queue].
func (q *mortal) Counters(ctx context.Context) (map[string]uint64, error) {
	rows, err := q.pool.Query(ctx, "SELECT name, n FROM "+q.schema+".counters")
	if err != nil {
		return nil, err
	}
	all := make(map[string]uint64)
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		all[name] = uint64(n)
		return nil
	})
	return all, err
}

// Commits implements [scenario.Queue].
func (q *mortal) Commits(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx, "SELECT count(*) FROM "+q.schema+".commits").Scan(&n)
	return n, err
}

// Damage implements [scenario.Queue].
func (q *mortal) Damage(ctx context.Context, id pawl.ID) error {
	done, err := q.pool.Exec(ctx, "UPDATE "+q.schema+".job SET record = set_byte(record, octet_length(record) - 1, get_byte(record, octet_length(record) - 1) # 1) WHERE id = $1", id.String())
	if err == nil && done.RowsAffected() == 0 {
		err = pawl.ErrNotFound
	}
	return err
}

// Update implements [workflow.Transactor].
func (q *mortal) Update(ctx context.Context, fn func(scenario.Tx) error) error {
	app := &scenarioTx{schema: q.schema}
	err := q.Queue.Update(ctx, func(tx postgres.Tx) error {
		app.Tx = tx
		return fn(app)
	})
	if err == nil {
		for _, fn := range app.onCommit {
			fn()
		}
	}
	return err
}

// MutateTx implements [workflow.Transactor].
func (q *mortal) MutateTx(tx scenario.Tx, m driver.Mutation) error {
	return q.Queue.MutateTx(tx.(*scenarioTx).Tx, m)
}

// In implements [workflow.Transactor].
func (q *mortal) In(tx scenario.Tx) pawl.Enqueuer { return q.Queue.In(tx.(*scenarioTx).Tx) }

// scenarioTx is a transaction of the app.
type scenarioTx struct {
	postgres.Tx
	schema   string
	onCommit []func()
}

// Count implements [scenario.Tx].
func (tx *scenarioTx) Count(name string) (n uint64, err error) {
	err = tx.QueryRow(context.Background(), "INSERT INTO "+tx.schema+".counters AS c VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = c.n + 1 RETURNING n", name).Scan(&n)
	return n, err
}

// OnCommit implements [scenario.Tx].
func (tx *scenarioTx) OnCommit(fn func()) { tx.onCommit = append(tx.onCommit, fn) }
