package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a fetch of jobs without idempotency keys looks for no effects of theirs, and a claim of jobs that run in no order
// updates no index, whether they have keys or not.
func TestFetchesOfPlainJobs(t *testing.T) {
	const jobs = 200
	schema := newSchema(t)
	q, err := postgres.Open(t.Context(), server.url, &postgres.Options{Schema: schema, Poll: postgres.NoPoll})
	require.NoError(t, err)
	batch := make([]*pawl.Envelope, jobs)
	for i := range batch {
		if batch[i] = (&pawl.Envelope{Kind: "k"}); i%2 == 0 {
			batch[i].Key = "key"
		}
	}
	require.NoError(t, withid.Enqueue(t.Context(), q, batch...))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: jobs})
	require.NoError(t, err)
	require.Len(t, leases, jobs)
	require.NoError(t, q.Close()) // its session reports its statistics
	require.Eventually(t, func() bool {
		return count(t, "SELECT n_tup_upd FROM pg_stat_user_tables WHERE schemaname = '"+schema+"' AND relname = 'job'") == jobs
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, jobs, count(t, "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = '"+schema+"' AND relname = 'job'"))
	require.Less(t, count(t, "SELECT idx_scan FROM pg_stat_user_indexes WHERE schemaname = '"+schema+"' AND indexrelname = 'effect_pkey'"), 10)
}
