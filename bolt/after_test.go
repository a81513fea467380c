package bolt

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
)

const headerNeeds = "needs" // the IDs of jobs that must be gone when a job runs

// afterRole runs all jobs that it can. A job of the kind fails does so at its first attempt.
func afterRole(args []string) error {
	q, err := Open(args[0], crashOptions())
	if err != nil {
		return err
	}
	kills.Say("up")
	ctx := context.Background()
	for {
		leases, err := q.Fetch(ctx, pawl.Request{Max: 5, Wait: pawl.WaitNot})
		if errors.Is(err, pawl.ErrEmpty) {
			break
		}
		if err != nil {
			return err
		}
		var each []pawl.Settlement
		for _, l := range leases {
			for _, needed := range strings.Fields(l.Headers[headerNeeds]) {
				id, err := pawl.ParseID(needed)
				if err != nil {
					return err
				}
				if _, err := q.Job(ctx, id); !errors.Is(err, pawl.ErrNotFound) {
					kills.Say("job " + l.ID.String() + " ran before " + needed)
				}
			}
			if l.Kind == "fails" && l.Failures == 0 {
				each = append(each, l.Abandon(pawl.ReasonPermanent, errors.New("no")))
			} else {
				each = append(each, l.Ack())
			}
		}
		if err := q.Settle(ctx, each...); err != nil {
			return err
		}
	}
	kills.Say("drained")
	return nil
}

// graph returns jobs in layers. Each waits for two of the layer before it, and some for any end of a third.
func graph(layers, width int) (jobs []*pawl.Envelope) {
	for i := range layers * width {
		e := &pawl.Envelope{ID: pawl.NewID(time.Now()), Kind: "k"}
		if i == width+2 {
			e.Kind = "fails"
		}
		if before := i - i%width - width; before >= 0 {
			e.After = []pawl.ID{jobs[before+i%width].ID, jobs[before+(i*7+1)%width].ID}
			if i%3 == 0 {
				e.AfterAny = []pawl.ID{jobs[before+(i*5+2)%width].ID}
			}
			var needs []string
			for _, id := range e.After {
				needs = append(needs, id.String())
			}
			e.Headers = map[string]string{headerNeeds: strings.Join(needs, " ")}
		}
		jobs = append(jobs, e)
	}
	return jobs
}

// Rule: whenever the process is killed, exactly those jobs are blocked whose prerequisites are not met. None
// runs before them, and none waits on after them.
func TestKilledWithPrerequisites(t *testing.T) {
	graphs, killed := 0, 0
	for atLeast := kills.Count(t, 1); killed < atLeast; graphs++ {
		killed += killGraph(t)
	}
	t.Logf("%d kills of %d graphs", killed, graphs)
}

// killGraph kills processes that run jobs which wait for each other, until none is left. It returns how often.
func killGraph(t *testing.T) (killed int) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, crashOptions())
	_, err := q.Enqueue(t.Context(), graph(8, 10)...)
	require.NoError(t, err)
	for longest := 20 * time.Millisecond; ; longest *= 2 { // a busy machine gets there too
		require.NoError(t, q.Close())
		c := kills.Start(t, "after", path)
		require.Equal(t, "up", c.Line(t))
		lines := c.Within(longest)
		require.Empty(t, c.Stderr.String())
		require.Subset(t, []string{"drained"}, lines)
		q = openAt(t, path, crashOptions())
		require.NoError(t, q.Check(t.Context())) // compares what is blocked with what is not met
		if len(lines) == 0 {
			killed++
			continue
		}
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		if counts := stats.Queues[0].Counts; counts.Dead == 0 {
			require.Zero(t, counts)
			return killed
		}
		var dead []pawl.ID
		for e, err := range q.Jobs(t.Context(), pawl.Filter{}) {
			require.NoError(t, err)
			if e.State == pawl.Dead {
				dead = append(dead, e.ID)
			} else {
				require.NotEmpty(t, slices.Concat(e.After, e.AfterAny), "a job that nobody ran waits")
			}
		}
		_, err = q.Change(t.Context(), pawl.Change{Verb: pawl.VerbRetry}, dead...)
		require.NoError(t, err)
	}
}

// Rule: a transaction of the app ends a job together with the wait of others, and a transaction that is rolled back
// ends neither.
func TestPrerequisitesInATransaction(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), crashOptions())
	ids, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
	require.NoError(t, err)
	back := errors.New("back")
	enqueue := func(tx *bbolt.Tx) error {
		_, err := q.EnqueueTx(tx, &pawl.Envelope{Kind: "after", After: []pawl.ID{ids[0].ID}})
		return err
	}
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(enqueue(tx), back) }), back)
	require.NoError(t, q.Update(t.Context(), enqueue))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(q.AckTx(tx, leases[0]), back) }), back)
	require.Equal(t, 1, countsOf(t, q, pawl.DefaultQueue).Blocked)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, leases[0]) }))
	require.Zero(t, countsOf(t, q, pawl.DefaultQueue).Blocked)
	require.NoError(t, q.Check(t.Context()))
}

// Rule: Check finds a wait if one of its rows is lost. Salvage makes it again from the other row; if both are lost, the
// job is dead, so that it does not start too early.
func TestLostPrerequisites(t *testing.T) {
	for name, c := range map[string]struct {
		tables []string
		state  pawl.State
	}{
		"one row":       {[]string{"waits"}, pawl.Ready},
		"the other row": {[]string{"dependents"}, pawl.Ready},
		"both rows":     {[]string{"waits", "dependents"}, pawl.Dead},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			from, to := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
			q, err := Open(from, crashOptions()) // without the check of the file at the end
			require.NoError(t, err)
			ids, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "k"})
			require.NoError(t, err)
			waits, err := q.Enqueue(t.Context(), &pawl.Envelope{Kind: "after", After: []pawl.ID{ids[0].ID}})
			require.NoError(t, err)
			require.NoError(t, q.Check(t.Context()))
			require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
				for _, table := range c.tables {
					b := tx.Bucket([]byte("pawl.after")).Bucket([]byte(table))
					key, _ := b.Cursor().First()
					require.NoError(t, b.Delete(key))
				}
				return nil
			}))
			require.ErrorContains(t, q.Check(t.Context()), waits[0].ID.String())
			require.NoError(t, q.Close())
			_, err = Salvage(t.Context(), from, to)
			require.NoError(t, err)

			q = openAt(t, to, crashOptions())
			require.NoError(t, q.Check(t.Context()))
			e, err := q.Job(t.Context(), waits[0].ID)
			require.NoError(t, err)
			require.Equal(t, c.state, e.State)
			leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2})
			require.NoError(t, err)
			require.Len(t, leases, 1)
			require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
			leases, err = q.Fetch(t.Context(), pawl.Request{Max: 1, Wait: pawl.WaitNot})
			if c.state == pawl.Ready {
				require.NoError(t, err)
				require.Equal(t, e.ID, leases[0].ID)
			} else {
				require.ErrorIs(t, err, pawl.ErrEmpty)
			}
			require.NoError(t, q.Close())
		})
	}
}
