package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// everything is each bucket of a file, at any depth, with its sequence and its rows.
func everything(t *testing.T, path string) []string {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	var all []string
	var walk func(path string, b *bbolt.Bucket) error
	walk = func(path string, b *bbolt.Bucket) error {
		all = append(all, fmt.Sprintf("%s: %d", path, b.Sequence()))
		return b.ForEach(func(k, v []byte) error {
			if v == nil {
				return walk(fmt.Sprintf("%s/%q", path, k), b.Bucket(k))
			}
			all = append(all, fmt.Sprintf("%s/%q=", path, k)+string(v))
			return nil
		})
	}
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return walk(string(name), b) })
	}))
	return all
}

// fillEverything gives a queue jobs in every state with everything a job may have, and gives
// its file data of the app.
func fillEverything(t *testing.T, q *Queue) {
	t.Helper()
	ctx := t.Context()
	put := func(kind string, change func(*pawl.Envelope)) *pawl.Envelope {
		return add(t, q, func(e *pawl.Envelope) {
			if e.Kind = kind; change != nil {
				change(e)
			}
		})
	}
	settle := func(kind string, change func(*pawl.Envelope), verb func(*pawl.Lease) error) {
		put(kind, func(e *pawl.Envelope) {
			if e.Queue = "settled"; change != nil {
				change(e)
			}
		})
		require.NoError(t, verb(leaseOne(t, q, "settled")))
	}
	settle("completed", func(e *pawl.Envelope) { e.Retain = time.Hour }, func(l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) })
	settle("done", func(e *pawl.Envelope) { e.IdempotencyKey = "done" }, func(l *pawl.Lease) error { return q.Settle(ctx, l.Ack()) })
	settle("snoozed", nil, func(l *pawl.Lease) error { return q.Settle(ctx, l.Snooze(1000*time.Hour)) })
	settle("retried", nil, func(l *pawl.Lease) error { return q.Settle(ctx, l.Nack(time.Hour, errBoom)) })
	settle("dead", nil, func(l *pawl.Lease) error { return q.Settle(ctx, l.Abandon(pawl.ReasonPermanent, errBoom)) })
	for range 2 { // one is leased and one is blocked
		put("keyed", func(e *pawl.Envelope) { e.Queue, e.IdempotencyKey = "keyed", "key" })
	}
	require.Len(t, fetch(t, q, 2, "keyed"), 1)
	put("full", func(e *pawl.Envelope) {
		e.Priority, e.Timeout, e.Headers = -7, time.Minute, map[string]string{"trace": "1"}
		e.UniqueKey, e.IdempotencyKey, e.IdempotencyTTL = "u", "i", time.Minute
		e.Deadline, e.Retain = time.Now().Add(time.Hour), time.Minute
		e.Payload = make([]byte, 3*largePayload)
	})
	put("delayed", func(e *pawl.Envelope) { e.Delay = time.Hour })
	require.NoError(t, q.Pause(ctx, "paused"))
	require.NoError(t, q.Update(ctx, func(tx *bbolt.Tx) error {
		app, err := tx.CreateBucket([]byte("app"))
		require.NoError(t, err)
		require.NoError(t, app.SetSequence(7))
		for n := range 3 {
			b, err := app.CreateBucket(fmt.Append(nil, "part ", n))
			require.NoError(t, err)
			for i := range 800 { // more than one transaction of a compaction
				require.NoError(t, b.Put(fmt.Append(nil, "row ", i), bytes.Repeat([]byte{byte(i)}, 3000)))
			}
			deep, err := b.CreateBucket([]byte("deep"))
			require.NoError(t, err)
			require.NoError(t, deep.SetSequence(uint64(n)))
			require.NoError(t, deep.Put([]byte("row"), nil))
		}
		require.NoError(t, app.Put([]byte("row behind the buckets"), []byte("value")))
		_, err = app.CreateBucket([]byte("empty"))
		return err
	}))
}

