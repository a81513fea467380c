package scenario

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/workflow"
)

// rowsIn counts the rows of a table of workflows in a transaction.
func rowsIn(tx driver.Reader, table *driver.Table) (n int) {
	_ = tx.Scan(table, driver.Span{}, func(_, _ []byte) bool { n++; return true })
	return n
}

// firstKey returns the key of the first row of a table.
func firstKey(tx driver.Reader, table *driver.Table) (first []byte) {
	_ = tx.Scan(table, driver.Span{Limit: 1}, func(key, _ []byte) bool { first = bytes.Clone(key); return false })
	return first
}

// allRows counts the rows of all buckets of workflows, and returns the last transaction.
func (k *kit) allRows() (n, last int) {
	k.t.Helper()
	last = commits(k)
	require.NoError(k.t, k.q.ViewRows(k.t.Context(), func(tx driver.Reader) error {
		for _, table := range space.Tables() {
			n += rowsIn(tx, table)
		}
		return nil
	}))
	return n, last
}

// steps calls n steps, each with a result of the given size.
func steps(k *kit, r *workflow.Run, n, size int) error {
	for range n {
		_, err := workflow.Step(r, "s", func(context.Context) ([]byte, error) {
			k.effect(r)
			return make([]byte, size), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Rule: ended runs are removed at the end of their retention, as fast as they end, even if
// nobody starts another. If nothing is due, nothing is written.
func (suite) Scenario43RemovedWithoutStarts(t *testing.T, k *kit) {
	f := workflow.Define("short", func(r *workflow.Run, n int) (int, error) { return n, steps(k, r, n, 10) },
		workflow.Retain(time.Second))
	k.open(f)
	for round := range 3 {
		for i := range 20 {
			succeeds(k, start(k, f, fmt.Sprint(round, i), 30))
			k.pass(time.Second / 2) // so that one is removed while others run
		}
		k.pass(10 * time.Second)
		rows, last := k.allRows()
		require.Zero(t, rows)
		k.pass(48 * time.Hour)
		_, later := k.allRows()
		require.Equal(t, last, later, "transactions")
	}
}

// Rule: runs that become due while the file is closed are removed in the next life.
func (suite) Scenario43RemovedInTheNextLife(t *testing.T, k *kit) {
	f := workflow.Define("short", func(r *workflow.Run, n int) (int, error) { return n, steps(k, r, n, 10) },
		workflow.Retain(time.Hour))
	k.open(f)
	succeeds(k, start(k, f, "1", 3))
	k.restart("2")
	k.jump(time.Hour)
	k.restart("3")
	k.pass(time.Second)
	rows, _ := k.allRows()
	require.Zero(t, rows)
}

// Rule: the commit in which a run restarts removes nothing of its journal, however long that
// is. The run removes it completely, in portions.
func (suite) Scenario42RestartOfALongJournal(t *testing.T) {
	const long, large = 6, 900 << 10
	bubble(t, func(t *testing.T, k *kit) {
		f := workflow.Define("loop", func(r *workflow.Run, round int) (int, error) {
			if round == 3 {
				return round, nil
			}
			if err := steps(k, r, long, large); err != nil {
				return 0, err
			}
			k.at("end")
			return 0, workflow.Restart(r, round+1)
		})
		k.open(f)
		g := k.gate("end")
		h := start(k, f, "1", 0)
		for range 3 {
			<-g.reached
			require.NoError(t, k.e.Check(t.Context()))
			next := k.gate("end")
			commit := k.hold()
			close(g.open)
			left := 0
			answer := commit.last(func(tx driver.Writer) error {
				left = rowsIn(tx, tableSteps)
				return nil
			})
			commit.commit()
			require.NoError(t, <-answer)
			require.Equal(t, long, left)
			g = next
		}
		returns(k, h, 3)
		require.Empty(t, k.journal(h.Run()))
		counts, _ := k.rowsOf(h.Run())
		require.Equal(t, map[string]int{"runs": 1, "ids": 1, "ended": 1}, counts)
		require.Len(t, distinct(k.keys()), 3*long)
		require.NoError(t, k.e.Check(t.Context()))
	})
}

// Rule: wherever a process is killed while a run restarts and its journal is removed, the file
// is sound, the run has one of the two journals, and the next life removes the rest. Each step
// takes effect, under one key.
func (suite) Scenario42KilledWhileAJournalIsRemoved(t *testing.T) {
	race.SkipLone(t)
	const long, large, looks = 12, 900 << 10, 60 // some five portions
	path := os.Getenv(lifeVariable)
	loop := func(k *kit, look int) *workflow.Flow[int, int] {
		return workflow.Define("loop", func(r *workflow.Run, round int) (int, error) {
			if round == 0 {
				if err := steps(k, r, long, large); err != nil {
					return 0, err
				}
				if look > 0 && k.mortal {
					k.looks.Store(int64(look))
				}
				return 0, workflow.Restart(r, 1)
			}
			return round, steps(k, r, 1, 10)
		})
	}
	// The rows of a journal of long steps, and the most of the round after it.
	const all, after = 2 * long, 1
	over, whole, partial := false, false, false
	for look := 1; !over; look++ {
		require.Less(t, look, looks, "it does not end")
		t.Run(fmt.Sprintf("look %d", look), func(t *testing.T) {
			if path != "" {
				synctest.Test(t, func(t *testing.T) {
					k := newKit(t, path)
					k.mortal = true
					f := loop(k, look)
					k.open(f)
					succeeds(k, start(k, f, "1", 0))
					k.looks.Store(-1)
				})
				return
			}
			path := filepath.Join(memdir.New(t), "jobs.db")
			over = life(t, path) == "PASS"
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, path)
				if !over {
					k = k.reborn()
				}
				f := loop(k, 0)
				k.slots = -1
				k.open(f)
				h := find(k, f, "1")
				require.NoError(t, k.e.Check(t.Context()))
				if info := k.info(h.Run()); info.Restarts == 1 {
					counts, _ := k.rowsOf(h.Run())
					left := counts["steps"] + counts["blobs"]
					whole = whole || left == all
					partial = partial || left > after && left < all
				} else {
					require.Len(t, k.entries(h.Run()), long)
				}
				k.close()
				k.slots = 1
				k.open(f)
				returns(k, find(k, f, "1"), 1)
				counts, _ := k.rowsOf(h.Run())
				require.Equal(t, 1, counts["steps"])
				require.Zero(t, counts["blobs"])
				require.NoError(t, k.e.Check(t.Context()))
				require.Len(t, distinct(k.keys()), long+1)
			})
		})
		over = over || path != "" && look+1 >= looks
	}
	if path == "" {
		require.True(t, whole, "a death before the first portion")
		require.True(t, partial, "a death between two portions")
	}
}

// Rule: a fork of a long journal takes several commits, none of which writes all of it. Until
// the last one nobody sees a run. What a death leaves is removed some days later.
func (suite) Scenario39ForkOfALongJournal(t *testing.T) {
	const long, large, most = 6, 900 << 10, 3
	eachDeath(t, func(at death) story {
		flow := func(k *kit) *workflow.Flow[int, int] {
			return workflow.Define("long", func(r *workflow.Run, n int) (int, error) {
				if err := steps(k, r, n, large); err != nil {
					return 0, err
				}
				_, err := workflow.Step(r, "last", func(context.Context) (int, error) { return 1, nil })
				return n, err
			})
		}
		return story{
			first: func(k *kit) {
				f := flow(k)
				k.open(f)
				h := start(k, f, "1", long)
				succeeds(k, h)
				g := k.hold()
				go func() { _, _ = k.e.Fork(context.Background(), h.Run(), "last", "2") }()
				answer := g.last(func(tx driver.Writer) error {
					if n := rowsIn(tx, tableSteps) - long - 1; n < 1 || n > most {
						panic(fmt.Sprintf("one commit of a fork writes %d entries", n))
					}
					return nil
				})
				g.endLife(at)
				<-answer
			},
			then: func(k *kit) {
				f := flow(k)
				k.open(f)
				_, err := k.e.Find(k.t.Context(), "long", "2")
				require.ErrorIs(k.t, err, workflow.ErrNotFound)
				require.NoError(k.t, k.e.Check(k.t.Context()))
				h := find(k, f, "1")
				other, err := k.e.Fork(k.t.Context(), h.Run(), "last", "2")
				require.NoError(k.t, err)
				succeeds(k, find(k, f, "2"))
				require.Len(k.t, k.entries(other), long+1)
				require.Len(k.t, k.effects(), long)
				k.pass(5 * 24 * time.Hour)
				counts, _ := k.rowsOf(other)
				require.Equal(k.t, map[string]int{"runs": 1, "ids": 1, "steps": long + 1, "blobs": long, "ended": 1}, counts)
				rows, _ := k.allRows()
				before, _ := k.rowsOf(h.Run())
				total := 0
				for _, all := range []map[string]int{counts, before} {
					for _, n := range all {
						total += n
					}
				}
				require.Equal(k.t, total, rows)
				require.NoError(k.t, k.e.Check(k.t.Context()))
			},
		}
	})
}

// Rule: all children of a run that ends are cancelled, however many there are.
func (suite) Scenario32ManyChildrenAreCancelled(t *testing.T) {
	const many = 250 // more than one commit cancels
	bubble(t, func(t *testing.T, k *kit) {
		f := workflow.Define("many", func(r *workflow.Run, n int) (int, error) {
			all := make([]int, n)
			for i := range all {
				all[i] = i
			}
			_, err := workflow.Each(r, "each", all, strconv.Itoa, n, func(r *workflow.Run, _ int) (int, error) {
				return workflow.Call(r, "child", nap, 0)
			})
			return 0, err
		})
		k.open(f, nap)
		h := startAndSettle(k, f, "1", many)
		require.NoError(t, k.e.Terminate(t.Context(), h.Run(), "enough"))
		_, err := outcome(k, h)
		require.ErrorIs(t, err, workflow.ErrTerminated)
		k.settle()
		cancelled := 0
		for _, e := range k.entries(h.Run()) {
			if e.Kind == workflow.KindChild && k.info(e.Child).Status == workflow.Cancelled {
				cancelled++
			}
		}
		require.Equal(t, many, cancelled)
		require.NoError(t, k.e.Check(t.Context()))
	})
}
