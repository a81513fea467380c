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

// warnings is a logger that notes when it got a warning.
type warnings struct {
	text string
	at   chan time.Time
}

func (warnings) Debug(string, ...any) {}
func (warnings) Info(string, ...any)  {}
func (warnings) Error(string, ...any) {}
func (w warnings) Warn(msg string, _ ...any) {
	if msg == w.text {
		select {
		case w.at <- time.Now():
		default:
		}
	}
}

// Rule: work that is due and that the server refuses is tried again after a second, and delays no call.
func TestUpkeepThatFails(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, schema string) {
		w := warnings{"periodic work failed", make(chan time.Time, 9)}
		q := open(t, schema, noPoll, virtual, func(o *postgres.Options) { o.Logger = w })
		l := lease(t, q, &pawl.Envelope{Kind: "k"})
		execute(t, strings.ReplaceAll(`CREATE FUNCTION pawl.refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'refused'; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON pawl.job FOR EACH ROW EXECUTE FUNCTION pawl.refuse()`, "pawl.", schema+"."))
		first := <-w.at
		require.WithinRange(t, first, l.Expires, l.Expires.Add(time.Second))
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
		require.Equal(t, time.Second, (<-w.at).Sub(first), "the work rests after the first line")
		execute(t, "DROP TRIGGER refuse ON "+schema+".job")
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 2})
		for err == nil && len(leases) < 2 {
			var more []*pawl.Lease
			more, err = q.Fetch(patient(t), pawl.Request{Max: 1})
			leases = append(leases, more...)
		}
		require.NoError(t, err)
	})
}

// Rule: while another session has locked what is due, the scheduler looks 20 times a second.
func TestDueJobThatIsLocked(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(t *testing.T, schema string) {
		q := open(t, schema, noPoll, virtual)
		e := &pawl.Envelope{Kind: "k", Delay: time.Minute}
		require.NoError(t, withid.Enqueue(t.Context(), q, e))
		session, err := pgx.Connect(t.Context(), server.url)
		require.NoError(t, err)
		t.Cleanup(func() { _ = session.Close(context.Background()) }) // which the schema waits for
		tx, err := session.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "SELECT FROM "+schema+".job FOR UPDATE")
		require.NoError(t, err)
		commits := func() int { return count(t, "SELECT commits FROM "+schema+".process") }
		time.Sleep(time.Minute + time.Second) // it is due
		before := commits()
		time.Sleep(time.Second)
		require.InDelta(t, 20, commits()-before, 1)
		require.NoError(t, session.Close(t.Context()))
		leases, err := q.Fetch(patient(t), pawl.Request{Max: 1})
		require.NoError(t, err)
		require.Equal(t, e.ID, leases[0].ID)
	})
}
