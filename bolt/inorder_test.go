package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

func ordered(o pawl.KeyOrder) *Options {
	return &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: {InOrder: o}}}
}

// Rule: the rows of keys whose jobs run in order follow from the jobs. Damage, a salvage, and a
// restore keep which job holds a key, and who is behind it.
func TestOrderIsMadeAnewFromTheJobs(t *testing.T) {
	for _, dead := range []bool{false, true} {
		for name, again := range map[string]func(t *testing.T, q *Queue, path string) *Queue{
			"damage": func(t *testing.T, q *Queue, _ string) *Queue {
				flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
				return q
			},
			"no row": func(t *testing.T, q *Queue, _ string) *Queue {
				require.NoError(t, q.do(t.Context(), look(func(t *txn) { t.recountKeys(1); t.fail(t.finish()) })))
				return q
			},
			"salvage": func(t *testing.T, q *Queue, path string) *Queue {
				require.NoError(t, q.Close())
				_, err := Salvage(t.Context(), path, path+".new")
				require.NoError(t, err)
				return openAt(t, path+".new", nil)
			},
			"restore": func(t *testing.T, q *Queue, path string) *Queue {
				jobs, err := jobsOf(t, q)
				require.NoError(t, err)
				require.NoError(t, q.Close())
				q = openAt(t, path+".new", ordered(pawl.OrderHold))
				for i := range jobs { // the job that holds the key comes last
					require.NoError(t, q.Restore(t.Context(), jobs[len(jobs)-1-i:len(jobs)-i], nil))
				}
				return q
			},
		} {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(memoryFolder(t), "jobs.db")
				q, err := Open(path, ordered(pawl.OrderHold))
				require.NoError(t, err)
				jobs := addKeyed(t, q, 4, "a")
				l := leaseOne(t, q)
				if dead {
					require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errBoom)))
				} else {
					require.NoError(t, q.Settle(t.Context(), l.Nack(time.Hour, errBoom)))
				}
				q = again(t, q, path)
				t.Cleanup(func() { q.Close() })
				if name == "damage" {
					addKeyed(t, q, 1, "a") // which finds the damage
				}
				require.Empty(t, fetch(t, q, 9))
				checkNow(t, q)
				if dead {
					require.NoError(t, q.Retry(t.Context(), jobs[0].ID, false))
				} else {
					require.NoError(t, q.RunNow(t.Context(), jobs[0].ID))
				}
				for i, want := range jobs {
					if name == "restore" && i > 0 {
						break // a restore gives new sequences, in the order of its calls
					}
					l := leaseOne(t, q)
					require.Equal(t, want.ID, l.ID)
					require.Empty(t, fetch(t, q, 9))
					require.NoError(t, q.Settle(t.Context(), l.Ack()))
				}
				checkNow(t, q)
			})
		}
	}
}

// Rule: a job of a key in order holds its key from its first lease on. After any end of the lease that does
// not end the job, its record says so.
func TestOrderHoldsTheKeyFromTheFirstLease(t *testing.T) {
	for name, end := range map[string]func(*pawl.Lease) *pawl.Settlement{
		"nack":    func(l *pawl.Lease) *pawl.Settlement { s := l.Nack(0, errBoom); return &s },
		"backoff": func(l *pawl.Lease) *pawl.Settlement { s := l.Nack(time.Hour, errBoom); return &s },
		"release": func(l *pawl.Lease) *pawl.Settlement { s := l.Release(); return &s },
		"snooze":  func(l *pawl.Lease) *pawl.Settlement { s := l.Snooze(time.Hour); return &s },
		"death":   func(l *pawl.Lease) *pawl.Settlement { s := l.Abandon(pawl.ReasonPermanent, errBoom); return &s },
		"crash":   func(*pawl.Lease) *pawl.Settlement { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			q, err := Open(path, ordered(pawl.OrderHold))
			require.NoError(t, err)
			jobs := addKeyed(t, q, 2, "a")
			require.False(t, find(t, q, jobs[0].ID).HoldsKey)
			l := leaseOne(t, q)
			require.True(t, find(t, q, jobs[0].ID).HoldsKey)
			checkNow(t, q)
			if s := end(l); s != nil {
				require.NoError(t, q.Settle(t.Context(), *s))
			}
			require.NoError(t, q.Close()) // which leaves a lease
			q = openAt(t, path, nil)
			defer q.Close()
			require.True(t, find(t, q, jobs[0].ID).HoldsKey)
			require.False(t, find(t, q, jobs[1].ID).HoldsKey)
			checkNow(t, q)
		})
	}
}

func jobsOf(t *testing.T, q *Queue) (jobs []*pawl.Envelope, err error) {
	for e, err := range q.Jobs(t.Context(), pawl.Filter{Order: pawl.OrderCreated}) {
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, e)
	}
	return jobs, nil
}

