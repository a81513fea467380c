package bolt

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/withid"
)

// killedFile makes the file of a queue whose process was killed, with jobs in it. It has the
// requested size, as if most of it were free.
func killedFile(t *testing.T, size int64) string {
	t.Helper()
	folder := memoryFolder(t)
	path := filepath.Join(folder, "living.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	require.NoError(t, withid.Enqueue(t.Context(), q, batchOf(200, func(int, *pawl.Envelope) {})...))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, q.Close())
	path = filepath.Join(folder, "killed.db")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.NoError(t, os.Truncate(path, size))
	m, err := pages.Newest(bytes.NewReader(b))
	require.NoError(t, err)
	require.EqualValues(t, uint64(1<<64-1), m.Freelist, "a queue at work writes no list of free pages")
	return path
}

// requireNoReader fails if a goroutine reads a file ahead.
func requireNoReader(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	require.False(t, strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "dbfile.readAhead.func"), "somebody reads on")
}

// Rule: Open reads the file of a killed process ahead, but not after it returns, with an error
// or without. The file is so large that reading it takes longer than opening it.
func TestNobodyReadsAheadAfterOpen(t *testing.T) {
	const size = 512 << 20
	for _, test := range []struct {
		rule   string
		change func(t *testing.T, path string)
		want   error
	}{
		{"a whole file", nil, nil},
		{"locked by another", func(t *testing.T, path string) {
			holder, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, holder.Close()) })
		}, ErrLocked},
		{"of another program", func(t *testing.T, path string) {
			change := func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketRoot) }
			db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
			require.NoError(t, err)
			require.NoError(t, db.Update(change))
			require.NoError(t, db.Close())
		}, ErrNotQueue},
		{"cut", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 3*4096)) }, pawl.ErrCorrupt},
	} {
		t.Run(test.rule, func(t *testing.T) {
			path := killedFile(t, size)
			if test.change != nil {
				test.change(t, path)
			}
			o := quiet()
			o.LockTimeout = 1
			q, err := Open(path, o)
			requireNoReader(t)
			require.ErrorIs(t, err, test.want)
			if err == nil {
				require.Equal(t, 200, countsOf(t, q, pawl.DefaultQueue).Ready)
				require.NoError(t, q.Close())
				checkFile(t, path)
			}
		})
	}
}

// Rule: a file that is truncated after its used part while it is opened still opens.
func TestFileIsCutWhileItIsReadAhead(t *testing.T) {
	path := killedFile(t, 8<<20)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	m, err := pages.Newest(f)
	require.NoError(t, err)
	var opened atomic.Bool
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for !opened.Load() {
			if err := f.Truncate(int64(m.Pages) * int64(m.PageSize)); err != nil {
				t.Error(err)
			}
		}
	})
	q := openAt(t, path, nil)
	opened.Store(true)
	cutting.Wait()
	require.Equal(t, 200, countsOf(t, q, pawl.DefaultQueue).Ready)
	add(t, q, nil)
}

// Rule: a really killed process behaves like the simulated one above.
func TestFileOfAKilledProcessIsReadAhead(t *testing.T) {
	path := filepath.Join(memoryFolder(t), "jobs.db")
	c := kills.Start(t, "hold", path)
	require.Equal(t, "open", c.Line(t))
	o := quiet()
	o.LockTimeout = 1
	_, err := Open(path, o)
	require.ErrorIs(t, err, ErrLocked)
	requireNoReader(t)
	c.Kill()
	c.Rest()
	openAt(t, path, nil)
	requireNoReader(t)
}
