package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/withid"
)

// changeRows changes rows of an active queue, behind its back, on its own goroutine.
func changeRows(t *testing.T, q *Queue, bucket []byte, which func(k []byte) bool, change func([]byte) []byte) {
	t.Helper()
	changed := 0
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucket)
		type row struct{ k, v []byte }
		var rows []row
		_ = b.ForEach(func(k, v []byte) error {
			if which(k) {
				rows = append(rows, row{bytes.Clone(k), change(bytes.Clone(v))})
			}
			return nil
		})
		changed = len(rows)
		for _, r := range rows {
			if err := b.Put(r.k, r.v); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NotZero(t, changed, "no such row")
}

func allRows([]byte) bool { return true }

// keyed is a separate queue with jobs that have the rarer kinds of rows. Each test damages
// those rows.
func keyed(t *testing.T, test func(t *testing.T, q *Queue, change func([]byte) []byte)) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			path := newSample(t).write(t)
			synctest.Test(t, func(t *testing.T) {
				q := openDamaged(t, path)
				test(t, q, c.change)
				again := add(t, q, func(e *pawl.Envelope) { e.Queue = "fresh" })
				require.Equal(t, again.ID, leaseOne(t, q, "fresh").ID, "the queue goes on")
				require.Equal(t, readyKinds, runAll(t, q), "and so do all others")
			})
		})
	}
}

// A unique key with a damaged row refuses new jobs with that key, since it is unknown whether another job has it.
// The job that has it runs, and all others are stored.
func TestDamagedUniqueKey(t *testing.T) {
	keyed(t, func(t *testing.T, q *Queue, change func([]byte) []byte) {
		unique := func(key string) *pawl.Envelope {
			return &pawl.Envelope{Kind: "u", Queue: "keys", UniqueKey: key, Payload: payloadOf("u")}
		}
		first := unique("key")
		require.NoError(t, withid.Enqueue(t.Context(), q, first))
		changeRows(t, q, bucketUnique, allRows, change)
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, unique("key")), pawl.ErrCorrupt)
		require.NoError(t, withid.Enqueue(t.Context(), q, unique("other")))
		require.Equal(t, []string{"u", "u"}, runAll(t, q, "keys"))
		require.Equal(t, pawl.Counts{}, countsOf(t, q, "keys"))
	})
}

// A damaged effect row blocks no job: an effect must tolerate that a job runs twice, but not
// that it never runs. The next lease rewrites the row.
func TestDamagedEffect(t *testing.T) {
	keyed(t, func(t *testing.T, q *Queue, change func([]byte) []byte) {
		effect := func() *pawl.Envelope {
			return add(t, q, func(e *pawl.Envelope) {
				e.Kind, e.Queue, e.IdempotencyKey, e.IdempotencyTTL, e.Payload = "i", "keys", "key", 10*time.Minute, payloadOf("i")
			})
		}
		effect()
		require.Equal(t, []string{"i"}, runAll(t, q, "keys"))
		effect()
		require.Empty(t, runAll(t, q, "keys"), "it is done")
		changeRows(t, q, bucketEffects, allRows, change)
		effect()
		effect()
		held := fetch(t, q, 9, "keys")
		require.Len(t, held, 1, "one at a time, as ever")
		require.NoError(t, q.Settle(t.Context(), held[0].Ack()))
		require.Empty(t, fetch(t, q, 9, "keys"), "and it is done again")
		require.Equal(t, pawl.Counts{}, countsOf(t, q, "keys"))
		pass(30 * time.Minute)
		synctest.Wait()
		require.NoError(t, q.view(t.Context(), func(s *store) error {
			k, _ := s.effects.Cursor().First()
			require.Nil(t, k, "an effect is remembered for ever")
			return nil
		}))
	})
}

// An effect that is damaged while a job holds it is free when the lease of that job ends.
func TestDamagedEffectOfALease(t *testing.T) {
	keyed(t, func(t *testing.T, q *Queue, change func([]byte) []byte) {
		for range 3 {
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey = "keys", "key" })
		}
		held := fetch(t, q, 9, "keys")
		require.Len(t, held, 1)
		require.Empty(t, fetch(t, q, 9, "keys"), "the others are blocked")
		changeRows(t, q, bucketEffects, allRows, change)
		require.NoError(t, q.Settle(t.Context(), held[0].Nack(time.Hour, errBoom)))
		next := leaseOne(t, q, "keys")
		require.NoError(t, q.Settle(t.Context(), next.Ack()))
		require.Empty(t, fetch(t, q, 9, "keys"), "the third is skipped")
		require.Equal(t, pawl.Counts{Delayed: 1}, countsOf(t, q, "keys"))
	})
}

// The value of a deadline row carries no information, so damage in it has no effect: the job
// dies in time, and a fetch sees the deadline anyway.
func TestDamagedDeadline(t *testing.T) {
	keyed(t, func(t *testing.T, q *Queue, change func([]byte) []byte) {
		for range 2 {
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.Deadline = "keys", time.Now().Add(time.Minute) })
		}
		changeRows(t, q, bucketExpiry, allRows, change)
		require.NoError(t, q.Settle(t.Context(), fetch(t, q, 1, "keys")[0].Release()))
		pass(time.Minute)
		synctest.Wait()
		require.Equal(t, pawl.Counts{Dead: 2}, countsOf(t, q, "keys"))
		checkNow(t, q)
	})
}

