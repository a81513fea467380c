package bolt

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/race"
	"github.com/gopawl/pawl/internal/withid"
)

// Rule: a page that bbolt cannot read is an error, which asks whether the file was copied from a
// running app. The lock is released, which bbolt does not do when it panics.
func TestDamagedPageAtOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the lock stays until the process ends")
	}
	const pageFlags, metaRoot, metaFreelist = 8, metaAt + 16, metaAt + 32 // as in bbolt
	sound := soundFile(t)
	m, err := pages.Newest(bytes.NewReader(sound))
	require.NoError(t, err)
	newest := sound[uint64(m.PageSize)*(m.TxID%2):]
	for _, test := range []struct {
		page       string
		at         int
		readerFine bool // readers need no list of free pages
	}{
		{"root", metaRoot, false},
		{"list of free pages", metaFreelist, true},
	} {
		t.Run(test.page, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			page := binary.NativeEndian.Uint64(newest[test.at:])
			b := bytes.Clone(sound)
			b[page*uint64(m.PageSize)+pageFlags] ^= 0xff
			require.NoError(t, os.WriteFile(path, b, 0o600))
			for _, o := range openers {
				err := o.open(path)
				if o.name == "OpenReader" && test.readerFine {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, pawl.ErrCorrupt, o.name)
				require.ErrorContains(t, err, "the pages of the file are damaged", o.name)
				require.ErrorContains(t, err, "copied from a running app", o.name)
				lockFree(t, path)
			}
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(b, now), "the file was changed")
		})
	}
}

// overlong makes a file in which a job's record is far behind the first page of its bucket. The
// function makes the record extend past the end of the file, so that reading it is a memory
// fault.
func overlong(t *testing.T) (path string, id pawl.ID, damage func()) {
	t.Helper()
	path = filepath.Join(memoryFolder(t), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	for range 400 {
		add(t, q, func(e *pawl.Envelope) { e.Queue = "others" }) // Open reads the first page of a bucket
	}
	id = add(t, q, nil).ID
	require.NoError(t, q.Close())
	return path, id, func() {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		defer f.Close()
		sizes := valueSizes(t, f, id)
		require.NotEmpty(t, sizes, "the record was not found")
		for _, at := range sizes {
			_, err := f.WriteAt(binary.NativeEndian.AppendUint32(nil, 1<<31), at)
			require.NoError(t, err)
		}
	}
}

// valueSizes finds where the file stores the size of a job's record.
func valueSizes(t *testing.T, f *os.File, id pawl.ID) (found []int64) {
	t.Helper()
	m, err := pages.Newest(f)
	require.NoError(t, err)
	b := make([]byte, m.Pages*uint64(m.PageSize)) // the file may be much larger
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	// In a leaf page of bbolt 1.5.0 the header has 16 bytes, with the number of elements at 10.
	// An element has flags, the distance to its key, and the sizes of key and value, each in 4
	// bytes.
	for page := uint64(2); page < m.Pages; page++ {
		at := int(page) * int(m.PageSize)
		for n := range int(binary.NativeEndian.Uint16(b[at+10:])) {
			element := at + 16 + 16*n
			if element+16 > len(b) {
				break
			}
			key := element + int(binary.NativeEndian.Uint32(b[element+4:]))
			size := int(binary.NativeEndian.Uint32(b[element+8:]))
			value := int(binary.NativeEndian.Uint32(b[element+12:]))
			if size == len(id) && key+size+value <= len(b) && bytes.Equal(b[key:key+size], id[:]) && value > 50 {
				found = append(found, int64(element+12))
			}
		}
	}
	return found
}

// Rule: Open and OpenReader check every page, whatever the size of the file and however it was
// closed. A damaged leaf returns ErrCorrupt, and nothing maps the file.
func TestDamagedLeafOfALargeFile(t *testing.T) {
	race.SkipLone(t)
	path, _, damage := overlong(t)
	require.NoError(t, os.Truncate(path, 1<<30)) // sparse
	for _, o := range openers {
		require.NoError(t, o.open(path), o.name)
	}
	damage()
	for _, o := range openers {
		err := o.open(path)
		require.ErrorIs(t, err, pawl.ErrCorrupt, o.name)
		require.ErrorContains(t, err, "the pages of the file are damaged", o.name)
		lockFree(t, path)
	}
}

// A memory fault in a read or a write is an ordinary error. It ends neither the process nor a
// goroutine that a caller waits for.
func TestFaultUnderDamagedPages(t *testing.T) {
	t.Run("while a job is fetched", func(t *testing.T) {
		path, _, damage := overlong(t)
		q, err := Open(path, quiet())
		require.NoError(t, err)
		damage()
		_, err = q.Fetch(t.Context(), pawl.Request{Max: 1})
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), pawl.ErrPoisoned)
		require.NoError(t, q.Close())
		lockFree(t, path)
	})
	t.Run("while a job is looked at", func(t *testing.T) {
		path, id, damage := overlong(t)
		r, err := OpenReader(path)
		require.NoError(t, err)
		damage()
		_, err = r.Job(t.Context(), id)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
		for e, err := range r.Jobs(t.Context(), pawl.Filter{Queue: pawl.DefaultQueue}) {
			require.Nil(t, e)
			require.ErrorIs(t, err, pawl.ErrCorrupt)
		}
		stats, err := r.Stats(t.Context())
		require.NoError(t, err)
		require.Len(t, stats.Queues, 2)
		require.NoError(t, r.Close())
		lockFree(t, path)
	})
}