// A compaction changes no row: jobs in all states with everything they have, counts, sequences,
// keys, and the app's data.
func TestCompactKeepsEverything(t *testing.T) {
	folder := memoryFolder(t)
	path := filepath.Join(folder, "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Duration(0)
		q := openAt(t, path, &Options{Now: func() time.Time { return time.Now().Add(ahead) }})
		fillEverything(t, q)
		require.NoError(t, q.do(t.Context(), visit(func() { ahead = time.Minute })))
		require.Empty(t, fetch(t, q, 1, "empty")) // stores the throughput, so that Close has nothing to add
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		for i := range stats.Queues {
			stats.Queues[i].Served = false // as in a file without a worker
		}
		require.NoError(t, q.Compact(t.Context(), filepath.Join(folder, "live.db")))
		require.NoError(t, q.Close())
		require.Equal(t, everything(t, path), everything(t, filepath.Join(folder, "live.db")))

		r, err := OpenReader(filepath.Join(folder, "live.db"))
		require.NoError(t, err)
		defer r.Close()
		require.NoError(t, r.Compact(t.Context(), filepath.Join(folder, "twice.db")))
		again, err := r.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, stats.Queues, again.Queues)
		require.Equal(t, everything(t, path), everything(t, filepath.Join(folder, "twice.db")))
		checkFile(t, filepath.Join(folder, "twice.db"))
	})
}

// A compacted file continues where the old one stopped: new jobs come after the old ones, keys
// are still taken, and a paused queue stays paused.
func TestCompactGoesOn(t *testing.T) {
	folder := memoryFolder(t)
	path := filepath.Join(folder, "compact.db")
	synctest.Test(t, func(t *testing.T) {
		q := openAt(t, filepath.Join(folder, "jobs.db"), nil)
		fillEverything(t, q)
		last := find(t, q, add(t, q, nil).ID)
		require.NoError(t, q.Compact(t.Context(), path))

		of := openAt(t, path, nil)
		require.Greater(t, find(t, of, add(t, of, nil).ID).Seq, last.Seq)
		again, err := of.Enqueue(t.Context(), &pawl.Envelope{Kind: "full", UniqueKey: "u"})
		require.NoError(t, err)
		require.True(t, again[0].Existing, "its unique key is taken")
		add(t, of, func(e *pawl.Envelope) { e.Kind, e.Queue, e.IdempotencyKey = "done", "settled", "done" })
		require.Empty(t, fetch(t, of, 9, "settled"), "its effect has taken place")
		require.Len(t, fetch(t, of, 9, "keyed"), 1, "one of two of a key")
		add(t, of, func(e *pawl.Envelope) { e.Queue = "paused" })
		require.Empty(t, fetch(t, of, 9, "paused"))
		pass(time.Hour)
		synctest.Wait()
		require.Equal(t, pawl.Counts{Ready: 1, Delayed: 1, Dead: 1}, countsOf(t, of, "settled"), "what was due came back, what was retained is gone")
		checkNow(t, of)
	})
}

// The compacted file has no free pages of an old backlog.
func TestCompactIsSmaller(t *testing.T) {
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	for range 20 {
		jobs := make([]*pawl.Envelope, 100)
		for i := range jobs {
			jobs[i] = &pawl.Envelope{Kind: "k", Payload: make([]byte, 3000)}
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
	}
	atOnce(t, fetch(t, q, 2000), func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) })
	left := add(t, q, nil)
	path := filepath.Join(memoryFolder(t), "compact.db")
	require.NoError(t, q.Compact(t.Context(), path))
	old, err := os.Stat(q.path)
	require.NoError(t, err)
	compact, err := os.Stat(path)
	require.NoError(t, err)
	require.Greater(t, old.Size(), int64(6<<20))
	require.Less(t, compact.Size(), int64(200<<10))
	require.NotNil(t, find(t, openAt(t, path, nil), left.ID))
}

