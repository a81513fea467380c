package bolt

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// blockedDamage is damage after which blocked jobs must still be unblocked.
var blockedDamage = []struct {
	rule string

	// hit damages a row while holder has the key. Lost is whether the damaged job becomes dead,
	// which ends its damage.
	hit func(t *testing.T, q *Queue, holder *pawl.Lease, blockedJobs []*pawl.Envelope, change func([]byte) []byte) (lost pawl.ID)
}{
	{"the one of a lane that comes back", func(t *testing.T, q *Queue, _ *pawl.Lease, blockedJobs []*pawl.Envelope, change func([]byte) []byte) pawl.ID {
		damageRecord(t, q, blockedJobs[0].ID, change)
		return blockedJobs[0].ID
	}},
	{"the job that is leased", func(t *testing.T, q *Queue, holder *pawl.Lease, _ []*pawl.Envelope, change func([]byte) []byte) pawl.ID {
		damageRecord(t, q, holder.ID, change)
		return holder.ID
	}},
	{"both of these", func(t *testing.T, q *Queue, holder *pawl.Lease, blockedJobs []*pawl.Envelope, change func([]byte) []byte) pawl.ID {
		damageRecord(t, q, blockedJobs[0].ID, change)
		damageRecord(t, q, holder.ID, change)
		return holder.ID
	}},
}

// blockedEnds are the ways in which the lease ends. Its record may be damaged.
var blockedEnds = []struct {
	name string
	end  func(t *testing.T, q *Queue, l *pawl.Lease)
}{
	{"nack", func(t *testing.T, q *Queue, l *pawl.Lease) {
		require.NoError(t, q.Settle(t.Context(), l.Nack(time.Hour, errBoom)))
	}},
	{"abandon", func(t *testing.T, q *Queue, l *pawl.Lease) {
		require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, errBoom)))
	}},
	{"an expiry", func(_ *testing.T, q *Queue, _ *pawl.Lease) { expire(q) }},
}

// Blocked jobs are unblocked without a restart when damage has removed what would have
// unblocked them: each lane of each queue continues, one job after the other, and only the
// damaged job is lost.
func TestBlockedJobsAreReadyAfterDamage(t *testing.T) {
	queues := []string{"a", "b"}
	for _, d := range blockedDamage {
		for _, e := range blockedEnds {
			for _, c := range append(changes, missing) {
				t.Run(d.rule+"/"+e.name+"/"+c.name, func(t *testing.T) {
					path := memoryFolder(t) + "/jobs.db"
					synctest.Test(t, func(t *testing.T) {
						q := openDamaged(t, path)
						keyed := func(queue string) *pawl.Envelope {
							return add(t, q, func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey = queue, "key" })
						}
						retry := keyed("a")
						require.NoError(t, q.Settle(t.Context(), leaseOne(t, q, "a").Nack(0, errBoom)))
						keyed("holder")
						holder := leaseOne(t, q, "holder")
						jobs := []*pawl.Envelope{keyed("a"), keyed("a"), keyed("a"), keyed("b"), keyed("b")}
						all := append(jobs, retry)
						require.Empty(t, fetch(t, q, 10, queues...))
						require.Equal(t, len(all), blockedJobs(t, q))

						d.hit(t, q, holder, jobs, c.change)
						e.end(t, q, holder)
						got := make(map[pawl.ID]bool)
						for range len(all) + 1 { // each fetch waits until there is a job
							synctest.Wait()
							leases := fetch(t, q, 10, queues...)
							if len(leases) == 0 {
								break
							}
							require.Len(t, leases, 1)
							got[leases[0].ID] = true
							require.NoError(t, q.Settle(t.Context(), leases[0].Snooze(24*time.Hour)))
						}
						for _, e := range all {
							_, err := q.Job(t.Context(), e.ID)
							require.Equal(t, err == nil, got[e.ID], "job %s, %v", e.ID, err)
						}
						require.Zero(t, blockedJobs(t, q))
						pass(time.Hour)
						synctest.Wait() // and the scheduler is idle
					})
				})
			}
		}
	}
}

