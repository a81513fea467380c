package bolt

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/internal/withid"
)

func sizeAt(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// Rule: the room in the map costs no disk space. The file of an empty queue is small, and so is
// that of a thousand jobs.
func TestNewFileIsSmall(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, nil)
	require.Less(t, sizeAt(t, path), int64(256<<10))
	require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(1000, func(_ int, e *pawl.Envelope) { e.Payload = []byte("payload") })...))
	require.Less(t, sizeAt(t, path), int64(2<<20))
	require.NoError(t, q.Close())
	require.Less(t, sizeAt(t, path), int64(2<<20))
}

// Rule: the file grows in steps: by more than each commit needs, and by at most a megabyte or
// an eighth of its size, whichever is more.
func TestFileGrowsInSteps(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the file is as large as its map there")
	}
	const commits, payload = 100, 200 << 10
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, nil)
	was, steps := sizeAt(t, path), 0
	for range commits {
		add(t, q, func(e *pawl.Envelope) { e.Payload = bytes.Repeat([]byte("x"), payload) })
		var used int64
		require.NoError(t, q.db.View(func(tx *bbolt.Tx) error { used = tx.Size(); return nil }))
		size := sizeAt(t, path)
		require.GreaterOrEqual(t, size, used)
		require.LessOrEqual(t, size, used+max(used/8, 1<<20)+64<<10)
		if size != was {
			was, steps = size, steps+1
		}
	}
	require.Greater(t, was, int64(commits*payload))
	require.InDelta(t, 14, steps, 4, "a commit of 200 KiB rarely grows the file")
}

// Rule: a step is an eighth of the file, but at least one megabyte and at most 64.
func TestGrowBy(t *testing.T) {
	for _, test := range []struct{ size, want int64 }{
		{0, 1 << 20}, {8<<20 - 4096, 1 << 20}, {8 << 20, 1 << 20}, {16 << 20, 2 << 20}, {80 << 20, 10 << 20},
		{512<<20 - 32<<10, 64<<20 - 4<<10}, {512 << 20, 64 << 20}, {1 << 30, 64 << 20}, {100 << 30, 64 << 20},
	} {
		path := filepath.Join(t.TempDir(), "large.db")
		db, err := bbolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		page := db.Info().PageSize
		require.NoError(t, db.Close())
		if test.size > 0 { // both meta pages have the size, and nothing follows the first pages
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, at := range []int{0, page} {
				binary.NativeEndian.PutUint64(b[at+metaPages:], uint64(test.size)/uint64(page))
				sign(b[at:])
			}
			require.NoError(t, os.WriteFile(path, b, 0o600))
		}
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{InitialMmapSize: 1 << 20, NoGrowSync: true})
		require.NoError(t, err)
		tx, err := db.Begin(true)
		require.NoError(t, err)
		dbfile.GrowBy(tx)
		require.EqualValues(t, test.want, db.AllocSize, "a file of %d bytes", test.size)
		require.NoError(t, tx.Rollback())
		require.NoError(t, db.Close())
	}
}

// Rule: the map lets a file double without waiting for its readers, and has at least a
// gigabyte. If a map enlarges the file, or there is no room for it, bbolt decides its size.
func TestMapSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	if runtime.GOOS == "windows" || strconv.IntSize < 64 {
		require.Zero(t, dbfile.MapSize(path))
		return
	}
	require.Equal(t, 1<<30, dbfile.MapSize(path), "no file")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	for _, test := range []struct {
		size, want int64
	}{
		{0, 1 << 30}, {1 << 20, 1 << 30}, {512 << 20, 1 << 30}, {512<<20 + 1, 1<<30 + 2}, {3 << 30, 6 << 30},
	} {
		require.NoError(t, f.Truncate(test.size)) // without allocating disk blocks
		require.EqualValues(t, test.want, dbfile.MapSize(path), "a file of %d bytes", test.size)
	}
}

// Rule: the app decides how its own database grows.
func TestGrowthOfAnAppsDatabaseIsLeftAlone(t *testing.T) {
	db := openApp(t)
	for _, size := range []int{db.AllocSize, 1 << 16} {
		db.AllocSize = size
		q := openOver(t, db, nil)
		add(t, q, nil)
		require.NoError(t, q.Settle(t.Context(), leaseOne(t, q).Ack()))
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error { return appPut(tx, "row") }))
		require.Equal(t, size, db.AllocSize)
		require.NoError(t, q.Close())
		require.Equal(t, size, db.AllocSize)
	}
}
