package bolt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/withid"
)

func statsOf(t *testing.T, r *reader) pawl.Stats {
	t.Helper()
	stats, err := r.Stats(t.Context())
	require.NoError(t, err)
	return stats
}

// readerStats opens a closed file for reading and returns its Stats.
func readerStats(t *testing.T, path string) pawl.Stats {
	t.Helper()
	r, err := OpenReader(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	return statsOf(t, &r.reader)
}

// The free bytes of a file grow when a backlog is drained, the file does not shrink, and new
// jobs use the free bytes before the file grows.
func TestFreeSpace(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q := openAt(t, path, nil)
	empty := statsOf(t, &q.reader)
	require.GreaterOrEqual(t, empty.Free, int64(0), "a queue knows it")
	batch := func() {
		jobs := make([]*pawl.Envelope, 200)
		for i := range jobs {
			jobs[i] = &pawl.Envelope{Kind: "k", Payload: make([]byte, 5000)}
		}
		require.NoError(t, withid.Enqueue(t.Context(), q, jobs...))
	}
	batch()
	full := statsOf(t, &q.reader)
	require.Greater(t, full.Size-full.Free, empty.Size-empty.Free+200*5000, "what is not free is in use")
	atOnce(t, fetch(t, q, 200), func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) })
	drained := statsOf(t, &q.reader)
	require.GreaterOrEqual(t, drained.Size, full.Size)
	require.Greater(t, drained.Free, full.Free+200*5000)
	require.Less(t, drained.Size-drained.Free, int64(200<<10))
	batch()
	again := statsOf(t, &q.reader)
	require.Less(t, again.Size, full.Size+full.Size/2)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.LessOrEqual(t, again.Size, info.Size())
}

// A reader knows the free bytes of a file that was closed cleanly, as the queue did, and
// reports -1 for a file that was not.
func TestFreeSpaceToRead(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.GreaterOrEqual(t, readerStats(t, path).Free, int64(0), "right after it was made")

	q, err = Open(path, quiet())
	require.NoError(t, err)
	for range 20 {
		fill(t, q, 100, "q")
	}
	for range 20 {
		atOnce(t, fetch(t, q, 100, "q"), func(l *pawl.Lease) error { return q.Settle(t.Context(), l.Ack()) })
	}
	last := statsOf(t, &q.reader)
	crashed := filepath.Join(memoryFolder(t), "crashed.db")
	b, err := os.ReadFile(path) // nothing writes now: this is what a crash leaves
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(crashed, b, 0o600))
	require.NoError(t, q.Close())

	closed := readerStats(t, path)
	require.InDelta(t, last.Free, closed.Free, 8*float64(os.Getpagesize()), "but for the list itself")
	require.Equal(t, int64(-1), readerStats(t, crashed).Free)
	require.Equal(t, last.Queues, readerStats(t, crashed).Queues)
	openAt(t, crashed, nil)
}

// A damaged list of free pages costs a reader only that figure.
func TestFreeSpaceOfADamagedList(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	require.NoError(t, os.WriteFile(path, soundFile(t), 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	m, err := pages.Newest(f)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 16), int64(m.Freelist)*int64(m.PageSize)) // its header
	require.NoError(t, err)
	require.NoError(t, f.Close())
	stats := readerStats(t, path)
	require.Equal(t, int64(-1), stats.Free)
	require.Equal(t, 1, stats.Queues[0].Dead)
}

// A compacted file knows its free bytes, and has almost none.
func TestFreeSpaceOfACompactedFile(t *testing.T) {
	q := openTest(t, nil)
	fill(t, q, 300, "q")
	path := filepath.Join(memoryFolder(t), "compact.db")
	require.NoError(t, q.Compact(t.Context(), path))
	stats := readerStats(t, path)
	require.GreaterOrEqual(t, stats.Free, int64(0))
	require.Less(t, stats.Free, stats.Size/4)
}

// An app's own database reports them as well.
func TestFreeSpaceOver(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(memoryFolder(t), "app.db"), 0o600, nil)
	require.NoError(t, err)
	defer db.Close()
	q, err := Over(db, quiet())
	require.NoError(t, err)
	defer q.Close()
	fill(t, q, 10, "q")
	require.Positive(t, statsOf(t, &q.reader).Free)
}