// Rows of expiry with invalid keys are removed when their time comes, and nothing else is.
func TestSenselessExpiry(t *testing.T) {
	s := newSample(t)
	path := s.write(t)
	synctest.Test(t, func(t *testing.T) {
		withBolt(t, path, func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucketRoot).Bucket(bucketExpiry)
			due := appendTime(nil, time.Now().Add(-time.Second))
			live := s.ids["ready"]
			var err error
			for _, k := range [][]byte{
				append(bytes.Clone(due), endsLife), append(bytes.Clone(due), endsEffect), append(bytes.Clone(due), 99, 1, 2),
				append(append(bytes.Clone(due), endsLife), live[:]...), append(append(bytes.Clone(due), endsLife), make([]byte, 16)...),
				append(append(bytes.Clone(due), endsEffect), "no such effect"...),
			} {
				err = errors.Join(err, b.Put(k, seal(k, nil)))
			}
			return err
		})
		q := openDamaged(t, path)
		require.Equal(t, readyKinds, runAll(t, q))
		require.NoError(t, q.view(t.Context(), func(s *store) error {
			k, _ := s.expiry.Cursor().First()
			require.Nil(t, k)
			return nil
		}))
		checkNow(t, q)
	})
}

// A key that is too short for a time stops no fetch, and no fetch returns a job past its
// deadline.
func TestShortExpiryKey(t *testing.T) {
	for _, bucket := range [][]byte{bucketExpiry, bucketCompleted} {
		s := newSample(t)
		path := s.write(t)
		withBolt(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketRoot).Bucket(bucket).Put([]byte{0}, []byte("x"))
		})
		synctest.Test(t, func(t *testing.T) {
			q := openDamaged(t, path)
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.Deadline = "keys", time.Now().Add(time.Minute) })
			pass(2 * time.Minute)
			synctest.Wait()
			require.Empty(t, fetch(t, q, 9, "keys"), "past its deadline no job is fetched")
			require.Equal(t, readyKinds, runAll(t, q))
		})
	}
}

// A completed record with a damaged row is shown as damaged, and the row is removed when its
// time comes.
func TestDamagedCompleted(t *testing.T) {
	keyed(t, func(t *testing.T, q *Queue, change func([]byte) []byte) {
		for n := range 2 {
			add(t, q, func(e *pawl.Envelope) { e.Queue, e.Retain = "keys", time.Duration(1+n)*time.Minute })
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q, "keys").Ack()))
		}
		first := true
		changeRows(t, q, bucketCompleted, func([]byte) bool { defer func() { first = false }(); return first }, change)
		require.Equal(t, 1, unreadable(t, q, pawl.Completed, 1))
		pass(5 * time.Minute)
		synctest.Wait()
		require.Zero(t, unreadable(t, q, pawl.Completed, 0))
	})
}

// The byte that pauses a queue is under the checksum of its row: a flipped byte neither stops a
// queue silently nor resumes it.
func TestDamagedPause(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint(paused), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := openDamaged(t, newSampleNow(t).write(t))
				if paused {
					require.NoError(t, q.Pause(t.Context(), "other"))
				}
				row := numberKey(nil, numberOfOther)
				const at = 0
				changeRows(t, q, bucketQueues, func(k []byte) bool { return bytes.Equal(k, row) }, func(v []byte) []byte { v[at] ^= 1; return v })
				_, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{"other"}, Max: 1, Wait: pawl.WaitNot})
				require.ErrorIs(t, err, pawl.ErrCorrupt)
				require.ErrorIs(t, q.Resume(t.Context(), "other"), pawl.ErrCorrupt)
				require.ErrorIs(t, q.Pause(t.Context(), "other"), pawl.ErrCorrupt)
				require.Equal(t, readyKinds, runAll(t, q))
			})
		})
	}
}

// Rule: a job is not in a state because the row of another job is in its place. Its list says that it is damaged.
func TestRowOfAnotherJobInThePlace(t *testing.T) {
	for name, c := range map[string]struct {
		bucket []byte
		enter  func(t *testing.T, q *Queue, e *pawl.Envelope)
	}{
		"ready": {bucketReady, func(*testing.T, *Queue, *pawl.Envelope) {}},
		"delayed": {bucketDelayed, func(t *testing.T, q *Queue, _ *pawl.Envelope) {
			require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Nack(time.Hour, errBoom)))
		}},
		"dead": {bucketFailed, func(t *testing.T, q *Queue, e *pawl.Envelope) { cancelJob(t, q, e) }},
	} {
		t.Run(name, func(t *testing.T) {
			q := openTest(t, nil)
			e := add(t, q, nil)
			c.enter(t, q, e)
			var sound []byte
			put := func(change func(key, row []byte) []byte) {
				require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
					b := tx.Bucket(bucketRoot).Bucket(c.bucket)
					k, v := b.Cursor().First()
					return b.Put(bytes.Clone(k), change(bytes.Clone(k), bytes.Clone(v)))
				}))
			}
			put(func(key, row []byte) []byte {
				sound = bytes.Clone(row)
				row[15] ^= 1
				return seal(key, row[:len(row)-sealWidth])
			})
			_, err := q.Job(t.Context(), e.ID)
			require.ErrorIs(t, err, pawl.ErrCorrupt)
			for listed, err := range q.Jobs(t.Context(), pawl.Filter{}) {
				require.Equal(t, e.ID, listed.ID)
				require.ErrorIs(t, err, pawl.ErrCorrupt)
			}
			put(func([]byte, []byte) []byte { return sound })
		})
	}
}
