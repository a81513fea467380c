package postgres_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: a transaction makes a round trip to the server only when it needs an answer, and sends its commit
// together with its writes. An enqueue, an ack, or a mutation that declares what it needs takes two round
// trips, and a fetch takes four. Each COPY of many jobs takes one more. A view takes none for what it has read
// ahead.
func TestRoundTrips(t *testing.T) {
	proxy := newCutter(t)
	q := openAt(t, proxy.url, newSchema(t), noPoll)
	trips := func(call func()) int64 {
		before := proxy.trips.Load()
		call()
		return proxy.trips.Load() - before
	}
	table := driver.NewSpace("pawl.postgres.trips").Table("rows")
	var took [4]int64
	for range 3 { // at first, statements are prepared
		var leases []*pawl.Lease
		took[0] = trips(func() {
			_, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
			require.NoError(t, err)
		})
		took[1] = trips(func() {
			var err error
			leases, err = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
			require.NoError(t, err)
		})
		took[2] = trips(func() {
			m := &learning{keys: []string{"row"}, table: table, known: 1}
			require.NoError(t, q.Mutate(t.Context(), &locking{m, leases[0].ID}, 0))
		})
		took[3] = trips(func() { require.NoError(t, q.Settle(t.Context(), leases[0].Ack())) })
	}
	require.Equal(t, [4]int64{2, 4, 2, 2}, took, "enqueue, fetch, mutation, ack")
	jobs := make([]*pawl.Envelope, many)
	for i := range jobs {
		jobs[i] = &pawl.Envelope{Kind: "k"}
	}
	require.EqualValues(t, 5, trips(func() { // three of them are COPYs
		_, err := q.Enqueue(t.Context(), jobs...)
		require.NoError(t, err)
	}))
	require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error {
		var n driver.Needs
		n.Span(table, driver.Span{})
		if err := driver.ReadAhead(r, &n); err != nil {
			return err
		}
		require.Zero(t, trips(func() {
			for _, key := range []string{"row", "none"} {
				_, err := r.Get(table, []byte(key))
				require.NoError(t, err)
			}
			require.NoError(t, r.Scan(table, driver.Span{}, func(_, _ []byte) bool { return true }))
		}))
		return nil
	}))
}

// locking is a mutation that needs a job, too.
type locking struct {
	*learning
	job pawl.ID
}

func (m *locking) Declare(n *driver.Needs) {
	m.learning.Declare(n)
	n.Jobs = append(n.Jobs, m.job)
}

// Rule: a commit is not sent together with a write whose answer may forbid it. Here another process begins an
// effect between the look of a fetch and its claim: the fetch runs again, and no two jobs have the effect.
func TestAnswerThatForbidsTheCommit(t *testing.T) {
	schema := newSchema(t)
	q := open(t, schema, noPoll)
	e := &pawl.Envelope{Kind: "k", IdempotencyKey: "key"}
	require.NoError(t, withid.Enqueue(t.Context(), q, e))
	execute(t, strings.ReplaceAll(`CREATE SEQUENCE pawl.claims;
		CREATE FUNCTION pawl.begin_effect() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('pawl.claims') = 1 THEN
				INSERT INTO pawl.effect (name, id) VALUES ('k\000key', gen_random_uuid());
			END IF;
			RETURN new;
		END $$;
		CREATE TRIGGER begin_effect BEFORE INSERT ON pawl.claim FOR EACH ROW EXECUTE FUNCTION pawl.begin_effect()`, "pawl.", schema+"."))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.Equal(t, e.ID, leases[0].ID)
	require.Equal(t, 2, count(t, "SELECT last_value FROM "+schema+".claims"), "claims")
	require.Equal(t, 1, count(t, "SELECT count(*) FROM "+schema+".effect WHERE id = '"+e.ID.String()+"'"))
}
