package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// metaPage is a meta page as bbolt writes it.
func metaPage(m Meta) []byte {
	b := make([]byte, metaEnd)
	binary.NativeEndian.PutUint32(b[metaAt:], metaMagic)
	binary.NativeEndian.PutUint32(b[metaAt+4:], metaVersion)
	binary.NativeEndian.PutUint32(b[metaPageSize:], m.PageSize)
	binary.NativeEndian.PutUint64(b[metaPages:], m.Pages)
	binary.NativeEndian.PutUint64(b[metaTxid:], m.TxID)
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
func image(size int, pages map[int][]byte) *bytes.Reader {
	b := make([]byte, size)
	for at, page := range pages {
		copy(b[at:], page)
	}
	return bytes.NewReader(b)
}

func TestNewestMeta(t *testing.T) {
	old := Meta{PageSize: 4096, Pages: 4, TxID: 6}
	young := Meta{PageSize: 4096, Pages: 5, TxID: 7}
	torn := func(m Meta) []byte {
		b := metaPage(m)
		b[metaTxid] ^= 1
		return b
	}
	signed := func(m Meta, change func(b []byte)) []byte {
		b := metaPage(m)
		change(b)
		sign(b)
		return b
	}
	for _, test := range []struct {
		rule  string
		pages map[int][]byte
		want  Meta
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
		{rule: "two torn ones leave nothing", err: ErrDamaged,
			pages: map[int][]byte{0: torn(old), 4096: torn(young)}},
		{rule: "one torn one is a damaged file, not a foreign one", err: ErrDamaged,
			pages: map[int][]byte{4096: torn(young)}},
		{rule: "no meta page is a foreign file", err: ErrForeign},
		{rule: "what looks like a meta page elsewhere is none", err: ErrForeign,
			pages: map[int][]byte{4096 + 512: metaPage(young)}},
		{rule: "one at another page size than it says is damage", err: ErrDamaged,
			pages: map[int][]byte{8192: metaPage(young)}},
		{rule: "a payload that looks like a meta page does not count", want: young,
			pages: map[int][]byte{0: metaPage(old), 4096: metaPage(young),
				8192: metaPage(Meta{PageSize: 8192, Pages: 1 << 30, TxID: 99})}},
		{rule: "two that disagree about the page size are damage", err: ErrDamaged,
			pages: map[int][]byte{0: metaPage(old), 4096: metaPage(Meta{PageSize: 8192, Pages: 4, TxID: 7})}},
		{rule: "another version of bbolt is not guessed at", err: ErrDamaged,
			pages: map[int][]byte{0: signed(old, func(b []byte) { b[metaAt+4]++ })}},
		{rule: "a page size of nothing is damage", err: ErrDamaged,
			pages: map[int][]byte{0: metaPage(Meta{PageSize: 0, Pages: 4})}},
		{rule: "a page size below 1 KiB is damage", err: ErrDamaged,
			pages: map[int][]byte{0: metaPage(Meta{PageSize: 512, Pages: 4})}},
		{rule: "a page size beyond 16 MiB is damage", err: ErrDamaged,
			pages: map[int][]byte{0: metaPage(Meta{PageSize: 1 << 25, Pages: 4})}},
		{rule: "a page size that is no power of two is damage", err: ErrDamaged,
			pages: map[int][]byte{0: metaPage(Meta{PageSize: 5000, Pages: 4})}},
		{rule: "a number of pages that overflows is damage", err: ErrDamaged,
			pages: map[int][]byte{0: metaPage(Meta{PageSize: 4096, Pages: 1<<52 + 1})}},
		{rule: "the largest number of pages is damage", err: ErrDamaged,
			pages: map[int][]byte{0: metaPage(Meta{PageSize: 4096, Pages: 1<<64 - 1})}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			m, err := Newest(image(64<<10, test.pages))
			require.ErrorIs(t, err, test.err)
			m.Page = 0
			require.Equal(t, test.want, m)
		})
	}
}

func TestNewestMetaOfEveryPageSize(t *testing.T) {
	for size := 1 << 10; size <= 1<<16; size *= 2 {
		m := Meta{PageSize: uint32(size), Pages: 4, TxID: 2}
		newer := m
		newer.TxID++
		found, err := Newest(image(4*size, map[int][]byte{0: metaPage(m), size: metaPage(newer)}))
		require.NoError(t, err)
		newer.Page = 1
		require.Equal(t, newer, found)
		found, err = Newest(image(4*size, map[int][]byte{size: metaPage(m)}))
		require.NoError(t, err)
		m.Page = 1
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
		found, err = Newest(f)
		require.NoError(t, err)
		require.Equal(t, uint32(size), found.PageSize)
		require.Equal(t, uint64(2), found.TxID)
	}
}

var errDisk = errors.New("disk error")

type brokenFile struct{}

func (brokenFile) ReadAt([]byte, int64) (int, error) { return 0, errDisk }

// Rule: a disk that cannot be read is no damage.
func TestMetasPassOnReadErrors(t *testing.T) {
	_, err := Newest(brokenFile{})
	require.ErrorIs(t, err, errDisk)
	require.NotErrorIs(t, err, ErrDamaged)
}

// FuzzNewestMeta looks for a file that makes it panic, or that Check lets
// pass and that is shorter than it says.
func FuzzNewestMeta(f *testing.F) {
	m := Meta{PageSize: 1024, Pages: 4, TxID: 2}
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
		found, err := Newest(bytes.NewReader(b))
		if err != nil {
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrForeign), "%v", err)
			return
		}
		require.GreaterOrEqual(t, found.PageSize, uint32(1024))
		if Check(t.Context(), bytes.NewReader(b), int64(len(b))) == nil {
			require.LessOrEqual(t, found.Pages, uint64(len(b))/uint64(found.PageSize))
		}
	})
}
