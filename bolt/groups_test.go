package bolt

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/race"
)

// members is how many jobs the group of the test of kills has at first.
var members = race.Fewer(10_000) // one goroutine compares the counts

// groupRole settles members of a group from several goroutines. Some add a late member, and some are
// abandoned while none of their first run is left.
func groupRole(args []string) error {
	q, err := Open(args[0], crashOptions())
	if err != nil {
		return err
	}
	say("up")
	ctx := context.Background()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				leases, err := q.Fetch(ctx, pawl.Request{Max: 50, Wait: pawl.WaitDrained})
				if errors.Is(err, pawl.ErrEmpty) {
					return
				}
				if err != nil {
					panic(err)
				}
				var late []*pawl.Envelope
				var each []pawl.Settlement
				for _, l := range leases {
					switch {
					case l.Kind == "splits":
						late = append(late, &pawl.Envelope{Kind: "k", Group: "g"})
						each = append(each, l.Ack())
					case l.Kind == "fails" && l.Failures == 0:
						each = append(each, l.Abandon(pawl.ReasonPermanent, errors.New("no")))
					default:
						each = append(each, l.Ack())
					}
				}
				if _, err := q.Enqueue(ctx, late...); err != nil {
					panic(err)
				}
				if err := q.Settle(ctx, each...); err != nil {
					panic(err)
				}
			}
		})
	}
	all.Wait()
	say("drained")
	return nil
}

// callbacksOf counts the jobs that are callbacks.
func callbacksOf(t *testing.T, q *Queue) (done, success int) {
	t.Helper()
	for e, err := range q.Jobs(t.Context(), pawl.Filter{Queue: "callbacks"}) {
		require.NoError(t, err)
		switch e.Kind {
		case "done":
			done++
		case "success":
			success++
		}
	}
	return done, success
}

// makeGroup makes a group with callbacks and some members.
func makeGroup(t *testing.T, q *Queue, kinds ...string) {
	t.Helper()
	require.NoError(t, group.Make(t.Context(), q, group.Group{
		Name: "g", Done: &pawl.Envelope{Kind: "done", Queue: "callbacks"}, Success: &pawl.Envelope{Kind: "success", Queue: "callbacks"},
	}))
	jobs := make([]*pawl.Envelope, len(kinds))
	for i, kind := range kinds {
		jobs[i] = &pawl.Envelope{Kind: kind, Group: "g"}
	}
	_, err := q.Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
}

// Rule: whenever the process is killed, the counts of a group equal a walk over the jobs, and each callback
// is there once, from the commit of the last end on.
func TestKilledWithAGroup(t *testing.T) {
	groups, killed := 0, 0
	for atLeast := kills.Count(t, 1); killed < atLeast; groups++ {
		killed += killGroup(t)
	}
	t.Logf("%d kills of %d groups", killed, groups)
}

// killGroup makes a group, and kills processes until all its members have succeeded. It returns how often.
func killGroup(t *testing.T) (killed int) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, crashOptions())
	kinds := make([]string, members)
	for i := range kinds {
		switch kinds[i] = "k"; {
		case i%100 == 0:
			kinds[i] = "splits"
		case i%100 == 50:
			kinds[i] = "fails"
		}
	}
	makeGroup(t, q, kinds...)
	require.NoError(t, group.Close(t.Context(), q, "g"))
	require.NoError(t, q.Close())

	longest := 30 * time.Millisecond
	until := func(wantDone, wantSuccess int) {
		for {
			c := startChild(t, "group", path)
			require.Equal(t, "up", c.line(t))
			lines := c.killWithin(longest)
			require.Empty(t, c.stderr.String())
			if len(lines) == 0 {
				killed++
			}
			longest += longest / 10 // a busy machine comes to an end too
			q := openAt(t, path, crashOptions())
			require.NoError(t, q.Check(t.Context())) // compares the counts with a walk
			s, err := group.Get(t.Context(), q, "g")
			require.NoError(t, err)
			done, success := callbacksOf(t, q)
			if s.Pending > 0 {
				require.Empty(t, lines)
				require.Equal(t, [2]int{min(wantDone, wantSuccess), 0}, [2]int{done, success})
				require.NoError(t, q.Close())
				continue
			}
			require.Equal(t, [2]int{wantDone, wantSuccess}, [2]int{done, success})
			require.GreaterOrEqual(t, s.Total, members+members/100)
			require.Equal(t, s.Total, s.Succeeded+s.Dead)
			require.NoError(t, q.Close())
			return
		}
	}
	until(1, 0)

	q = openAt(t, path, crashOptions())
	var dead []pawl.ID
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Dead, Group: "g"}) {
		require.NoError(t, err)
		dead = append(dead, e.ID)
	}
	require.Len(t, dead, members/100)
	errs, err := q.Change(t.Context(), pawl.Change{Verb: pawl.VerbRetry}, dead...)
	require.NoError(t, err)
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, q.Close())
	until(1, 1)
	return killed
}

