package postgres_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/postgres"
)

// many is more jobs than a statement stores, and more than one COPY does.
const many = 800

// Rule: COPY, which stores many jobs, stores the same rows as the statement that a transaction of the app uses.
func TestLargeGroupsStoreTheSameRows(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	fixed := func(o *postgres.Options) {
		o.Now, o.Poll = func() time.Time { return now }, postgres.NoPoll
		rate := pawl.Rate{Starts: 10, Per: time.Second, MaxCost: 2}
		o.Limits = map[string]pawl.Limits{"queue 0": {Rate: rate}, "queue 1": {Rate: rate, InOrder: pawl.OrderHold}}
	}
	jobs := variousJobs(now)
	copied, inserted := newSchema(t), newSchema(t)
	_, err := open(t, copied, fixed).Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
	q := open(t, inserted, fixed)
	require.NoError(t, q.Update(t.Context(), func(tx postgres.Tx) error {
		_, err := q.EnqueueTx(t.Context(), tx, jobs...)
		return err
	}))
	stored := storedRows(t, copied)
	require.Len(t, stored, many)
	require.Equal(t, storedRows(t, inserted), stored)
}

// Rule: jobs without a value for a rare column are stored in the same way, whether they are stored alone or
// with jobs that have a value.
func TestPlainJobsAreStoredAsBesideOthers(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	fixed := func(o *postgres.Options) { o.Now, o.Poll = func() time.Time { return now }, postgres.NoPoll }
	for _, n := range []int{3, many} { // by a statement, and by COPY
		jobs := make([]*pawl.Envelope, n, n+1)
		for i := range jobs {
			jobs[i] = &pawl.Envelope{ID: pawl.NewID(now), Kind: "k", Payload: []byte{byte(i)}, Priority: int8(i % 3), Delay: time.Duration(i % 2)}
		}
		plain, beside := newSchema(t), newSchema(t)
		_, err := open(t, plain, fixed).Enqueue(t.Context(), jobs...)
		require.NoError(t, err)
		_, err = open(t, beside, fixed).Enqueue(t.Context(), append(jobs, &pawl.Envelope{Kind: "k", IdempotencyKey: "key"})...)
		require.NoError(t, err)
		require.Equal(t, storedRows(t, plain), storedRows(t, beside)[:n])
	}
}

// variousJobs returns jobs that fill each column of a new job, or leave it out.
func variousJobs(now time.Time) []*pawl.Envelope {
	jobs := make([]*pawl.Envelope, many)
	for i := range jobs {
		e := &pawl.Envelope{ID: pawl.NewID(now), Kind: fmt.Sprint("kind ", i%3), Queue: fmt.Sprint("queue ", i%2), Priority: int8(i%256 - 128)}
		switch i % 7 {
		case 1:
			e.Payload = bytes.Repeat([]byte{byte(i)}, 100*i) // the longest ones are longer than a portion
		case 2:
			e.IdempotencyKey = fmt.Sprint("effect ", i)
		case 3:
			e.Deadline = now.Add(time.Hour)
		case 4:
			e.Delay = time.Minute
		case 5:
			e.UniqueKey = fmt.Sprint("unique ", i)
		case 6:
			e.Payload, e.Key, e.Cost = []byte{}, fmt.Sprint("key ", i), i%3
		}
		jobs[i] = e
	}
	jobs[1].Payload = make([]byte, 200_000)
	return jobs
}

// storedRows returns the rows of all jobs, with the names of their lines.
func storedRows(t *testing.T, schema string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	rows, err := conn.Query(t.Context(), strings.ReplaceAll(`SELECT concat_ws('|', j.id, j.seq, j.since, j.deadline, q.name, l.kind,
		j.place, j.lane, j.prio, j.effect, 'key ' || encode(j.key, 'escape'),
		j.turn, j.key_order, j.holds, j.cost, j.fair, 'due ' || j.due, j.record, md5(j.payload), j.token, j.cancelled)
	FROM pawl.job j JOIN pawl.line l ON l.id = j.line JOIN pawl.queue q ON q.id = l.queue ORDER BY j.seq`, "pawl.", schema+"."))
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

// Rule: a large group that fails at one of its jobs stores none of them, and runs again.
func TestLargeGroupRunsAgain(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll)
	execute(t, strings.ReplaceAll(fmt.Sprintf(`CREATE SEQUENCE pawl.rows;
		CREATE FUNCTION pawl.fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('pawl.rows') = %d THEN
				RAISE unique_violation;
			END IF;
			RETURN new;
		END $$;
		CREATE TRIGGER fail_once BEFORE INSERT ON pawl.job FOR EACH ROW EXECUTE FUNCTION pawl.fail_once()`, many/2), "pawl.", schema+"."))
	jobs := variousJobs(time.Now())
	done, err := q.Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
	require.Len(t, done, many)
	require.Equal(t, many+many/2, count(t, "SELECT last_value FROM "+schema+".rows"), "rows of both attempts")
	require.Equal(t, many, count(t, "SELECT count(*) FROM "+schema+".job"))
}
