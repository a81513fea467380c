package bolt

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// An unreadable job becomes dead, where an operator can look at it, and does not keep other
// jobs from running.
func TestDamagedJobBecomesDead(t *testing.T) {
	for _, damaged := range []struct {
		bucket []byte
		kind   string
	}{
		{bucketJobs, "ready"}, {bucketJobs, "large"}, {bucketJobs, "leased"}, {bucketJobs, "retried"},
		{bucketPayloads, "large"}, {bucketPayloads, "large leased"},
	} {
		everyChange(t, damaged.bucket, rowOf(damaged.kind), func(t *testing.T, s sample, path string) {
			q := openDamaged(t, path)
			id := s.ids[damaged.kind]
			_, err := q.Job(t.Context(), id)
			require.ErrorIs(t, err, pawl.ErrCorrupt)
			require.Equal(t, 1, unreadable(t, q, "", len(s.ids)-1))
			require.Equal(t, without(readyKinds, damaged.kind), runAll(t, q))

			require.Equal(t, pawl.Counts{Delayed: 2, Dead: 2}, countsOf(t, q, pawl.DefaultQueue))
			require.Equal(t, 1, unreadable(t, q, pawl.Dead, 1))
			require.ErrorIs(t, q.Retry(t.Context(), id, false), pawl.ErrCorrupt)
			require.Equal(t, []string{"other", "other leased"}, runAll(t, q, "other"))
		})
	}
}

// A row that leads to a missing job also ends among the dead jobs. A job to which no row leads
// does not run and shows up as damaged.
func TestMissingRows(t *testing.T) {
	s := newSample(t)
	for _, test := range []struct {
		bucket       []byte
		kind         string
		dead, listed int
	}{
		{bucketJobs, "ready", 2, 0},
		{bucketJobs, "leased", 2, 0},
		{bucketPayloads, "large", 2, 1},
		{bucketReady, "ready", 1, 1},
		{bucketLeased, "leased", 1, 1},
	} {
		t.Run(fmt.Sprintf("%s of %s", test.bucket, test.kind), func(t *testing.T) {
			path := s.write(t)
			withBolt(t, path, func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucketRoot).Bucket(test.bucket)
				return b.Delete(rowOf(test.kind)(t, s, b))
			})
			synctest.Test(t, func(t *testing.T) {
				q := openDamaged(t, path)
				require.Equal(t, without(readyKinds, test.kind), runAll(t, q))
				require.Equal(t, test.dead, countsOf(t, q, pawl.DefaultQueue).Dead)
				require.Equal(t, test.listed, unreadable(t, q, "", len(s.ids)-len(readyKinds)))
			})
		})
	}
}

// A job with an unreadable row in ready is skipped. It stays where an operator can look at it.
func TestDamagedReadyRowIsPassedOver(t *testing.T) {
	everyChange(t, bucketReady, rowOf("ready"), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		require.Equal(t, without(readyKinds, "ready"), runAll(t, q))
		require.Equal(t, 1, unreadable(t, q, pawl.Ready, 2))
		require.Equal(t, pawl.Ready, find(t, q, s.ids["ready"]).State)
		pass(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"delayed"}, runAll(t, q), "later jobs run as well")
	})
}

// A job with an unreadable row in delayed stays there. The others become ready in time, and the
// scheduler becomes idle.
func TestDamagedDelayedRowIsPassedOver(t *testing.T) {
	everyChange(t, bucketDelayed, rowOf("delayed"), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		require.Equal(t, readyKinds, runAll(t, q))
		pass(time.Hour + time.Second)
		synctest.Wait()
		require.Empty(t, runAll(t, q))
		pass(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"later"}, runAll(t, q))
		require.Equal(t, []string{"other", "other delayed", "other leased"}, runAll(t, q, "other"))
		require.Equal(t, 1, unreadable(t, q, pawl.Delayed, 0))
		require.Equal(t, pawl.Delayed, find(t, q, s.ids["delayed"]).State)
	})
}

