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

// openDue opens a queue with n delayed jobs that are due, and with a trigger that delays each promotion.
func openDue(t *testing.T, n int, level string, delay time.Duration, change ...func(*postgres.Options)) (q *postgres.Queue, delayed func() int) {
	schema := newSchema(t)
	q = open(t, schema, change...)
	fills := open(t, schema) // without the short timeout of the other
	batch := make([]*pawl.Envelope, n)
	for i := range batch {
		batch[i] = &pawl.Envelope{Kind: "k", Delay: time.Hour}
	}
	require.NoError(t, withid.Enqueue(t.Context(), fills, batch...))
	require.NoError(t, fills.Close())
	execute(t, strings.ReplaceAll(fmt.Sprintf(`UPDATE pawl.job SET since = 0;
		CREATE FUNCTION pawl.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(%f); RETURN new; END $$;
		CREATE TRIGGER wait BEFORE UPDATE OF place ON pawl.job FOR EACH %s EXECUTE FUNCTION pawl.wait()`, delay.Seconds(), level), "pawl.", schema+"."))
	return q, func() int { return count(t, "SELECT count(*) FROM "+schema+".job WHERE place = 1") }
}

// timeout sets how long a call waits for the server.
func timeout(d time.Duration) func(*postgres.Options) {
	return func(o *postgres.Options) { o.Timeout = d }
}

// Rule: a backlog of due jobs that takes the server longer than Options.Timeout is promoted by several transactions.
func TestBacklogLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	q, delayed := openDue(t, 8000, "STATEMENT", 250*time.Millisecond, noPoll, timeout(1500*time.Millisecond))
	_ = q.Wake(t.Context()) // on a busy machine a call may take too long
	require.Eventually(t, func() bool {
		_, _ = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
		return delayed() == 0
	}, time.Minute, time.Millisecond)
}

// Rule: if even a thousand due jobs take the server longer than Options.Timeout, a transaction promotes fewer of them.
func TestPortionLongerThanTheTimeout(t *testing.T) {
	t.Parallel()
	_, delayed := openDue(t, 500, "ROW", 2*time.Millisecond, timeout(500*time.Millisecond))
	require.Eventually(t, func() bool { return delayed() == 0 }, time.Minute, 100*time.Millisecond)
}
