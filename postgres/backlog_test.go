package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// statements records the statements of a queue.
type statements struct {
	mu   sync.Mutex
	seen []string
}

func (s *statements) add(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, sql)
}

// take returns the statements so far, without the name of the schema, and forgets them.
func (s *statements) take(schema string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.seen
	s.seen = nil
	for i, sql := range all {
		all[i] = strings.ReplaceAll(sql, `"`+schema+`"`, "pawl")
	}
	return all
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.add(d.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, query := range d.Batch.QueuedQueries {
		s.add(query.SQL)
	}
	return ctx
}
func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// traced returns a queue whose statements are recorded.
func traced(t *testing.T, schema string) (*postgres.Queue, *statements) {
	config, err := pgxpool.ParseConfig(server.url)
	require.NoError(t, err)
	all := new(statements)
	config.ConnConfig.Tracer = all
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	q, err := postgres.Over(t.Context(), pool, &postgres.Options{Schema: schema, Poll: postgres.NoPoll, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q, all
}

// Rule: a queue without a bound on its waiting jobs, without turns of keys, and without a pool has the same statements
// for enqueues (also in transactions of the app), fetches and settlements, whether other queues of the schema have
// these or not.
func TestBoundsCostOtherQueuesNothing(t *testing.T) {
	var all [3][]string
	for i := range all {
		schema := newSchema(t)
		q, statements := traced(t, schema)
		for _, l := range []pawl.Limits{{MaxWaiting: 100, MaxWaitingPerKey: 10, Fair: true}, {Pool: pawl.Pool{Name: "p", Running: 1}}}[:i] {
			other := open(t, schema, noPoll, func(o *postgres.Options) { o.Limits = map[string]pawl.Limits{"limited": l} })
			require.NoError(t, other.Close())
		}
		work := func() {
			batch := make([]*pawl.Envelope, 300)
			for i := range batch {
				batch[i] = &pawl.Envelope{Kind: "k", Key: fmt.Sprint(i % 3)}
			}
			for _, jobs := range [][]*pawl.Envelope{{{Kind: "k"}}, {{Kind: "k", Key: "a", UniqueKey: "u"}}, batch} {
				require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
			}
			require.NoError(t, q.Update(t.Context(), func(tx postgres.Tx) error {
				_, err := q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "k"})
				return err
			}))
			for {
				leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1000, Wait: pawl.WaitNot})
				if errors.Is(err, pawl.ErrEmpty) {
					return
				}
				require.NoError(t, err)
				settlements := make([]pawl.Settlement, len(leases))
				for i, l := range leases {
					if settlements[i] = l.Ack(); l.Attempts == 0 {
						settlements[i] = l.Nack(0, nil)
					}
				}
				require.NoError(t, q.Settle(t.Context(), settlements...))
			}
		}
		work() // it learns the bounds, and makes its lines
		statements.take(schema)
		work()
		all[i] = statements.take(schema)
	}
	for _, some := range all { // a promotion names the queues whose keys take turns
		for i, sql := range some {
			if strings.Contains(sql, "WHERE place = 1 AND since <= $1") {
				some[i] = "promote"
			}
		}
	}
	require.Equal(t, all[0], all[1])
	require.Equal(t, all[0], all[2])
	for _, table := range []string{"pawl.bound", "pawl.front", "j.fair", "cost, fair"} {
		require.NotContains(t, strings.Join(all[1], "\n"), table)
	}
	require.NotContains(t, strings.Join(all[2], "\n"), "pawl.pool")
}

// Rule: a bound counts what transactions of the app enqueue. While one is open, other enqueues into its queue wait, also those of
// other processes, and nothing else does. They count its jobs if it commits, and none if it does not.
func TestBoundBesideATransactionOfTheApp(t *testing.T) {
	t.Parallel()
	bounded := func(o *postgres.Options) {
		o.Limits = map[string]pawl.Limits{"x": {MaxWaiting: 2, MaxWaitingPerKey: 2}}
	}
	add := func(ctx context.Context, q pawl.Enqueuer, queue string) error {
		_, err := q.Enqueue(ctx, &pawl.Envelope{Kind: "k", Queue: queue, Key: "a"})
		return err
	}
	for kind, of := range appTxs {
		t.Run(kind, func(t *testing.T) {
			begin := of(t)
			for _, commits := range []bool{true, false} {
				schema := newSchema(t)
				q, other := open(t, schema, noPoll, bounded), open(t, schema, bounded)
				tx := begin()
				defer func() { _ = tx.rollback() }() // if the case fails, or else the pool would wait for it
				require.NoError(t, add(t.Context(), q.In(tx), "x"))
				require.NoError(t, add(t.Context(), q.In(tx), "x"))
				require.ErrorIs(t, add(t.Context(), q.In(tx), "x"), pawl.ErrQueueFull)
				var answered atomic.Int32
				var wg sync.WaitGroup
				for _, client := range []*postgres.Queue{q, other} {
					for range 8 {
						wg.Go(func() {
							err := add(context.WithoutCancel(t.Context()), client, "x")
							if n := answered.Add(1); commits && !errors.Is(err, pawl.ErrQueueFull) {
								t.Errorf("call %d: %v", n, err)
							}
						})
					}
				}
				for range 10 {
					for _, client := range []*postgres.Queue{q, other} {
						require.NoError(t, add(patient(t), client, "y"))
					}
				}
				require.Zero(t, answered.Load(), "while the transaction is open")
				if commits {
					require.NoError(t, tx.commit())
				} else {
					require.NoError(t, tx.rollback())
				}
				wg.Wait()
				require.Equal(t, 2, count(t, "SELECT count(*) FROM "+schema+".job j JOIN "+schema+".line l ON l.id = j.line JOIN "+schema+".queue q ON q.id = l.queue WHERE q.name = 'x'"))
			}
		})
	}
}

// Rule: a transaction of the app whose isolation may hide what others have committed is refused with an error that
// names the isolation, and is unchanged.
func TestBoundAndIsolation(t *testing.T) {
	q := open(t, newSchema(t), noPoll, func(o *postgres.Options) { o.Limits = map[string]pawl.Limits{"x": {MaxWaiting: 2}} })
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "k", Queue: "x"})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, "repeatable read")
	_, err = q.EnqueueTx(t.Context(), tx, &pawl.Envelope{Kind: "k", Queue: "y"})
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
}
