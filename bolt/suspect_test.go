package bolt

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// addCrashed adds one job for each kind and lets them crash that many times. From the third
// crash on it crashes only the first, since the others must wait for it. They precede
// everything that is added later.
func addCrashed(t *testing.T, q *Queue, crashes int, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		add(t, q, func(e *pawl.Envelope) { e.Kind = kind })
	}
	for n := range crashes {
		require.Equal(t, n, fetch(t, q, len(kinds))[0].Crashes)
		expire(q)
	}
}

// idleFetch leases up to most jobs, and idle of them would start immediately.
func idleFetch(t *testing.T, q *Queue, most, idle int) []*pawl.Lease {
	t.Helper()
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: most, Ahead: max(0, most-idle), Wait: pawl.WaitNot})
	if len(leases) == 0 {
		require.ErrorIs(t, err, pawl.ErrEmpty)
	} else {
		require.NoError(t, err)
	}
	return leases
}

// Kinds a, b, … crashed; x, y and z are clean and were added later. Each fetch is a Max and how
// many would start immediately.
func TestCrashedJobsNeedIdleSlots(t *testing.T) {
	type request struct{ max, idle int }
	for _, c := range []struct {
		rule    string
		crashes int
		kinds   []string
		fetches []request
		want    []string
	}{
		{"clean jobs pass one that crashed", 1, []string{"a"}, []request{{9, 0}, {9, 0}}, []string{"xyz", ""}},
		{"it keeps its place where a slot is idle", 1, []string{"a"}, []request{{9, 1}}, []string{"axyz"}},
		{"one for each idle slot", 1, []string{"a", "b", "c"}, []request{{9, 2}, {9, 1}}, []string{"abxyz", "c"}},
		{"clean jobs take none of those slots", 1, []string{"a"}, []request{{2, 0}, {9, 1}}, []string{"xy", "az"}},
		{"an idle slot is no reason for more than Max", 1, []string{"a", "b"}, []request{{1, 9}, {2, 9}}, []string{"a", "bx"}},
		{"a negative count is none", 1, []string{"a"}, []request{{9, -1}}, []string{"xyz"}},
		{"after two crashes one at a time", 2, []string{"a", "b"}, []request{{9, 9}, {9, 9}}, []string{"axyz", ""}},
		{"after more crashes too", 4, []string{"a", "b"}, []request{{9, 9}, {9, 9}}, []string{"axyz", ""}},
		{"and only into an idle slot", 2, []string{"a"}, []request{{9, 0}, {9, 1}}, []string{"xyz", "a"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				addCrashed(t, q, c.crashes, c.kinds...)
				for _, kind := range []string{"x", "y", "z"} {
					add(t, q, func(e *pawl.Envelope) { e.Kind = kind })
				}
				for i, r := range c.fetches {
					require.Equal(t, c.want[i], kindsOf(idleFetch(t, q, r.max, r.idle)), "fetch %d", i)
				}
			})
		})
	}
}

// The next repeat suspect comes with the commit that settles the one before, whatever verb that
// is, and without another request.
func TestRepeatSuspectsFollowOneAnother(t *testing.T) {
	for _, verb := range settling {
		t.Run("after "+verb.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				g := gateCommits(q)
				addCrashed(t, q, 2, "a", "b")
				first := idleFetch(t, q, 9, 9)
				require.Equal(t, "a", kindsOf(first))
				var second []*pawl.Lease
				waiting := started(func() (err error) {
					second, err = q.Fetch(t.Context(), pawl.Request{Max: 1})
					return err
				})
				synctest.Wait()
				require.Empty(t, waiting, "b waits for a")

				commits := g.commits.Load()
				require.NoError(t, verb.end(t.Context(), q, first[0]))
				if verb.name == "release" { // a is clean now, and first in the order
					require.NoError(t, <-waiting)
					require.Equal(t, "a", kindsOf(second))
					second = idleFetch(t, q, 1, 1)
				} else {
					require.NoError(t, <-waiting)
					require.EqualValues(t, 1, g.commits.Load()-commits)
				}
				require.Equal(t, "b", kindsOf(second))
			})
		})
	}
	t.Run("after an expiry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := openTest(t, nil)
			addCrashed(t, q, 2, "a", "b")
			require.Equal(t, "a", kindsOf(idleFetch(t, q, 9, 9)))
			start := time.Now()
			leases, err := q.Fetch(t.Context(), pawl.Request{Max: 9})
			require.NoError(t, err)
			require.Equal(t, q.opts.Lease, time.Since(start))
			require.Equal(t, "a", kindsOf(leases), "it kept its place")
		})
	})
}

func TestRepeatSuspectsOfAllQueuesAndFetchesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		g := gateCommits(q)
		fill(t, q, 1, "a", "b")
		for range 2 {
			require.Len(t, fetch(t, q, 9, "a", "b"), 2)
			expire(q)
		}
		release := g.occupy(q)
		var kinds [2]string
		var done [2]<-chan error
		for i, name := range []string{"a", "b"} {
			done[i] = started(func() error {
				leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{name}, Max: 1, Wait: pawl.WaitNot})
				kinds[i] = kindsOf(leases)
				return err
			})
		}
		synctest.Wait()
		release()
		errs := []error{<-done[0], <-done[1]}
		require.Len(t, kinds[0]+kinds[1], 1, "one of the two, although one commit serves both")
		require.Contains(t, errs, pawl.ErrEmpty)
	})
}

func TestSettlingClearsCrashes(t *testing.T) {
	for _, verb := range settling {
		for crashes := range 4 {
			t.Run(fmt.Sprintf("%s after %d crashes", verb.name, crashes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := openTest(t, nil)
					addCrashed(t, q, crashes, "a")
					l := leaseOne(t, q)
					require.Equal(t, crashes, l.Crashes)
					require.NoError(t, verb.end(t.Context(), q, l))
					if !verb.live {
						return
					}
					pass(time.Second)
					require.Zero(t, find(t, q, l.ID).Crashes)
					require.Equal(t, "a", kindsOf(idleFetch(t, q, 1, 0)), "it is clean again")
				})
			})
		}
	}
}

func TestFetchWithoutIdleSlotWaitsForCleanJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		addCrashed(t, q, 1, "a")
		var leases []*pawl.Lease
		waiting := started(func() (err error) {
			leases, err = q.Fetch(context.Background(), pawl.Request{Max: 1, Ahead: 1})
			return err
		})
		synctest.Wait()
		require.Empty(t, waiting)
		add(t, q, func(e *pawl.Envelope) { e.Kind = "x" })
		require.NoError(t, <-waiting)
		require.Equal(t, "x", kindsOf(leases))
	})
}
