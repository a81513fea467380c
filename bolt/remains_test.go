package bolt

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// missing removes the record of a job.
var missing = struct {
	name   string
	change func([]byte) []byte
}{"missing", nil}

// damageRecord damages or removes the record of a job of an active queue.
func damageRecord(t *testing.T, q *Queue, id pawl.ID, change func([]byte) []byte) {
	t.Helper()
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucketJobs)
		if change == nil {
			return b.Delete(id[:])
		}
		return b.Put(id[:], change(bytes.Clone(b.Get(id[:]))))
	}))
}

// A dead job can be deleted whatever happened to its record, before or after its death. Nothing
// of it is left: the file is sound again.
func TestDeleteDamagedDeadJob(t *testing.T) {
	for _, c := range append(changes, missing) {
		for _, when := range []string{"alive", "dead"} {
			t.Run(c.name+"/"+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var events []pawl.Event
					o := quiet()
					o.OnEvent = func(e pawl.Event) { events = append(events, e) }
					q := openAt(t, memoryFolder(t)+"/jobs.db", o) // which checks the file at the end
					full := func(key string) *pawl.Envelope {
						deadline := time.Now().Add(time.Hour)
						return &pawl.Envelope{Kind: "k", MaxRetries: 3, Payload: make([]byte, 5000), UniqueKey: key, Deadline: deadline}
					}
					other, e := full("other"), full("key")
					require.NoError(t, withid.Enqueue(t.Context(), q, other, e))
					leases := fetch(t, q, 2)
					for _, l := range leases {
						require.NoError(t, q.Settle(t.Context(), l.Nack(0, errBoom)))
					}
					leases = fetch(t, q, 2)
					require.Equal(t, e.ID, leases[1].ID)
					require.NoError(t, q.Settle(t.Context(), leases[0].Abandon(pawl.ReasonPermanent, errBoom)))
					if when == "alive" {
						damageRecord(t, q, e.ID, c.change)
					}
					require.NoError(t, q.Settle(t.Context(), leases[1].Abandon(pawl.ReasonPermanent, errBoom)))
					if when == "dead" {
						damageRecord(t, q, e.ID, c.change)
					}
					require.Equal(t, 1, unreadable(t, q, pawl.Dead, 1))
					require.NoError(t, q.Delete(t.Context(), e.ID))
					synctest.Wait()
					last := events[len(events)-1]
					require.Equal(t, pawl.EventDeleted, last.Type)
					require.Equal(t, e.ID, last.Job.ID)
					require.Equal(t, pawl.DefaultQueue, last.Job.Queue)
					require.Equal(t, pawl.Counts{Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
					checkNow(t, q)

					require.ErrorIs(t, q.Delete(t.Context(), e.ID), pawl.ErrNotFound)
					done, err := q.Enqueue(t.Context(), full("key"))
					require.NoError(t, err)
					require.False(t, done[0].Existing, "its unique key is free")
					require.NoError(t, q.Delete(t.Context(), other.ID))
				})
			})
		}
	}
}

// Only dead jobs are deleted in spite of damage: a job in another state keeps its place and its
// error, and so does a job whose row is damaged as well.
func TestDeleteDamagedJobThatLives(t *testing.T) {
	for _, c := range changes {
		s := newSample(t)
		path := s.write(t,
			damage{bucketJobs, rowOf("ready"), c.change}, damage{bucketJobs, rowOf("delayed"), c.change},
			damage{bucketJobs, rowOf("dead"), c.change}, damage{bucketFailed, rowOf("dead"), c.change})
		synctest.Test(t, func(t *testing.T) {
			q := openDamaged(t, path)
			before := digest(t, q)
			for _, kind := range []string{"ready", "delayed", "dead"} {
				require.ErrorIs(t, q.Delete(t.Context(), s.ids[kind]), pawl.ErrCorrupt, kind)
			}
			require.ErrorIs(t, q.Delete(t.Context(), pawl.NewID(time.Now())), pawl.ErrNotFound)
			require.Equal(t, before, digest(t, q))
		})
	}
}

// The row of a damaged dead job is found behind any number of others, page by page.
func TestDeleteDamagedAmongMany(t *testing.T) {
	q := openAt(t, memoryFolder(t)+"/jobs.db", nil)
	const dead = 3*pageRows + 7
	fill(t, q, dead, "q")
	leases := fetch(t, q, dead, "q")
	require.Len(t, leases, dead)
	atOnce(t, leases, func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, nil)) })
	var ids []pawl.ID
	for e, err := range q.Jobs(t.Context(), pawl.Filter{State: pawl.Dead}) {
		require.NoError(t, err)
		ids = append(ids, e.ID)
	}
	require.Len(t, ids, dead)
	for _, n := range []int{0, pageRows - 1, pageRows, 2 * pageRows, dead - 1} {
		damageRecord(t, q, ids[n], changes[0].change)
		require.NoError(t, q.Delete(t.Context(), ids[n]), "number %d", n)
	}
	require.Equal(t, pawl.Counts{Dead: dead - 5}, countsOf(t, q, "q"))
	cancelled := &endsAfter{t.Context(), 2}
	require.Error(t, q.Delete(cancelled, pawl.NewID(time.Now())), "a search ends with its context")
}

// Rule: many unknown IDs cost one scan of the dead jobs. A dead job that loses its record later
// is found anyway, after a second.
func TestDeleteOfUnknownIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, memoryFolder(t)+"/jobs.db", nil)
		require.NoError(t, withid.Enqueue(t.Context(), q, newBatch(20)...))
		for _, l := range fetch(t, q, 20) {
			require.NoError(t, q.Settle(t.Context(), l.Abandon(pawl.ReasonPermanent, nil)))
		}
		require.ErrorIs(t, q.Delete(t.Context(), pawl.NewID(time.Now())), pawl.ErrNotFound)
		looked := q.orphans.ids
		looked[pawl.ID{1}] = true // a marker to recognize the set
		for range 100 {
			require.ErrorIs(t, q.Delete(t.Context(), pawl.NewID(time.Now())), pawl.ErrNotFound)
		}
		require.Equal(t, looked, q.orphans.ids, "it did not look again")
		require.ErrorIs(t, q.Delete(t.Context(), pawl.ID{1}), pawl.ErrNotFound, "what is no orphan any more")

		lost := all(t, q, pawl.Filter{State: pawl.Dead})[7].ID
		damageRecord(t, q, lost, nil)
		pass(orphansLast)
		require.NoError(t, q.Delete(t.Context(), lost))
		require.Equal(t, 19, countsOf(t, q, pawl.DefaultQueue).Dead)
	})
}