// Many buckets of the app do not make one endless transaction: a compaction checks its context
// between them.
func TestCompactManyBuckets(t *testing.T) {
	race.SkipLone(t)
	q := openAt(t, filepath.Join(memoryFolder(t), "jobs.db"), nil)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		app, err := tx.CreateBucket([]byte("app"))
		require.NoError(t, err)
		for n := range 6 * compactBytes / (20 << 10) {
			_, err := app.CreateBucket(fmt.Appendf(nil, "%05d%20480s", n, ""))
			require.NoError(t, err)
		}
		return nil
	}))
	folder := memoryFolder(t)
	require.ErrorIs(t, q.Compact(&endsAfter{context.Background(), 3}, filepath.Join(folder, "compact.db")), context.Canceled)
	require.Empty(t, snapshot(t, folder))
}

// A damaged row is copied unchanged, so that a compaction loses nothing and the damage stays
// visible.
func TestCompactKeepsDamagedRows(t *testing.T) {
	s := newSample(t)
	path := s.write(t,
		damage{bucketJobs, rowOf("ready"), changes[0].change}, damage{bucketReady, rowOf("neighbour"), changes[3].change},
		damage{bucketPayloads, rowOf("large"), changes[1].change}, damage{bucketFailed, rowOf("dead"), changes[4].change})
	r, err := OpenReader(path)
	require.NoError(t, err)
	compact := filepath.Join(memoryFolder(t), "compact.db")
	require.NoError(t, r.Compact(t.Context(), compact))
	require.NoError(t, r.Close())
	require.Equal(t, everything(t, path), everything(t, compact))
}

// A file with damaged pages is not compacted: no incomplete file is left that looks complete,
// and none grows without end.
func TestCompactOfDamagedPages(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, nil)
	fill(t, q, 300, "q") // enough for a tree of pages
	require.NoError(t, q.Close())
	size := uint64(os.Getpagesize())
	var root, jobs uint64
	withBolt(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketRoot)
		root, jobs = uint64(b.Root()), uint64(b.Bucket(bucketJobs).Root())
		return nil
	})
	sound, err := os.ReadFile(path)
	require.NoError(t, err)
	page := func(b []byte, n uint64) []byte { return b[n*size : (n+1)*size] }
	const head, element = 16, 16 // bytes; an element of a branch page ends in a page number
	for _, test := range []struct {
		rule   string
		damage func(b []byte)
	}{
		{"a page of zeros", func(b []byte) { clear(page(b, jobs)) }},
		{"a page of another number", func(b []byte) { copy(page(b, jobs), page(b, root)) }},
		{"a bucket inside itself", func(b []byte) {
			p := page(b, root)
			at := bytes.Index(p, binary.NativeEndian.AppendUint64([]byte("jobs"), jobs))
			require.Positive(t, at)
			binary.NativeEndian.PutUint64(p[at+len("jobs"):], root)
		}},
		{"a page that is there twice", func(b []byte) {
			p := page(b, jobs)
			copy(p[head+2*element-8:head+2*element], p[head+element-8:head+element])
		}},
		{"a page outside of the file", func(b []byte) {
			binary.NativeEndian.PutUint64(page(b, jobs)[head+element-8:], 1<<40)
		}},
	} {
		b := bytes.Clone(sound)
		test.damage(b)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, err := OpenReader(path)
		require.ErrorIs(t, err, pawl.ErrCorrupt, test.rule)

		// The damage happens while the file is open.
		require.NoError(t, os.WriteFile(path, sound, 0o600))
		r, err := OpenReader(path)
		require.NoError(t, err, test.rule)
		require.NoError(t, os.WriteFile(path, b, 0o600), test.rule)
		folder := memoryFolder(t)
		require.ErrorIs(t, r.Compact(t.Context(), filepath.Join(folder, "compact.db")), pawl.ErrCorrupt, test.rule)
		require.Empty(t, snapshot(t, folder), test.rule)
		require.NoError(t, r.Close())
	}
	require.NoError(t, os.WriteFile(path, sound, 0o600))
}
