package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
)

// A file that is not a damaged queue is recognized, and no new file is made of it.
func TestSalvageRefuses(t *testing.T) {
	sound := soundFile(t)
	random := make([]byte, 64<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	write := func(b []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, b, 0o600)) }
	}
	format := func(version uint32) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			write(sound)(t, path)
			withBolt(t, path, func(tx *bbolt.Tx) error { return putFormat(tx.Bucket(bucketRoot), version) })
		}
	}
	for _, test := range []struct {
		rule string
		make func(t *testing.T, path string)
		want error
		says string
	}{
		{"a folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, ErrNotQueue, "it is a folder"},
		{"no file", func(*testing.T, string) {}, fs.ErrNotExist, "no such file"},
		{"an empty file", write(nil), ErrNotQueue, "the file is empty"},
		{"a text", write(bytes.Repeat([]byte("jobs: 1\n"), 9999)), ErrNotQueue, "no bbolt file; was another path meant?"},
		{"random bytes", write(random), ErrNotQueue, "no bbolt file"},
		{"a bbolt file of another program", func(t *testing.T, path string) {
			withBolt(t, path, func(tx *bbolt.Tx) error {
				_, err := tx.CreateBucket([]byte("users"))
				return err
			})
		}, ErrNotQueue, "a bbolt file of another program"},
		{"a bbolt file of another program with a damaged page", damagedForeignFile, pawl.ErrCorrupt, "nothing of a queue was found"},
		{"a newer format", format(formatVersion + 1), pawl.ErrNewerFormat, "use the newer build"},
		{"an older format", format(formatVersion - 1), ErrOlderFormat, "restore a backup"},
		{"a file of which no page is left", write(append(bytes.Clone(sound[:200]), make([]byte, 50_000)...)), pawl.ErrCorrupt, "nothing of a queue was found"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folder := t.TempDir()
			from := filepath.Join(folder, "jobs.db")
			test.make(t, from)
			before := snapshot(t, folder)
			_, err := Salvage(t.Context(), from, filepath.Join(folder, "saved.db"))
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, from, "the error names the file")
			require.Equal(t, before, snapshot(t, folder), "something was made or changed")
			if info, err := os.Stat(from); err == nil && info.Mode().IsRegular() {
				lockFree(t, from)
			}
		})
	}
}

// An existing file is not overwritten, not even by its own salvage.
func TestSalvageOverwritesNothing(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "jobs.db"), filepath.Join(folder, "there")
	require.NoError(t, os.WriteFile(from, soundFile(t), 0o600))
	require.NoError(t, os.WriteFile(to, []byte("text"), 0o600))
	before := snapshot(t, folder)
	for _, path := range []string{from, to} {
		_, err := Salvage(t.Context(), from, path)
		require.ErrorIs(t, err, fs.ErrExist)
	}
	_, err := Salvage(t.Context(), from, "")
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.Equal(t, before, snapshot(t, folder))
}

// A context that ends leaves no file.
func TestSalvageEnds(t *testing.T) {
	folder := t.TempDir()
	from := filepath.Join(folder, "jobs.db")
	require.NoError(t, os.WriteFile(from, soundFile(t), 0o600))
	before := snapshot(t, folder)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Salvage(ended, from, filepath.Join(folder, "saved.db"))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, snapshot(t, folder))
}

// An active queue has its file exclusively. Readers are allowed.
func TestSalvageOfALockedFile(t *testing.T) {
	if !dbfile.CanLock || runtime.GOOS == "windows" {
		t.Skip("the system has no locks that can be asked for")
	}
	folder := t.TempDir()
	from := filepath.Join(folder, "jobs.db")
	q := openAt(t, from, nil)
	add(t, q, nil)
	_, err := Salvage(t.Context(), from, filepath.Join(folder, "saved.db"))
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, "stop it, or salvage a copy")
	require.NoError(t, q.Close())
	r, err := OpenReader(from)
	require.NoError(t, err)
	defer r.Close()
	_, err = Salvage(t.Context(), from, filepath.Join(folder, "saved.db"))
	require.NoError(t, err)
}

