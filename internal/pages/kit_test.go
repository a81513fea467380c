package pages_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/internal/pages"
)

// check is [pages.Check] of a file that is in memory.
func check(t testing.TB, file []byte) error {
	t.Helper()
	return pages.Check(t.Context(), bytes.NewReader(file), int64(len(file)))
}

// folder is a folder of the test, in memory where the system has that.
func folder(t testing.TB) string {
	t.Helper()
	if dir, err := os.MkdirTemp("/dev/shm", "pawl-pages-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// options are those of small files, which hold much structure in few bytes.
func options(freelist bool) *bbolt.Options {
	return &bbolt.Options{PageSize: 1024, NoSync: true, NoGrowSync: true, NoFreelistSync: !freelist, FreelistType: bbolt.FreelistMapType}
}

// sample makes a bbolt file of small pages with all that a file may have: trees of several
// levels, buckets in buckets, small ones that lie within their parent's page, an empty one,
// values that overflow, free pages, and a list of those when that is asked for.
func sample(t testing.TB, freelist bool) []byte {
	t.Helper()
	path := filepath.Join(folder(t), "sample.db")
	db, err := bbolt.Open(path, 0o600, options(freelist))
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		queue, err := tx.CreateBucket([]byte("queue"))
		require.NoError(t, err)
		for _, name := range []string{"empty", "jobs", "large", "ready", "small"} {
			_, err := queue.CreateBucket([]byte(name))
			require.NoError(t, err)
		}
		_, err = queue.Bucket([]byte("jobs")).CreateBucket([]byte("zz deep"))
		require.NoError(t, err)
		return queue.Bucket([]byte("small")).Put([]byte("key"), []byte("value"))
	}))
	for part := range 3 { // several commits leave free pages
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			queue := tx.Bucket([]byte("queue"))
			for i := range 100 {
				key := fmt.Appendf(nil, "key %03d", part*100+i)
				require.NoError(t, queue.Bucket([]byte("jobs")).Put(key, bytes.Repeat([]byte{byte(i)}, 60)))
				require.NoError(t, queue.Bucket([]byte("ready")).Put(key, []byte{byte(i)}))
				require.NoError(t, queue.Bucket([]byte("jobs")).Bucket([]byte("zz deep")).Put(key, nil))
			}
			return queue.Bucket([]byte("large")).Put([]byte{byte('a' + part)}, make([]byte, 1500*(part+1)))
		}))
	}
	require.NoError(t, db.Close())
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	return file
}

// layout is where the pages of a sample are.
type layout struct {
	meta  pages.Meta
	roots map[string]uint64 // of buckets, by name
}

func layoutOf(t testing.TB, file []byte) layout {
	t.Helper()
	path := filepath.Join(folder(t), "layout.db")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	meta, err := pages.Newest(bytes.NewReader(file))
	require.NoError(t, err)
	l := layout{meta, make(map[string]uint64)}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		queue := tx.Bucket([]byte("queue"))
		l.roots["queue"] = uint64(queue.Root())
		return queue.ForEachBucket(func(name []byte) error {
			l.roots[string(name)] = uint64(queue.Bucket(name).Root())
			return nil
		})
	}))
	return l
}

// leafBelow is a leaf page in the midst of a tree that begins with a branch page, and its
// parent.
func leafBelow(t testing.TB, file []byte, root uint64) (leaf, parent uint64) {
	t.Helper()
	for leaf = root; at(file, leaf)[8] == 1; {
		leaf, parent = get64(element(at(file, leaf), 1)[8:]), leaf
	}
	require.NotEqual(t, root, leaf)
	return leaf, parent
}

const pageSize = 1024

// at is the bytes of a page and what is behind it.
func at(file []byte, page uint64) []byte { return file[page*pageSize:] }

func get64(b []byte) uint64    { return binary.NativeEndian.Uint64(b) }
func put16(b []byte, n uint16) { binary.NativeEndian.PutUint16(b, n) }
func put32(b []byte, n uint32) { binary.NativeEndian.PutUint32(b, n) }
func put64(b []byte, n uint64) { binary.NativeEndian.PutUint64(b, n) }
func get32(b []byte) uint32    { return binary.NativeEndian.Uint32(b) }

// element is the 16 bytes of element i of a page.
func element(page []byte, i int) []byte { return page[16+16*i:] }

// setMeta changes a field of a meta page, 8 bytes at an offset, and its checksum.
func setMeta(page []byte, offset int, value uint64) {
	put64(page[offset:], value)
	h := fnv.New64a()
	h.Write(page[16:72])
	put64(page[72:], h.Sum64())
}