// Rule: a transaction of the app moves members together with their counts, and one that is rolled back
// does not.
func TestGroupInATransaction(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), crashOptions())
	makeGroup(t, q)
	back := errors.New("back")
	enqueue := func(tx *bbolt.Tx) error {
		_, err := q.EnqueueTx(tx, &pawl.Envelope{Kind: "k", Group: "g"})
		return err
	}
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(enqueue(tx), back) }), back)
	require.NoError(t, q.Update(t.Context(), enqueue))
	require.NoError(t, group.Close(t.Context(), q, "g"))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.ErrorIs(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return errors.Join(q.AckTx(tx, leases[0]), back) }), back)
	done, _ := callbacksOf(t, q)
	require.Zero(t, done)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return q.AckTx(tx, leases[0]) }))
	done, success := callbacksOf(t, q)
	require.Equal(t, [2]int{1, 1}, [2]int{done, success})
	require.NoError(t, q.Check(t.Context()))
}

// changeGroup changes the row of the group behind the queue's back.
func changeGroup(t *testing.T, q *Queue, fn func(row *driver.GroupRow)) {
	t.Helper()
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		w := &tables{tx: tx}
		row, err := driver.ReadGroup(w, "g")
		require.NoError(t, err)
		fn(row)
		return driver.PutGroup(w, "g", row)
	}))
}

// Rule: Check finds a group that does not count what is there.
func TestCheckOfGroups(t *testing.T) {
	for name, damage := range map[string]func(row *driver.GroupRow){
		"a pending member": func(row *driver.GroupRow) { row.Pending, row.Total = row.Pending+1, row.Total+1 },
		"a dead member":    func(row *driver.GroupRow) { row.Dead, row.Total = row.Dead+1, row.Total+1 },
		"a sum":            func(row *driver.GroupRow) { row.Total++ },
	} {
		t.Run(name, func(t *testing.T) {
			q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), crashOptions())
			makeGroup(t, q, "k", "k")
			require.NoError(t, q.Check(t.Context()))
			var was driver.GroupRow
			changeGroup(t, q, func(row *driver.GroupRow) { was = *row; damage(row) })
			require.ErrorContains(t, q.Check(t.Context()), `group "g"`)
			changeGroup(t, q, func(row *driver.GroupRow) { *row = was })
			require.NoError(t, q.Check(t.Context()))
		})
	}
}

// Rule: Salvage counts the members of a group again. Closing it again then enqueues what is due.
func TestSalvageOfGroups(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
	q, err := Open(from, crashOptions()) // without the check of the file at the end
	require.NoError(t, err)
	makeGroup(t, q, "k", "k")
	require.NoError(t, group.Close(t.Context(), q, "g"))
	changeGroup(t, q, func(row *driver.GroupRow) { // as if two more members had been lost
		row.Pending, row.Dead, row.Total = row.Pending+1, row.Dead+1, row.Total+2
	})
	require.NoError(t, q.Close())
	_, err = Salvage(t.Context(), from, to)
	require.NoError(t, err)

	q = openAt(t, to, crashOptions())
	require.NoError(t, q.Check(t.Context()))
	s, err := group.Get(t.Context(), q, "g")
	require.NoError(t, err)
	require.Equal(t, [...]int{4, 2, 0, 0, 2}, [...]int{s.Total, s.Pending, s.Succeeded, s.Dead, s.Removed})
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2})
	require.NoError(t, err)
	require.NoError(t, q.Settle(t.Context(), leases[0].Ack(), leases[1].Ack()))
	done, success := callbacksOf(t, q)
	require.Equal(t, [2]int{1, 0}, [2]int{done, success})
	require.NoError(t, q.Close())
}
