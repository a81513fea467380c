package bolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
)

// The upgrade is one commit, which writes its pages to free places and then says where
// they are. Whatever part of them a power cut lets reach the disk, as long as what says
// so is not among them, the file is one of format 1, whole, and can be upgraded again.
func TestPowerCutDuringTheUpgrade(t *testing.T) {
	path := writeFormat1(t)
	addBacklog(t, path, 2000)
	before := everything(t, path)
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	db, _, err := openDB(path, access{}, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	require.NoError(t, err)
	require.NoError(t, upgrade(db, (*bbolt.Tx).Commit))
	require.NoError(t, db.Close())
	done, err := os.ReadFile(path)
	require.NoError(t, err)
	size := os.Getpagesize()
	old = append(old, make([]byte, max(0, len(done)-len(old)))...)
	var changed []int
	for place := 2 * size; place < len(done); place += size {
		if !bytes.Equal(old[place:place+size], done[place:place+size]) {
			changed = append(changed, place)
		}
	}
	require.Greater(t, len(changed), 20)
	for seed := range uint64(race.Fewer(40)) {
		random := rand.New(rand.NewPCG(seed, 0))
		cut := bytes.Clone(old)
		for _, place := range changed {
			switch n := random.IntN(size + 1); random.IntN(3) {
			case 0: // it is there
				copy(cut[place:place+size], done[place:])
			case 1: // it is torn
				copy(cut[place:place+n], done[place:])
			}
		}
		require.NoError(t, os.WriteFile(path, cut, 0o600))
		require.EqualValues(t, 1, formatOf(t, path))
		require.Equal(t, before, everything(t, path), "seed %d", seed)
		q, err := Open(path, at(0))
		require.NoError(t, err)
		require.Equal(t, 2003, countsOf(t, q, "a").Ready)
		require.NoError(t, q.Close())
		checkFile(t, path)
	}
}

// damageFormat1 changes the first row of a bucket that has the prefix.
func damageFormat1(t *testing.T, path string, bucket, prefix []byte, change func([]byte) []byte) (key []byte) {
	t.Helper()
	withBolt(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot).Bucket(bucket)
		k, v := b.Cursor().Seek(prefix)
		require.True(t, bytes.HasPrefix(k, prefix), "no such row")
		key = bytes.Clone(k)
		return b.Put(key, change(bytes.Clone(v)))
	})
	return key
}

// A row that is damaged in the old file is damaged in the new one, and keeps no other
// from being upgraded. Not even one that says how many jobs a queue has.
func TestUpgradeOfDamagedRows(t *testing.T) {
	for _, row := range []struct {
		bucket, prefix []byte
		lost           string // the queue that cannot be used
	}{
		{bucketReady, nil, ""}, {bucketDelayed, []byte{waitsForTime}, ""}, {bucketDelayed, []byte{waitsForKind}, ""},
		{bucketJobs, nil, ""}, {bucketHistory, nil, ""}, {bucketPayloads, nil, ""}, {bucketFailed, nil, ""}, {bucketLeased, nil, ""},
		{bucketQueues, numberKey(nil, 1), "a"}, {bucketQueues, nameKey(nil, "a"), "a"},
	} {
		for _, c := range changes {
			t.Run(fmt.Sprintf("%s %x/%s", row.bucket, row.prefix, c.name), func(t *testing.T) {
				path := writeFormat1(t)
				key := damageFormat1(t, path, row.bucket, row.prefix, c.change)
				synctest.Test(t, func(t *testing.T) {
					q := openDamaged(t, path)
					require.NoError(t, q.view(t.Context(), func(s *store) error {
						b := s.jobs.Tx().Bucket(bucketRoot).Bucket(row.bucket)
						if !bytes.Equal(row.bucket, bucketLeased) { // which Open takes back
							require.NotNil(t, b.Get(key), "it has gone")
						}
						return nil
					}))
					n := 0
					for e := range q.Jobs(t.Context(), pawl.Filter{}) {
						require.NotNil(t, e)
						n++
					}
					require.Equal(t, len(upgraded), n)
					ran := 0
					for _, queue := range []string{"a", "b", "c"} {
						if queue == row.lost {
							_, err := q.Fetch(t.Context(), pawl.Request{Queues: []string{queue}, Max: 1})
							require.ErrorIs(t, err, pawl.ErrCorrupt)
							continue
						}
						for {
							leases := fetch(t, q, 9, queue)
							if len(leases) == 0 {
								break
							}
							ran += len(leases)
							for _, l := range leases {
								require.NoError(t, q.Ack(t.Context(), l))
							}
						}
					}
					if row.lost == "" {
						require.GreaterOrEqual(t, ran, 4, "at most one of five is damaged")
					} else {
						require.Equal(t, 2, ran)
					}
				})
			})
		}
	}
}

// Without one of its buckets, or with pages that cannot be read, a file of format 1 is
// refused and stays as it is.
func TestUpgradeOfADamagedFile(t *testing.T) {
	refused := func(path, says string) {
		t.Helper()
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = Open(path, quiet())
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.ErrorContains(t, err, says)
		lockFree(t, path)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, after), "it was changed")
	}
	for _, name := range buckets[1:9] {
		path := writeFormat1(t)
		withBolt(t, path, func(tx *bbolt.Tx) error { return tx.Bucket(bucketRoot).DeleteBucket(name) })
		refused(path, fmt.Sprintf("bucket %q is missing", name))
	}
	path := writeFormat1(t)
	withBolt(t, path, func(tx *bbolt.Tx) error {
		_, err := tx.Bucket(bucketRoot).CreateBucket(bucketUnique)
		return err
	})
	refused(path, "unique")

	path = writeFormat1(t)
	var at int
	withBolt(t, path, func(tx *bbolt.Tx) error {
		at = int(tx.Bucket(bucketRoot).Bucket(bucketJobs).Root()) * tx.DB().Info().PageSize
		return nil
	})
	require.NotZero(t, at)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(b[at : at+100])
	require.NoError(t, os.WriteFile(path, b, 0o600))
	refused(path, "pages of the file are damaged")
}

// Rule: an upgrade whose sync failed leaves a mark, and the next Open begins it anew.
func TestFailedSyncOfAnUpgrade(t *testing.T) {
	if !canLock {
		t.Skip("needs flock: without it there are no marks")
	}
	for _, test := range failedSyncs {
		t.Run(test.rule, func(t *testing.T) {
			path := writeFormat1(t)
			db, err := bbolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.Error(t, upgrade(db, test.commit))
			require.NoError(t, db.Close())
			require.FileExists(t, path+markSuffix)
			stats, err := openAt(t, path, nil).Stats(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, formatVersion, stats.Format)
		})
	}
}