// Rule: blocked jobs of a key in order are not in ready, so a fetch of another key does not walk over
// them.
func TestOrderLeavesOneJobOfAKeyInReady(t *testing.T) {
	q := openTest(t, ordered(pawl.OrderContinue))
	addKeyed(t, q, 2000, "a")
	addKeyed(t, q, 3, "b")
	require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
		require.Equal(t, 2, tx.Bucket(bucketRoot).Bucket(bucketReady).Stats().KeyN)
		return nil
	}))
	require.Equal(t, pawl.Counts{Ready: 2003, Blocked: 2001}, countsOf(t, q, pawl.DefaultQueue))
	checkNow(t, q)
}

// Rule: limits that contradict each other are refused.
func TestOrderRefusesMoreThanOneJobOfAKey(t *testing.T) {
	for _, l := range []pawl.Limits{{InOrder: pawl.OrderHold, RunningPerKey: 2}, {InOrder: 3}} {
		_, err := Open(filepath.Join(t.TempDir(), "jobs.db"), &Options{Limits: map[string]pawl.Limits{"x": l}})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "InOrder")
	}
}

// Rule: when the row of a queue is lost, and its limits with it, a salvage lets no job wait for its turn or for
// a limit.
func TestSalvageOfAQueueThatLostItsOrder(t *testing.T) {
	for _, limits := range []pawl.Limits{{InOrder: pawl.OrderHold}, {RunningPerKey: 1}} {
		t.Run(limits.InOrder.String(), func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			q, err := Open(path, &Options{Limits: map[string]pawl.Limits{pawl.DefaultQueue: limits}})
			require.NoError(t, err)
			addKeyed(t, q, 4, "a")
			require.Len(t, fetch(t, q, 9), 1)
			flip(t, q, bucketQueues, numberKey(nil, 1))
			require.NoError(t, q.Close())
			_, err = Salvage(t.Context(), path, path+".new")
			require.NoError(t, err)
			checkFile(t, path+".new")
			q = openAt(t, path+".new", nil)
			require.Len(t, fetch(t, q, 9), 4)
		})
	}
}

// Rule: a job keeps its key even if the end of its first lease finds the row of the key damaged, and recounts
// the jobs: no other job of the key goes before it.
func TestOrderHoldsTheKeyOverADamagedRow(t *testing.T) {
	for name, end := range map[string]func(*pawl.Lease) *pawl.Settlement{
		"backoff": func(l *pawl.Lease) *pawl.Settlement { s := l.Nack(time.Hour, errBoom); return &s },
		"death":   func(l *pawl.Lease) *pawl.Settlement { s := l.Abandon(pawl.ReasonPermanent, errBoom); return &s },
		"crash":   func(*pawl.Lease) *pawl.Settlement { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			q, err := Open(path, ordered(pawl.OrderHold))
			require.NoError(t, err)
			jobs := addKeyed(t, q, 2, "a")
			l := leaseOne(t, q)
			flip(t, q, bucketKeys, limitKey(nil, 1, "a"))
			if s := end(l); s != nil {
				require.NoError(t, q.Settle(t.Context(), *s))
			}
			require.NoError(t, q.Close()) // which leaves a lease
			q = openAt(t, path, nil)
			require.True(t, find(t, q, jobs[0].ID).HoldsKey)
			for _, l := range fetch(t, q, 9) {
				require.Equal(t, jobs[0].ID, l.ID)
			}
			checkNow(t, q)
		})
	}
}

// Rule: after the deletion of a dead job the next job of its key runs, even if the record of the dead job is
// damaged.
func TestDeletionOfADamagedJobThatHoldsItsKey(t *testing.T) {
	q := openTest(t, ordered(pawl.OrderHold))
	jobs := addKeyed(t, q, 2, "a")
	require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
	flip(t, q, bucketJobs, jobs[0].ID[:])
	require.NoError(t, q.Delete(t.Context(), jobs[0].ID))
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
	checkNow(t, q)
	require.Equal(t, jobs[1].ID, leaseOne(t, q).ID)
}

// Rule: once a queue gets another order, dead jobs no longer hold keys, and none is counted.
func TestAnotherOrderFreesTheKeysOfDeadJobs(t *testing.T) {
	for _, order := range []pawl.KeyOrder{pawl.OrderNone, pawl.OrderContinue} {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		q, err := Open(path, ordered(pawl.OrderHold))
		require.NoError(t, err)
		addKeyed(t, q, 2, "a")
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Abandon(pawl.ReasonPermanent, errBoom)))
		require.Equal(t, 1, countsOf(t, q, pawl.DefaultQueue).Held)
		require.NoError(t, q.Close())
		q = openAt(t, path, ordered(order))
		require.Equal(t, pawl.Counts{Ready: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
		checkNow(t, q)
	}
}