// An unreadable lease is an orphan like any other at Open, which does not need the content of
// its row.
func TestDamagedLeaseIsTakenBack(t *testing.T) {
	everyChange(t, bucketLeased, rowOf("large leased"), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		require.Equal(t, 1, find(t, q, s.ids["large leased"]).Crashes)
		require.Equal(t, pawl.Counts{Ready: 6, Delayed: 2, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
		require.Equal(t, readyKinds, runAll(t, q))
		checkNow(t, q)
	})
}

// If its record is damaged as well, the job of such a lease dies, or stays where it is if its
// queue is unknown. All others run.
func TestDamagedLeaseOfADamagedJob(t *testing.T) {
	s := newSample(t)
	for _, lease := range changes {
		for _, job := range changes {
			path := s.write(t, damage{bucketLeased, rowOf("leased"), lease.change}, damage{bucketJobs, rowOf("leased"), job.change})
			synctest.Test(t, func(t *testing.T) {
				q := openDamaged(t, path)
				want := pawl.Counts{Ready: 5, Delayed: 2, Dead: 2}
				if n := len(lease.change(make([]byte, leaseWidth+4))); n != leaseWidth+4 || lease.name == "zeros" {
					want.Leased, want.Dead = 1, 1
				}
				require.Equal(t, want, countsOf(t, q, pawl.DefaultQueue))
				require.Equal(t, without(readyKinds, "leased"), runAll(t, q))
			})
		}
	}
}

// A lease whose row is damaged while it lasts cannot be settled or taken back before the next
// Open. All other leases can, and the scheduler becomes idle.
func TestLeaseDamagedWhileItLasts(t *testing.T) {
	s := newSample(t)
	synctest.Test(t, func(t *testing.T) {
		q := openDamaged(t, s.write(t))
		leases := fetch(t, q, 3)
		require.NoError(t, q.do(t.Context(), scribble{bucketLeased, leases[0].ID[:]}))
		require.ErrorIs(t, q.Settle(t.Context(), leases[0].Ack()), pawl.ErrCorrupt)
		require.NoError(t, q.Settle(t.Context(), leases[1].Ack()))
		pass(time.Hour)
		synctest.Wait()
		require.Equal(t, 1, countsOf(t, q, pawl.DefaultQueue).Leased)
		require.Contains(t, runAll(t, q), leases[2].Kind)
		require.NoError(t, q.Close())

		again := openDamaged(t, q.path)
		require.Equal(t, []string{leases[0].Kind}, runAll(t, again))
	})
}

// scribble is an operation that damages a row of an open file.
type scribble struct{ bucket, key []byte }

func (scribble) check(*txn) error { return nil }

func (s scribble) apply(t *txn) {
	b := t.table(s.bucket)
	v := bytes.Clone(b.Get(s.key))
	v[0] ^= 1
	t.put(b, s.key, v)
}

// Numbers of the items on a sample's second queue.
const (
	numberOfOther        queueNumber = 11
	numberOfOtherDelayed kindNumber  = 14
)

// Rule: damaged counts of a kind on a queue stop that kind there, with an error that says so,
// and lose none of its jobs. Other kinds continue until a job of the damaged kind becomes due,
// which stops their fetches, again with an error that says so.
func TestDamagedCounts(t *testing.T) {
	row := lineKey(nil, line{numberOfOther, numberOfOtherDelayed})
	everyChange(t, bucketQueues, rowAt(row), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		ctx := t.Context()
		err := withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "other delayed", Queue: "other"})
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, "it was not stored for certain")
		_, err = q.Stats(ctx)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		_, err = q.Fetch(ctx, pawl.Request{Queues: []string{"other"}, Kinds: []string{"other delayed"}, Max: 1, Wait: pawl.WaitFinished})
		require.ErrorIs(t, err, pawl.ErrCorrupt)

		require.NoError(t, withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "good", Queue: "other"}))
		require.Len(t, fetch(t, q, 9, "other"), 3)
		require.Equal(t, readyKinds, runAll(t, q))
		pass(2*time.Hour + time.Second)
		synctest.Wait()
		require.NoError(t, withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "late"}))
		_, err = q.Fetch(ctx, pawl.Request{Max: 1})
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		id := s.ids["other delayed"]
		require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
			require.NotNil(t, tx.Bucket(bucketRoot).Bucket(bucketJobs).Get(id[:]))
			return nil
		}))
	})
}

// Rule: a damaged name of a kind stops that kind, but no other kind that a fetch requests with
// it.
func TestDamagedKindRow(t *testing.T) {
	everyChange(t, bucketQueues, rowAt(kindNameKey(nil, "ready")), func(t *testing.T, _ sample, path string) {
		q := openDamaged(t, path)
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "ready"}), pawl.ErrCorrupt)
		_, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"ready"}, Max: 1})
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		leases, err := q.Fetch(t.Context(), pawl.Request{Kinds: []string{"ready", "neighbour"}, Max: 9})
		require.NoError(t, err)
		require.Equal(t, "neighbour", kindsOf(leases))
	})
}

