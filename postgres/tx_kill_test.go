package postgres_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
	"github.com/gopawl/pawl/postgres"
)

// schemaOfParent is the environment variable that makes TestBookingProcess a process to be killed.
const schemaOfParent = "PAWL_TEST_SCHEMA"

// TestBookingProcess books jobs until none is left, when it is a child process of TestAckTxKilled. It
// writes a line wherever it may be killed, and waits for an answer: before the ack, before the commit,
// and after it.
func TestBookingProcess(t *testing.T) {
	schema := os.Getenv(schemaOfParent)
	if schema == "" {
		t.Skip("it is the child process of another test")
	}
	q := open(t, schema, noPoll, func(o *postgres.Options) { o.Owner, o.MaxCrashes = "booker", postgres.NoMaxCrashes })
	pool, err := pgxpool.New(t.Context(), server.url)
	require.NoError(t, err)
	defer pool.Close()
	mayBeKilled := func(where string) {
		fmt.Println(where)
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
	for {
		leases, err := q.Fetch(t.Context(), pawl.Request{Max: 3, Wait: pawl.WaitFinished})
		if errors.Is(err, pawl.ErrEmpty) {
			return
		}
		require.NoError(t, err)
		for _, l := range leases {
			require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "INSERT INTO "+schema+".booked VALUES ($1)", l.ID.String()); err != nil {
					return err
				}
				mayBeKilled("booked")
				err := q.AckTx(t.Context(), tx, l)
				mayBeKilled("acked")
				return err
			}))
			mayBeKilled("committed")
		}
	}
}

// Rule: an effect and its ack in one transaction of the app are exactly once, wherever the process is
// killed.
func TestAckTxKilled(t *testing.T) {
	t.Parallel()
	jobs, kills := max(20, race.Fewer(60)), max(3, race.Fewer(12)) // one at each place
	schema := newSchema(t)
	q := open(t, schema)
	table := schema + ".booked"
	execute(t, "CREATE TABLE "+table+" (id uuid)")
	for range jobs {
		require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	}
	for i := range kills + 1 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBookingProcess$")
		child.Env = append(os.Environ(), serverOfParent+"="+server.url, schemaOfParent+"="+schema)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		in, err := child.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if i < kills && n == 4+i { // at each of the three places by turns
				require.NoError(t, child.Process.Kill())
				break
			}
			_, _ = in.Write([]byte{0}) // the last line is that of the test, which no process waits for
		}
		_, _ = io.Copy(io.Discard, out)
		err = child.Wait()
		require.Equal(t, i == kills, err == nil, "child %d: %v", i, err)
	}
	requireOnce(t, table, jobs)
	require.Zero(t, countOf(t, q))
}
