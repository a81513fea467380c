package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/postgres"
)

// Rule: the statements that are repeated read no whole table of jobs, keys, or effects, and a portion of
// the jobs past their deadline or their retention is not sorted, whether the server has no statistics, or
// those of an empty table, or those of a full one.
func TestPlans(t *testing.T) {
	schema, ctx := newSchema(t), t.Context()
	require.NoError(t, open(t, schema).Close())
	conn, err := pgx.Connect(ctx, server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(ctx))) }()
	run := func(sql string) {
		t.Helper()
		_, err := conn.Exec(ctx, strings.ReplaceAll(sql, "pawl.", schema+"."))
		require.NoError(t, err, sql)
	}
	session, err := postgres.Session()
	require.NoError(t, err)
	run(session)
	for _, h := range postgres.Hot {
		types := ""
		if h.Types != "" {
			types = "(" + h.Types + ")"
		}
		run("PREPARE \"" + h.Name + "\"" + types + " AS " + h.Statement)
	}
	check := func(when string) {
		t.Helper()
		for _, h := range postgres.Hot {
			arguments := ""
			if h.Types != "" {
				arguments = "(NULL" + strings.Repeat(", NULL", strings.Count(h.Types, ",")) + ")"
			}
			rows, err := conn.Query(ctx, "EXPLAIN EXECUTE \""+h.Name+"\""+arguments)
			require.NoError(t, err)
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			plan := strings.Join(lines, "\n")
			for _, table := range []string{"job", "after", "history", "claim", "uniq", "effect", "limits", "bound", "front", "declared", "pace", "pool", "turn", "progress", "log"} {
				require.NotRegexp(t, `Seq Scan on `+table+`\b`, plan, "%s, %s", h.Name, when)
			}
			require.NotContains(t, plan, "Hash Join", "%s, %s", h.Name, when)
			if h.Name == "expired" || h.Name == "retained" { // many jobs may have one time
				require.NotContains(t, plan, "Sort", "%s, %s", h.Name, when)
			}
			if h.Name == "heads" { // many jobs of a key may wait for their turn
				require.NotContains(t, plan, "COALESCE(job", "%s, %s", h.Name, when) // a key of a sort, or a filter
			}
		}
	}
	check("never analyzed")
	run("ANALYZE pawl.job; ANALYZE pawl.uniq; ANALYZE pawl.effect; ANALYZE pawl.claim; ANALYZE pawl.line; ANALYZE pawl.queue")
	check("empty")
	run(`INSERT INTO pawl.queue (name) VALUES ('q'); INSERT INTO pawl.line (queue, kind) SELECT 1, n::text::bytea FROM generate_series(1, 100) n;
		INSERT INTO pawl.job (id, seq, since, line, place, lane, prio, record, payload, deadline)
			SELECT gen_random_uuid(), n, n, 1 + n % 100, CASE n % 10 WHEN 0 THEN 1 WHEN 1 THEN 4 ELSE 0 END, 0, 127, '', '', NULLIF(n, n / 2 * 2) FROM generate_series(1, 5000) n;
		INSERT INTO pawl.uniq SELECT id::text::bytea, id FROM pawl.job;
		INSERT INTO pawl.effect SELECT id::text::bytea, id FROM pawl.job`)
	check("full, with statistics of the empty tables")
	run("ANALYZE")
	check("full")
}
