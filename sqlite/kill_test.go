package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/sqlite"
)

// killed is a database whose processes are killed.
var killed = kills.Engine{
	New: func(t *testing.T) string { return filepath.Join(memdir.New(t), "app.sqlite") },
	Work: func(path string) (kills.Queue, error) {
		return sqlite.Open(context.Background(), path, &sqlite.Options{MaxCrashes: sqlite.NoMaxCrashes, Logger: hclog.NewNullLogger()})
	},
	Look: func(t *testing.T, path string, fn func(q kills.Queue)) {
		q := openQueue(t, path, nil)
		fn(q)
		require.NoError(t, q.Close())
	},
}

func TestKilledWithResults(t *testing.T) { killed.Results(t) }
func TestKilledWithCursors(t *testing.T) { killed.Cursors(t) }

func TestMain(m *testing.M) {
	kills.Main(killed.Roles(kills.Roles{"work": work}))
	os.Exit(m.Run())
}

// work enqueues jobs and settles them, in calls and in transactions of the app, until it is killed. It reports
// each job when its enqueue is acknowledged, before it is settled, and when its ack is acknowledged.
func work(args []string) error {
	ctx := context.Background()
	q, err := sqlite.Open(ctx, args[0], &sqlite.Options{MaxCrashes: sqlite.NoMaxCrashes, Logger: hclog.NewNullLogger()})
	if err != nil {
		return err
	}
	kills.Say("open")
	var mu sync.Mutex
	report := func(what string, ids ...pawl.ID) {
		mu.Lock()
		defer mu.Unlock()
		var lines strings.Builder
		for _, id := range ids {
			fmt.Fprintln(&lines, what, id)
		}
		_, _ = io.WriteString(os.Stdout, lines.String())
	}
	failed := make(chan error)
	for producer := range 4 {
		go func() {
			for {
				jobs := make([]*pawl.Envelope, 1+rand.IntN(5))
				for i := range jobs {
					jobs[i] = &pawl.Envelope{Kind: "k", Payload: make([]byte, rand.IntN(3000)), MaxRetries: 3}
				}
				var done []pawl.Enqueued
				var err error
				if producer == 0 {
					err = q.Update(ctx, func(tx *sql.Tx) (err error) {
						done, err = q.EnqueueTx(ctx, tx, jobs...)
						return err
					})
				} else {
					done, err = q.Enqueue(ctx, jobs...)
				}
				if err != nil {
					failed <- err
					return
				}
				for _, d := range done {
					report("enqueued", d.ID)
				}
			}
		}()
	}
	for worker := range 2 {
		go func() {
			for {
				leases, err := q.Fetch(ctx, pawl.Request{Max: 20})
				if err != nil {
					failed <- err
					return
				}
				var settlements []pawl.Settlement
				var ids []pawl.ID
				for _, l := range leases {
					if rand.IntN(10) == 0 {
						settlements = append(settlements, l.Nack(0, errors.New("boom")))
					} else {
						settlements, ids = append(settlements, l.Ack()), append(ids, l.ID)
					}
				}
				record := func(db interface {
					ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
				}, id pawl.ID) error {
					_, err := db.ExecContext(ctx, "INSERT INTO effects VALUES (?)", id.String())
					return err
				}
				if worker == 0 { // with the effect of the job in the same transaction
					settlements, ids = nil, nil
					err = q.Update(ctx, func(tx *sql.Tx) error {
						for _, l := range leases {
							if err := errors.Join(record(tx, l.ID), q.AckTx(ctx, tx, l)); err != nil {
								return err
							}
							ids = append(ids, l.ID)
						}
						return nil
					})
				} else {
					report("settling", ids...)
					err = q.Settle(ctx, settlements...)
				}
				if err != nil {
					failed <- err
					return
				}
				report("acked", ids...)
			}
		}()
	}
	return <-failed
}

// account is what killed processes have acknowledged.
type account struct{ enqueued, settling, acked map[string]int }

// life runs a process, kills it after at least one and at most some reports, and adds what it reported.
func (a *account) life(t *testing.T, path string, most int) {
	c := kills.Start(t, "work", path)
	for range 1 + rand.IntN(most) { // reports until the kill, which may come at any point
		a.hear(t, c.Line(t))
	}
	c.Kill()
	for _, line := range c.Rest() {
		a.hear(t, line)
	}
	require.Empty(t, c.Stderr.String())
}

// hear adds a report.
func (a *account) hear(t *testing.T, line string) {
	switch what, id, _ := strings.Cut(line, " "); what {
	case "open":
	case "enqueued":
		a.enqueued[id]++
	case "settling":
		a.settling[id]++
	case "acked":
		a.acked[id]++
	default:
		t.Fatal(line)
	}
}

// Rule: whenever its process is killed, a queue loses no job that was acknowledged and runs none again
// whose ack was acknowledged, and the effect of a job and its ack in one transaction are there together,
// once. With PAWL_SQLITE_JOBS, it kills until so many jobs were acknowledged, and each process lives longer.
func TestKilled(t *testing.T) {
	least, jobs, most := kills.Count(t, race.Fewer(200)), number(t, "PAWL_SQLITE_JOBS", 0), 200
	if jobs > 0 {
		most = 4000
	}
	path := filepath.Join(memdir.New(t), "app.sqlite")
	require.NoError(t, openQueue(t, path, nil).Close())
	db := appDB(t, path)
	_, err := db.Exec("CREATE TABLE effects (id TEXT NOT NULL)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	a := account{make(map[string]int), make(map[string]int), make(map[string]int)}
	killed := 0
	for ; killed < least || len(a.enqueued) < jobs; killed++ {
		a.life(t, path, most)
	}

	db = appDB(t, path)
	var sound string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&sound))
	require.Equal(t, "ok", sound)
	q := openQueue(t, path, nil)
	there := make(map[string]pawl.State)
	for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
		require.NoError(t, err)
		there[e.ID.String()] = e.State
	}
	effects := make(map[string]int)
	rows, err := db.Query("SELECT id FROM effects")
	require.NoError(t, err)
	for rows.Next() {
		var id string
		require.NoError(t, rows.Scan(&id))
		effects[id]++
	}
	require.NoError(t, rows.Err())

	for id, n := range a.acked {
		require.Equal(t, 1, n, "acks of %s", id)
		require.NotContains(t, there, id, "an acked job")
	}
	for id, n := range effects {
		require.Equal(t, 1, n, "effects of %s", id)
		require.NotContains(t, there, id, "a job whose effect is there")
	}
	for id, n := range a.enqueued {
		require.Equal(t, 1, n)
		if _, waits := there[id]; !waits && effects[id] == 0 {
			require.Positive(t, a.settling[id], "job %s is gone, and nobody acked it", id)
		}
	}
	for id, state := range there {
		require.Contains(t, []pawl.State{pawl.Ready, pawl.Delayed}, state, id)
	}
	t.Logf("%d kills: %d jobs acknowledged, %d acks, %d effects, %d jobs left", killed, len(a.enqueued), len(a.acked), len(effects), len(there))
}

// number returns the number in a variable of the environment, or a default if it is not set.
func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