// A damaged row of a queue stops that queue, with an error that says so, and loses none of its
// jobs. The other queues continue.
func TestDamagedQueueRow(t *testing.T) {
	for name, row := range map[string][]byte{"number": numberKey(nil, numberOfOther), "name": nameKey(nil, "other")} {
		everyChange(t, bucketQueues, rowAt(row), func(t *testing.T, s sample, path string) {
			q := openDamaged(t, path)
			ctx := t.Context()
			bad := &pawl.Envelope{Kind: "k", Queue: "other"}
			err := withid.Enqueue(ctx, q, bad)
			require.ErrorIs(t, err, pawl.ErrCorrupt)
			require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, "it was not stored for certain")
			_, err = q.Fetch(ctx, pawl.Request{Queues: []string{"other"}, Max: 1})
			require.ErrorIs(t, err, pawl.ErrCorrupt)
			if name == "number" {
				_, err = q.Stats(ctx)
				require.ErrorIs(t, err, pawl.ErrCorrupt)
			}

			goodErr := started(func() error { return withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "good", Payload: payloadOf("good")}) })
			badErr := started(func() error { return withid.Enqueue(ctx, q, bad) })
			require.NoError(t, <-goodErr)
			require.ErrorIs(t, <-badErr, pawl.ErrCorrupt)
			require.Equal(t, append([]string{"good"}, readyKinds...), runAll(t, q))
			pass(time.Hour)
			synctest.Wait()
			held := leaseOne(t, q)
			require.Equal(t, "delayed", held.Kind)

			pass(time.Hour + time.Second)
			synctest.Wait()
			require.NoError(t, withid.Enqueue(ctx, q, &pawl.Envelope{Kind: "late", Payload: payloadOf("late")}))
			require.Contains(t, runAll(t, q), "late")
			require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
				for _, kind := range []string{"other", "other delayed", "other leased"} {
					id := s.ids[kind]
					require.NotNil(t, tx.Bucket(bucketRoot).Bucket(bucketJobs).Get(id[:]))
				}
				return nil
			}))
		})
	}
}

// An unreadable history hides the job from inspection and nothing else.
func TestDamagedHistory(t *testing.T) {
	everyChange(t, bucketHistory, rowOf("dead"), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		_, err := q.Job(t.Context(), s.ids["dead"])
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.Equal(t, 1, unreadable(t, q, "", len(s.ids)-1))
		require.NoError(t, q.Retry(t.Context(), s.ids["dead"], false))
		require.Equal(t, append([]string{"dead"}, readyKinds...), runAll(t, q))
		checkNow(t, q)
	})
}

// A dead job is found by its record, whatever its row says.
func TestDamagedRowOfADeadJob(t *testing.T) {
	everyChange(t, bucketFailed, rowOf("dead"), func(t *testing.T, s sample, path string) {
		q := openDamaged(t, path)
		require.Equal(t, 1, unreadable(t, q, pawl.Dead, 0))
		require.Equal(t, pawl.Dead, find(t, q, s.ids["dead"]).State)
		require.NoError(t, q.Retry(t.Context(), s.ids["dead"], false))
		require.Equal(t, append([]string{"dead"}, readyKinds...), runAll(t, q))
		checkNow(t, q)
	})
}

// A file without its format or one of its buckets is damaged, for readers too.
func TestDamagedFormat(t *testing.T) {
	s := newSample(t)
	refuse := func(t *testing.T, path, says string) {
		t.Helper()
		for _, o := range openers {
			err := o.open(path)
			require.ErrorIs(t, err, pawl.ErrCorrupt, o.name)
			require.ErrorContains(t, err, says, o.name)
		}
		lockFree(t, path)
	}
	for _, c := range changes {
		refuse(t, s.write(t, damage{bucketMeta, rowAt(keyFormat), c.change}), "format version")
	}
	for _, name := range buckets {
		path := s.write(t)
		withBolt(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketRoot).DeleteBucket(name) })
		refuse(t, path, fmt.Sprintf("bucket %q is missing", name))
		withBolt(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketRoot).Put(name, []byte("a row")) })
		refuse(t, path, fmt.Sprintf("bucket %q is missing", name))
	}
	path := s.write(t)
	withBolt(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketRoot) })
	for _, o := range openers {
		require.ErrorIs(t, o.open(path), ErrNotQueue)
	}
}

// Rule: a fetch ends at a damaged ready row whose key is too long, after all keys of its lane.
func TestFetchEndsBehindAnOverlongKey(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	defer q.Close()
	require.NoError(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}))
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		ready := tx.Bucket(bucketRoot).Bucket(bucketReady)
		first, _ := ready.Cursor().First()
		key := append(bytes.Clone(first[:lanePrefix]), bytes.Repeat([]byte{0xff}, 60)...)
		return ready.Put(key, seal(key, make([]byte, indexWidth)))
	}))
	leases, err := q.Fetch(t.Context(), pawl.Request{Max: 2, Wait: pawl.WaitNot})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	_, err = q.Fetch(t.Context(), pawl.Request{Max: 2, Wait: pawl.WaitNot})
	require.ErrorIs(t, err, pawl.ErrEmpty)
}
