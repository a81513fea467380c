package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// metaPage is a meta page as bbolt writes it.
func metaPage(m meta) []byte {
	b := make([]byte, metaEnd)
	binary.NativeEndian.PutUint32(b[metaAt:], metaMagic)
	binary.NativeEndian.PutUint32(b[metaAt+4:], metaVersion)
	binary.NativeEndian.PutUint32(b[metaPageSize:], m.pageSize)
	binary.NativeEndian.PutUint64(b[metaPages:], m.pages)
	binary.NativeEndian.PutUint64(b[metaTxid:], m.txid)
	sign(b)
	return b
}

// sign gives a meta page the checksum of what it says.
func sign(b []byte) {
	h := fnv.New64a()
	h.Write(b[metaAt:metaSum])
	binary.NativeEndian.PutUint64(b[metaSum:], h.Sum64())
}

// image is a file with the pages given at these offsets.
func image(size int, pages map[int][]byte) memoryFile {
	b := make([]byte, size)
	for at, page := range pages {
		copy(b[at:], page)
	}
	return memoryFile{bytes.NewReader(b)}
}

type memoryFile struct{ *bytes.Reader }

func (f memoryFile) Stat() (fs.FileInfo, error) { return sizeOf{size: f.Size()}, nil }

type sizeOf struct {
	fs.FileInfo
	size int64
}

func (s sizeOf) Size() int64 { return s.size }

func TestReadMeta(t *testing.T) {
	old := meta{pageSize: 4096, pages: 4, txid: 6}
	young := meta{pageSize: 4096, pages: 5, txid: 7}
	torn := func(m meta) []byte {
		b := metaPage(m)
		b[metaTxid] ^= 1
		return b
	}
	signed := func(m meta, change func(b []byte)) []byte {
		b := metaPage(m)
		change(b)
		sign(b)
		return b
	}
	for _, test := range []struct {
		rule  string
		pages map[int][]byte
		want  meta
		err   error
	}{
		{rule: "the newer one counts when it is the second", want: young,
			pages: map[int][]byte{0: metaPage(old), 4096: metaPage(young)}},
		{rule: "the newer one counts when it is the first", want: young,
			pages: map[int][]byte{0: metaPage(young), 4096: metaPage(old)}},
		{rule: "the second stands in for a torn first", want: old,
			pages: map[int][]byte{0: torn(young), 4096: metaPage(old)}},
		{rule: "the first stands in for a torn second", want: old,
			pages: map[int][]byte{0: metaPage(old), 4096: torn(young)}},
		{rule: "a first that is not there at all is replaced too", want: old,
			pages: map[int][]byte{4096: metaPage(old)}},
		{rule: "two torn ones leave nothing", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: torn(old), 4096: torn(young)}},
		{rule: "one torn one is a damaged file, not a foreign one", err: pawl.ErrCorrupt,
			pages: map[int][]byte{4096: torn(young)}},
		{rule: "no meta page is a foreign file", err: ErrNotQueue},
		{rule: "what looks like a meta page elsewhere is none", err: ErrNotQueue,
			pages: map[int][]byte{4096 + 512: metaPage(young)}},
		{rule: "nor is one at another page size than it says", err: ErrNotQueue,
			pages: map[int][]byte{8192: metaPage(young)}},
		{rule: "a payload that looks like a meta page does not count", want: young,
			pages: map[int][]byte{0: metaPage(old), 4096: metaPage(young),
				8192: metaPage(meta{pageSize: 8192, pages: 1 << 30, txid: 99})}},
		{rule: "two that disagree about the page size are damage", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: metaPage(old), 4096: metaPage(meta{pageSize: 8192, pages: 4, txid: 7})}},
		{rule: "another version of bbolt is not guessed at", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: signed(old, func(b []byte) { b[metaAt+4]++ })}},
		{rule: "a page size of nothing is damage", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: metaPage(meta{pageSize: 0, pages: 4})}},
		{rule: "a page size below 1 KiB is damage", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: metaPage(meta{pageSize: 512, pages: 4})}},
		{rule: "a page size beyond 16 MiB is damage", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: metaPage(meta{pageSize: 1 << 25, pages: 4})}},
		{rule: "a page size that is no power of two is damage", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: metaPage(meta{pageSize: 5000, pages: 4})}},
		{rule: "a number of pages that overflows is damage", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: metaPage(meta{pageSize: 4096, pages: 1<<52 + 1})}},
		{rule: "the largest number of pages is damage", err: pawl.ErrCorrupt,
			pages: map[int][]byte{0: metaPage(meta{pageSize: 4096, pages: 1<<64 - 1})}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m, err := readMeta(image(64<<10, test.pages))
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, m)
		})
	}
}