// A damaged first row of the blocked jobs is skipped: when the lease ends, the next job of its
// lane and those of the other lanes are unblocked.
func TestDamagedBlockedRow(t *testing.T) {
	for _, e := range blockedEnds {
		for _, c := range changes {
			t.Run(e.name+"/"+c.name, func(t *testing.T) {
				path := memoryFolder(t) + "/jobs.db"
				synctest.Test(t, func(t *testing.T) {
					q := openDamaged(t, path)
					keyed := func(queue string) *pawl.Envelope {
						return add(t, q, func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey = queue, "key" })
					}
					keyed("holder")
					holder := leaseOne(t, q, "holder")
					first, second, other := keyed("a"), keyed("a"), keyed("b")
					require.Empty(t, fetch(t, q, 10, "a", "b"))
					hit := false
					changeRows(t, q, bucketDelayed, func(k []byte) bool {
						defer func() { hit = true }()
						return !hit && bytes.HasPrefix(k, allBlocked)
					}, c.change)
					e.end(t, q, holder)
					for _, want := range []*pawl.Envelope{second, other} {
						l := leaseOne(t, q, "a", "b")
						require.Equal(t, want.ID, l.ID)
						require.NoError(t, q.Settle(t.Context(), l.Snooze(24*time.Hour)))
					}
					require.Empty(t, fetch(t, q, 10, "a", "b"))
					require.Equal(t, pawl.Ready, find(t, q, first.ID).State)
					pass(time.Hour)
					synctest.Wait()
				})
			})
		}
	}
}

// A fetch that waits when the damage is found gets the next job of the lane, although nothing
// else wakes the scheduler. So does a fetch that waits for a drain, and a fetch that does not
// wait at all.
func TestFetchThatComesUponDamageGetsTheNextJob(t *testing.T) {
	for _, wait := range []pawl.Wait{pawl.WaitForJob, pawl.WaitNot, pawl.WaitDrained} {
		t.Run(fmt.Sprint(wait), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openTest(t, nil)
				holder := holdKey(t, q, "0", "1", "2")
				var first pawl.ID
				for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Ready}) {
					require.NoError(t, err)
					if e.UniqueKey == "0" {
						first = e.ID
					}
				}
				damageRecord(t, q, first, changes[0].change)
				require.NoError(t, q.Settle(t.Context(), holder.Nack(time.Hour, errBoom)))
				leases, err := q.Fetch(t.Context(), pawl.Request{Max: 9, Wait: wait})
				require.NoError(t, err)
				require.Len(t, leases, 1)
				require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
				require.Empty(t, fetch(t, q, 9), "the last is skipped")
				require.Equal(t, pawl.Counts{Delayed: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
				require.NoError(t, q.Delete(t.Context(), first))
			})
		})
	}
}

// While fetches wait, the search after damage ends however many jobs are blocked: jobs whose
// key is leased are blocked again, and the scheduler becomes idle.
func TestSearchForBlockedJobsEnds(t *testing.T) {
	const keys, waiting = 2*promotePortion + 10, 3
	path := memoryFolder(t) + "/jobs.db"
	synctest.Test(t, func(t *testing.T) {
		q := openDamaged(t, path)
		var holders, jobs []*pawl.Envelope
		for i := range keys {
			for _, batch := range []*[]*pawl.Envelope{&holders, &jobs} {
				*batch = append(*batch, &pawl.Envelope{Kind: "k", Queue: "a", IdempotencyKey: fmt.Sprint(i)})
			}
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, holders...))
		leases := fetch(t, q, keys, "a")
		require.Len(t, leases, keys)
		require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
		require.Empty(t, fetch(t, q, 1, "a"))
		require.Equal(t, keys, blockedJobs(t, q))

		got := make(chan *pawl.Lease, waiting)
		for range waiting {
			go func() {
				if leases, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"a"}, Max: 1}); err == nil {
					got <- leases[0]
				}
			}()
		}
		synctest.Wait()
		damageRecord(t, q, leases[keys-1].ID, changes[0].change)
		require.NoError(t, q.Settle(t.Context(), leases[keys-1].Abandon(pawl.ReasonPermanent, errBoom)))
		synctest.Wait()
		require.Equal(t, jobs[keys-1].ID, (<-got).ID)
		require.Empty(t, got)
		require.Equal(t, keys-1, blockedJobs(t, q))
		require.NoError(t, q.Settle(t.Context(), leases[0].Ack()))
		synctest.Wait()
		require.Empty(t, got, "its key is done")
		require.NoError(t, q.Settle(t.Context(), leases[1].Nack(time.Hour, errBoom)))
		require.Equal(t, jobs[1].ID, (<-got).ID)
	})
}
