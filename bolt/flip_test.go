package bolt

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
)

// storedRow is a row of a file, with the places of its value in the file: the current one, and
// perhaps older ones in free pages.
type storedRow struct {
	bucket     string
	key, value []byte
	places     []int
}

// rowsOf finds all rows of the file. Their values exclude keys and page headers, which bbolt
// itself needs.
func rowsOf(t *testing.T, path string) (all []storedRow) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			err := tx.Bucket(bucketRoot).Bucket(name).ForEach(func(k, v []byte) error {
				r := storedRow{bucket: string(name), key: bytes.Clone(k), value: bytes.Clone(v)}
				for at := 0; ; at++ {
					n := bytes.Index(content[at:], v)
					if n < 0 {
						break
					}
					at += n
					r.places = append(r.places, at)
				}
				all = append(all, r)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	return all
}

// One to three bits of the stored values are flipped behind bbolt's back. Then no job has wrong
// data, every job with sound rows runs, and no job disappears: damaged jobs can still be
// inspected.
func TestFlippedBits(t *testing.T) {
	s := newSample(t)
	path := filepath.Join(memoryFolder(t), "jobs.db")
	require.NoError(t, os.WriteFile(path, s.bytes, 0o600))
	all := rowsOf(t, path)
	require.Len(t, all, 1+4+3*len(s.ids)+len(s.ids)+2+1+len(s.ids), "meta, queues, kinds and their counts, jobs, payloads, the history of the dead job, and the states")
	flipped := make([]byte, len(s.bytes))
	for seed := range uint64(race.Fewer(150)) {
		random := rand.New(rand.NewPCG(seed, 0))
		copy(flipped, s.bytes)
		hit := make(map[string]bool) // buckets
		damaged := make(map[pawl.ID]bool)
		for range 1 + random.IntN(3) {
			r := all[random.IntN(len(all))]
			for _, id := range s.ids {
				if bytes.HasPrefix(r.key, id[:]) || bytes.HasPrefix(r.value, id[:]) {
					damaged[id] = true
				}
			}
			at, bit := random.IntN(len(r.value)), random.IntN(8)
			for _, place := range r.places {
				flipped[place+at] ^= 1 << bit
			}
			hit[r.bucket] = true
		}
		require.NoError(t, os.WriteFile(path, flipped, 0o600))
		if !testFlipped(t, s, path, hit, damaged) {
			t.Fatalf("seed %d", seed)
		}
	}
}

func testFlipped(t *testing.T, s sample, path string, hit map[string]bool, damaged map[pawl.ID]bool) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, err := Open(path, quiet())
	if hit[string(bucketMeta)] && err != nil {
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		return true
	}
	require.NoError(t, err)

	ran := make(map[pawl.ID]bool)
	for _, queue := range []string{pawl.DefaultQueue, "other"} {
		for {
			leases, err := q.Fetch(ctx, pawl.Request{Queues: []string{queue}, Max: 100, Wait: pawl.WaitNot})
			if errors.Is(err, pawl.ErrEmpty) {
				break
			}
			if hit[string(bucketQueues)] && errors.Is(err, pawl.ErrCorrupt) {
				break
			}
			require.NoError(t, err)
			for _, l := range leases {
				require.Equal(t, s.ids[l.Kind], l.ID)
				require.Equal(t, string(payloadOf(l.Kind)), string(l.Payload))
				ran[l.ID] = true
				if err := q.Settle(ctx, l.Ack()); !hit[string(bucketQueues)] {
					require.NoError(t, err)
				} else if err != nil {
					require.ErrorIs(t, err, pawl.ErrCorrupt)
					delete(ran, l.ID)
				}
			}
		}
	}
	for job, err := range q.Jobs(ctx, pawl.Filter{}) {
		require.NotNil(t, job, "%v", err)
		if err != nil {
			require.ErrorIs(t, err, pawl.ErrCorrupt)
			require.True(t, damaged[job.ID] || hit[string(bucketQueues)], "job %s is sound: %v", job.ID, err)
		}
	}
	if _, err := q.Stats(ctx); err != nil {
		require.ErrorIs(t, err, pawl.ErrCorrupt)
	}
	ok := true
	require.NoError(t, q.db.View(func(tx *bbolt.Tx) error {
		for kind, id := range s.ids {
			there := tx.Bucket(bucketRoot).Bucket(bucketJobs).Get(id[:]) != nil
			waits := kind == "delayed" || kind == "later" || kind == "other delayed" || kind == "dead"
			if there == ran[id] {
				t.Errorf("job %q: ran %v, there %v", kind, ran[id], there)
				ok = false
			}
			if !waits && !ran[id] && !damaged[id] && !hit[string(bucketQueues)] {
				t.Errorf("job %q did not run", kind)
				ok = false
			}
		}
		return nil
	}))
	require.NoError(t, ctx.Err(), "it took too long")
	require.NoError(t, q.Close())
	return ok
}