// exercise does with a file what a program does that trusts it: bbolt opens it, reads all of
// it, checks it, changes it, and empties it. It returns the panic, or an error that is not
// about pages that were merely lost.
func exercise(path string, preload bool) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	o := options(preload)
	o.PageSize = 0
	db, err := bbolt.Open(path, 0o600, o)
	if err != nil {
		return err
	}
	defer db.Close()
	for range 2 { // a meta page that was torn is written anew; bbolt's check wants to see both
		if err := db.Update(func(*bbolt.Tx) error { return nil }); err != nil {
			return err
		}
	}
	for _, step := range []func(*bbolt.Tx, *bbolt.Bucket) error{touch, touch, empty} {
		err := db.Update(func(tx *bbolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return step(tx, b) })
		})
		if err == nil {
			err = checkPages(db)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// touch reads all of a bucket, and changes its first and last row.
func touch(tx *bbolt.Tx, b *bbolt.Bucket) error {
	if b == nil {
		return nil // a row in the place of a bucket
	}
	if err := b.ForEachBucket(func(k []byte) error { return touch(tx, b.Bucket(k)) }); err != nil {
		return err
	}
	var rows [][]byte
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if v != nil {
			rows = append(rows, bytes.Clone(k))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return errors.Join(b.Put(rows[0], make([]byte, 300)), b.Delete(rows[len(rows)-1]), b.Put(rows[len(rows)/2], nil))
}

// empty removes all rows of a bucket.
func empty(_ *bbolt.Tx, b *bbolt.Bucket) error {
	if b == nil {
		return nil
	}
	if err := b.ForEachBucket(func(k []byte) error { return empty(nil, b.Bucket(k)) }); err != nil {
		return err
	}
	var rows [][]byte
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if v != nil {
			rows = append(rows, bytes.Clone(k))
		}
	}
	for _, k := range rows {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// checkPages is bbolt's own check. Pages that are only lost are no problem.
func checkPages(db *bbolt.DB) error {
	return db.View(func(tx *bbolt.Tx) (err error) {
		for found := range tx.Check() {
			if err == nil && !strings.Contains(found.Error(), "unreachable unfreed") {
				err = found
			}
		}
		return err
	})
}

// mutate damages a file in one of the ways in which disks, programs and people do that.
func mutate(r *rand.Rand, file []byte, class int) []byte {
	count := len(file) / pageSize
	if count < 2 {
		return file
	}
	page := func() []byte { return file[r.IntN(count)*pageSize:][:pageSize] }
	numbers := []uint64{0, 1, 2, 3, 0xff, 0xffff, 1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1, uint64(r.IntN(count)), uint64(r.IntN(2000))}
	switch class {
	case 0: // bits anywhere
		for range 1 + r.IntN(8) {
			file[r.IntN(len(file))] ^= 1 << r.IntN(8)
		}
	case 1: // bits of the header or the elements of a page
		for range 1 + r.IntN(3) {
			page()[r.IntN(160)] ^= 1 << r.IntN(8)
		}
	case 2: // a number in the header or the elements of a page
		put32(page()[4*r.IntN(40):], uint32(numbers[r.IntN(len(numbers))]))
	case 3: // a longer number
		put64(page()[8*r.IntN(20):], numbers[r.IntN(len(numbers))])
	case 4: // one page in the place of another
		copy(page(), page())
	case 5: // two pages changed about
		a, b := page(), page()
		old := bytes.Clone(a)
		copy(a, b)
		copy(b, old)
	case 6:
		clear(page())
	case 7: // bytes of chance
		b := page()
		for i := r.IntN(len(b)); i < len(b); i++ {
			b[i] = byte(r.Uint32())
		}
	case 8: // a file that was cut
		file = file[:r.IntN(len(file))]
	case 9: // a meta page with a sound checksum
		fields := []int{32, 40, 48, 56, 64}
		setMeta(at(file, r.Uint64N(2)), fields[r.IntN(len(fields))], numbers[r.IntN(len(numbers))])
	case 10: // a page that names another, and fits
		b := page()
		put64(element(b, r.IntN(5))[8:], uint64(r.IntN(count)))
	case 11: // counts
		put16(page()[10:], uint16(numbers[r.IntN(len(numbers))]))
	case 12: // overflow
		put32(page()[12:], uint32(1+r.IntN(4)))
	}
	return file
}

const mutations = 13