// An effect that is done stays done and does not take place again, even if its row is lost and
// only the row of its expiry is left.
func TestSalvageKeepsWhatIsDone(t *testing.T) {
	for _, lost := range []bool{false, true} {
		folder := t.TempDir()
		from, to := filepath.Join(folder, "jobs.db"), filepath.Join(folder, "saved.db")
		q, err := Open(from, quiet())
		require.NoError(t, err)
		once := func(e *pawl.Envelope) { e.IdempotencyKey = "invoice 17" }
		add(t, q, once)
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
		require.NoError(t, q.Close())
		if lost {
			withBolt(t, from, func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucketRoot).Bucket(bucketEffects)
				k, v := b.Cursor().First()
				v = bytes.Clone(v)
				v[0]++
				return b.Put(k, v)
			})
		}
		result, err := Salvage(t.Context(), from, to)
		require.NoError(t, err)
		require.Equal(t, lost, result.Lost["effects"] == 1)
		require.Equal(t, lost, !result.Sound())
		saved := openAt(t, to, nil)
		add(t, saved, once)
		require.Empty(t, fetch(t, saved, 1))
		require.Zero(t, countsOf(t, saved, pawl.DefaultQueue).Ready, "it was skipped")
	}
}

// A sequence has no checksum. A damaged one must not leave the new queue without numbers, or
// below numbers that are taken.
func TestSalvageRepairsSequences(t *testing.T) {
	for _, sequence := range []uint64{0, 1<<64 - 1} {
		folder := t.TempDir()
		from, to := filepath.Join(folder, "jobs.db"), filepath.Join(folder, "saved.db")
		q, err := Open(from, quiet())
		require.NoError(t, err)
		for range 5 {
			add(t, q, nil)
		}
		last := find(t, q, add(t, q, nil).ID)
		require.NoError(t, q.Close())
		withBolt(t, from, func(tx *bbolt.Tx) error {
			root := tx.Bucket(bucketRoot)
			return root.Bucket(bucketJobs).SetSequence(sequence)
		})
		_, err = Salvage(t.Context(), from, to)
		require.NoError(t, err)
		saved := openAt(t, to, nil)
		require.Equal(t, last.Seq+1, find(t, saved, add(t, saved, nil).ID).Seq)
	}
}

// Each lost row of a queue is restored, so that each job is in its original queue.
func TestSalvageRepairsQueues(t *testing.T) {
	for rule, lose := range map[string]func(b *bbolt.Bucket) error{
		"the row of the number": func(b *bbolt.Bucket) error { return b.Put(numberKey(nil, 1), []byte("spoilt")) },
		"the row of the name":   func(b *bbolt.Bucket) error { return b.Put(nameKey(nil, "email"), []byte("spoilt")) },
		"both rows": func(b *bbolt.Bucket) error {
			if err := b.Put(numberKey(nil, 1), []byte("spoilt")); err != nil {
				return err
			}
			return b.Put(nameKey(nil, "email"), binary.BigEndian.AppendUint64(nil, 7))
		},
	} {
		t.Run(rule, func(t *testing.T) {
			from := filepath.Join(t.TempDir(), "jobs.db")
			q, err := Open(from, quiet())
			require.NoError(t, err)
			for _, queue := range []string{"email", "reports"} {
				for range 3 {
					add(t, q, func(e *pawl.Envelope) { e.Queue = queue })
				}
			}
			require.NoError(t, q.Close())
			withBolt(t, from, func(tx *bbolt.Tx) error { return lose(tx.Bucket(bucketRoot).Bucket(bucketQueues)) })
			to, result := salvageTo(t, from)
			require.Equal(t, 6, result.Kept, "%+v", result)
			require.False(t, result.Sound())
			saved := openAt(t, to, nil)
			for _, queue := range []string{"email", "reports"} {
				require.Equal(t, pawl.Counts{Ready: 3}, countsOf(t, saved, queue))
				require.Len(t, fetch(t, saved, 5, queue), 3)
			}
		})
	}
}

// damagedForeignFile makes a bbolt file without a queue. Of its buckets, some are on a page that is overwritten.
func damagedForeignFile(t *testing.T, path string) {
	withBolt(t, path, func(tx *bbolt.Tx) (err error) {
		for n := 0; n < 300 && err == nil; n++ {
			var b *bbolt.Bucket
			if b, err = tx.CreateBucket(fmt.Appendf(nil, "users-%03d", n)); err == nil {
				err = b.Put([]byte("name"), []byte("somebody"))
			}
		}
		return err
	})
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	size, damaged := os.Getpagesize(), 0
	for page := range slices.Chunk(b[2*size:], size) {
		if bytes.Contains(page, []byte("users-299")) {
			clear(page)
			damaged++
		}
	}
	require.Equal(t, 1, damaged)
	require.NoError(t, os.WriteFile(path, b, 0o600))
}
