package postgres_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// Rule: a page of a list reads about as many rows as it has jobs, also in the middle of
// a long list.
func TestListReadsAPage(t *testing.T) {
	const jobs, most = 10_000, 2000
	schema := newSchema(t)
	q := open(t, schema)
	fill := func(state pawl.State) (middle *pawl.Envelope) {
		batch := make([]*pawl.Envelope, jobs)
		for i := range batch {
			batch[i] = &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: fmt.Sprint(i % 3), State: state}
			switch state {
			case pawl.Delayed:
				batch[i].NotBefore = time.Now().Add(time.Hour)
			case pawl.Dead:
				batch[i].Death = &pawl.Death{Reason: pawl.ReasonPermanent, At: time.Now()}
			case pawl.Completed:
				batch[i].Completed, batch[i].Retain = time.Now(), time.Hour
			}
		}
		require.NoError(t, q.Restore(t.Context(), batch, nil))
		middle, err := q.Job(t.Context(), batch[jobs/2].ID)
		require.NoError(t, err)
		return middle
	}
	middle := make(map[pawl.State]*pawl.Envelope)
	for _, state := range []pawl.State{pawl.Ready, pawl.Delayed, pawl.Dead, pawl.Completed} {
		middle[state] = fill(state)
	}
	_, err := q.Fetch(t.Context(), pawl.Request{Max: 10})
	require.NoError(t, err)
	execute(t, "ANALYZE "+schema+".job, "+schema+".line, "+schema+".claim")
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	read := func(f pawl.Filter, middle *pawl.Envelope) int {
		statement, args := postgres.ListStatement(q, f, middle)
		var plans []struct{ Plan plan }
		var text []byte
		require.NoError(t, conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+statement, args).Scan(&text))
		require.NoError(t, json.Unmarshal(text, &plans))
		return plans[0].Plan.rowsOf("job")
	}
	for _, f := range []pawl.Filter{
		{}, {State: pawl.Ready, Order: pawl.OrderCreated},
		{State: pawl.Ready}, {State: pawl.Delayed}, {State: pawl.Dead}, {State: pawl.Dead, Order: pawl.OrderDied},
		{State: pawl.Completed}, {State: pawl.Leased}, {State: pawl.Ready, Kind: "1"},
	} {
		for _, f.Newest = range []bool{false, true} {
			require.Less(t, read(f, nil), most, "the first page of %+v", f)
			require.Less(t, read(f, middle[max(f.State, pawl.Delayed)]), most, "a page of %+v", f)
		}
	}
}

// plan is a node of what EXPLAIN says of a statement.
type plan struct {
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan
}

// rowsOf returns how many rows of a table were read.
func (p plan) rowsOf(table string) (n int) {
	if p.Relation == table {
		n = int((p.Rows + p.Removed) * p.Loops)
	}
	for _, part := range p.Plans {
		n += part.rowsOf(table)
	}
	return n
}

// Rule: one ListParts reads a bounded number of bytes, and the next one continues
// there.
func TestListIsBounded(t *testing.T) {
	q := open(t, newSchema(t))
	const jobs = 20
	for range jobs {
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k", Payload: make([]byte, 1<<20)}))
	}
	page, err := q.ListParts(t.Context(), pawl.Filter{}, driver.PartPayload, "", jobs)
	require.NoError(t, err)
	require.Len(t, page.Jobs, 8)
	rest, err := q.ListParts(t.Context(), pawl.Filter{}, 0, page.Next, jobs)
	require.NoError(t, err)
	require.Len(t, rest.Jobs, jobs-8)
	require.Empty(t, rest.Next)
}

// Rule: what only reads tries again when its connections broke.
func TestLookAfterConnectionsBroke(t *testing.T) {
	q := open(t, newSchema(t), noPoll)
	e := &pawl.Envelope{Kind: "k"}
	require.NoError(t, withid.Enqueue(t.Context(), q, e))
	for range 3 {
		_, err := q.Job(t.Context(), e.ID)
		require.NoError(t, err)
		execute(t, breakConnections)
	}
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, stats.Queues[0].Ready)
}