func TestReadMetaOfEveryPageSize(t *testing.T) {
	for size := 1 << 10; size <= 1<<16; size *= 2 {
		m := meta{pageSize: uint32(size), pages: 4, txid: 2}
		newer := m
		newer.txid++
		found, err := readMeta(image(4*size, map[int][]byte{0: metaPage(m), size: metaPage(newer)}))
		require.NoError(t, err)
		require.Equal(t, newer, found)
		found, err = readMeta(image(4*size, map[int][]byte{size: metaPage(m)}))
		require.NoError(t, err)
		require.Equal(t, m, found)

		// As bbolt writes it.
		path := filepath.Join(t.TempDir(), "pages.db")
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: size, Timeout: time.Second})
		require.NoError(t, err)
		require.NoError(t, db.Update(func(*bbolt.Tx) error { return nil }))
		require.NoError(t, db.Close())
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, inspected(f))
		found, err = readMeta(f)
		require.NoError(t, err)
		require.Equal(t, uint32(size), found.pageSize)
		require.Equal(t, uint64(2), found.txid)
	}
}

// A power cut may tear the meta page that was being written. The other one leads to
// the state before that commit, which is whole.
func TestTornMetaPageOfAQueue(t *testing.T) {
	sound := soundFile(t)
	m, err := readMeta(bytes.NewReader(sound))
	require.NoError(t, err)
	for _, torn := range []uint32{0, m.pageSize} {
		b := bytes.Clone(sound)
		b[torn+metaTxid] ^= 1
		path := filepath.Join(t.TempDir(), "jobs.db")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		q := openAt(t, path, nil)
		require.Equal(t, pawl.Counts{Ready: 2, Delayed: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
		add(t, q, nil)
	}
}

func TestInspectFileWantsEveryPage(t *testing.T) {
	pages := map[int][]byte{0: metaPage(meta{pageSize: 4096, pages: 5, txid: 6}), 4096: metaPage(meta{pageSize: 4096, pages: 7, txid: 7})}
	require.NoError(t, inspected(image(7*4096, pages)))
	require.NoError(t, inspected(image(99*4096, pages)))
	require.ErrorIs(t, inspected(image(7*4096-1, pages)), pawl.ErrCorrupt)
	require.ErrorIs(t, inspected(image(5*4096, pages)), pawl.ErrCorrupt, "what the older one needs is not enough")
	pages[0] = metaPage(meta{pageSize: 4096, pages: 1 << 50 >> 12, txid: 8})
	require.ErrorIs(t, inspected(image(7*4096, pages)), pawl.ErrCorrupt)
}

// growingFile is a file at which a queue works: while its meta pages are read, it
// grows and gets a meta page that says so.
type growingFile struct {
	memoryFile
	next memoryFile
}

func (f *growingFile) ReadAt(b []byte, at int64) (int, error) {
	f.memoryFile = f.next
	return f.memoryFile.ReadAt(b, at)
}

func TestInspectFileWhileItGrows(t *testing.T) {
	f := &growingFile{
		image(4*4096, map[int][]byte{0: metaPage(meta{pageSize: 4096, pages: 4, txid: 6})}),
		image(9*4096, map[int][]byte{0: metaPage(meta{pageSize: 4096, pages: 9, txid: 8})}),
	}
	require.NoError(t, inspected(f))
}

var errDisk = errors.New("disk error")

type brokenFile struct{ memoryFile }

func (brokenFile) ReadAt([]byte, int64) (int, error) { return 0, errDisk }

func TestInspectFilePassesOnReadErrors(t *testing.T) {
	require.ErrorIs(t, inspected(brokenFile{image(4096, nil)}), errDisk)
}

// FuzzReadMeta looks for a file that makes the preflight panic, or that it lets
// pass and that is shorter than it says.
func FuzzReadMeta(f *testing.F) {
	m := meta{pageSize: 1024, pages: 4, txid: 2}
	f.Add([]byte{}, false)
	f.Add(metaPage(m), true)
	for _, pages := range []map[int][]byte{
		{0: metaPage(m)}, {1024: metaPage(m)}, {0: metaPage(m), 1024: metaPage(m)},
	} {
		b, err := io.ReadAll(image(1024+metaEnd, pages))
		require.NoError(f, err)
		f.Add(b, false)
		f.Add(b, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, signed bool) {
		if signed { // or nearly all inputs end at the checksum
			for at := 0; at+metaEnd <= len(b); at = max(2*at, 1024) {
				sign(b[at : at+metaEnd])
			}
		}
		file := memoryFile{bytes.NewReader(b)}
		found, err := readMeta(file)
		if err != nil {
			require.True(t, errors.Is(err, pawl.ErrCorrupt) || errors.Is(err, ErrNotQueue), "%v", err)
			require.Error(t, inspected(file))
			return
		}
		require.GreaterOrEqual(t, found.pageSize, uint32(1024))
		if inspected(file) == nil {
			require.LessOrEqual(t, found.pages, uint64(len(b))/uint64(found.pageSize))
		}
	})
}

// inspected is the error of inspectFile.
func inspected(f interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}) error {
	_, err := inspectFile(f)
	return err
}
