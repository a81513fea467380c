package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// gone is the number of removed jobs whose rows the server may not remove yet.
const gone = 30_000

// keepDeadRows removes that many ready jobs of kind k. A transaction that stays open keeps the server from
// removing their rows.
func keepDeadRows(t *testing.T, schema string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), strings.ReplaceAll(`INSERT INTO pawl.job (id, seq, since, line, place, lane, prio, record, payload)
		SELECT gen_random_uuid(), n, n, (SELECT id FROM pawl.line), 0, 0, 127, '', '' FROM generate_series(1, 30000) n`, "pawl.", schema+"."))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "SELECT FROM "+schema+".meta")
	require.NoError(t, err)
	execute(t, "DELETE FROM "+schema+".job WHERE seq <= 30000 AND since <= 30000")
}

// Rule: rows that the server may not remove slow down one fetch between two polls, and no other.
func TestFetchesBesideDeadRows(t *testing.T) {
	schema := newSchema(t)
	q, err := postgres.Open(t.Context(), server.url, &postgres.Options{Schema: schema, Poll: time.Hour})
	require.NoError(t, err)
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	require.NoError(t, q.Settle(t.Context(), fetchOne(t, q).Ack()))
	keepDeadRows(t, schema)
	for range 20 {
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
		require.NoError(t, q.Settle(t.Context(), fetchOne(t, q).Ack()))
	}
	require.NoError(t, q.Close()) // its session reports its statistics
	require.Eventually(t, func() bool {
		return count(t, "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = '"+schema+"' AND indexrelname = 'job_ready'") > 0
	}, time.Minute, 10*time.Millisecond)
	require.Less(t, count(t, "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = '"+schema+"' AND indexrelname = 'job_ready'"), 2*gone)
}

// Rule: a job that a process puts before others is fetched next, and a job that another process stores is
// found, however many rows the server may not remove.
func TestJobsBeforeTheMarks(t *testing.T) {
	schema := newSchema(t)
	slow := func(o *postgres.Options) { o.Poll = time.Hour }
	q, other := open(t, schema, slow), open(t, schema, slow)
	first, second := &pawl.Envelope{Kind: "k"}, &pawl.Envelope{Kind: "k"}
	require.NoError(t, withid.Enqueue(t.Context(), q, first))
	keepDeadRows(t, schema)
	l := fetchOne(t, q)
	require.Equal(t, first.ID, l.ID)
	require.NoError(t, withid.Enqueue(t.Context(), q, second))
	require.NoError(t, q.Settle(t.Context(), l.Release()))
	require.Equal(t, first.ID, fetchOne(t, q).ID)
	require.Equal(t, second.ID, fetchOne(t, q).ID)
	urgent := &pawl.Envelope{Kind: "k", Priority: 1}
	require.NoError(t, withid.Enqueue(t.Context(), other, urgent))
	require.Equal(t, urgent.ID, fetchOne(t, q).ID)
}
