package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// atMost is how many jobs one transaction moves.
const atMost = 10_000

// largest is the number of jobs that the largest transaction has written.
const largest = "SELECT max(n) FROM (SELECT count(*) AS n FROM pawl.job GROUP BY xmin::text) t"

// Rule: one transaction promotes at most 10 000 jobs, over all queues and kinds. The next one
// continues immediately.
func TestPromotionIsBounded(t *testing.T) {
	t.Parallel()
	schema := newSchema(t)
	stats := func(sql string) int { return count(t, strings.ReplaceAll(sql, "pawl.", schema+".")) }
	q := open(t, schema)
	var batch []*pawl.Envelope
	for i := range 12 {
		batch = append(batch, &pawl.Envelope{Kind: fmt.Sprint(i), Delay: 1000 * time.Hour})
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	require.NoError(t, q.Close())
	execute(t, strings.ReplaceAll(`INSERT INTO pawl.job (id, seq, since, line, place, lane, prio, record, payload)
		SELECT gen_random_uuid(), n, 0, line, 1, 0, 0, record, payload FROM pawl.job, generate_series(100, 1099) n`, "pawl.", schema+"."))
	open(t, schema, noPoll)
	require.Eventually(t, func() bool {
		return stats("SELECT count(*) FROM pawl.job WHERE place = 0") == 12_000
	}, time.Minute, 10*time.Millisecond)
	require.LessOrEqual(t, stats(largest), atMost)
}

// Rule: one transaction takes back at most 10 000 leases of processes that have ended. A successor has
// all of them when it is open.
func TestRecoveryIsBounded(t *testing.T) {
	t.Parallel()
	const jobs = 11_000
	schema := newSchema(t)
	named := func(o *postgres.Options) { o.Owner = "worker" }
	q := open(t, schema, named)
	for range jobs / 1000 {
		batch := make([]*pawl.Envelope, 1000)
		for i := range batch {
			batch[i] = &pawl.Envelope{Kind: "k"}
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1000})
		require.NoError(t, err)
		require.Len(t, leases, 1000)
	}
	require.NoError(t, q.Close())
	open(t, schema, named)
	require.Zero(t, count(t, "SELECT count(token) FROM "+schema+".job"))
	require.Equal(t, 1, count(t, "SELECT count(*) FROM "+schema+".process"))
	require.LessOrEqual(t, count(t, strings.ReplaceAll(largest, "pawl.", schema+".")), atMost)
}
