package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// tableWalk does the same with a table, with a bucket of bbolt and with a map.
type tableWalk struct {
	t      *testing.T
	random *rand.Rand
	table  *table
	plain  *bbolt.Bucket
	model  map[string][]byte
}

// key is one of a few thousand, so many steps meet.
func (w *tableWalk) key() []byte {
	return binary.BigEndian.AppendUint16(nil, uint16(w.random.IntN(3000)))
}

func (w *tableWalk) get(key []byte) {
	got, want := w.table.Get(key), w.model[string(key)]
	require.True(w.t, bytes.Equal(want, got), "Get %x gives %x, want %x", key, got, want)
	require.Equal(w.t, want == nil, got == nil, "Get %x", key)
}

func (w *tableWalk) put(key []byte) {
	value := bytes.Repeat([]byte{byte(w.random.Uint32())}, 1+w.random.IntN(100))
	require.NoError(w.t, w.table.Put(key, value))
	require.NoError(w.t, w.plain.Put(key, value))
	w.model[string(key)] = value
}

func (w *tableWalk) delete(key []byte) {
	require.NoError(w.t, w.table.Delete(key))
	require.NoError(w.t, w.plain.Delete(key))
	delete(w.model, string(key))
}

// step is one thing that a transaction does with rows.
func (w *tableWalk) step() {
	key := w.key()
	switch w.random.IntN(10) {
	case 0, 1:
		w.put(key)
	case 2:
		w.delete(key)
	case 3:
		w.get(key)
		w.delete(key)
	case 4: // another row intervenes
		w.get(key)
		w.put(w.key())
		w.delete(key)
	case 5:
		w.get(key)
		w.delete(w.key())
		w.delete(key)
	case 6:
		w.get(key)
		w.get(w.key()) // it may not exist
		w.delete(key)
		w.delete(key)
	case 7: // as a row is rewritten
		w.get(key)
		w.delete(key)
		w.put(key)
		w.get(key)
	case 8: // rows in order, and one of them goes
		for range 3 {
			w.get(key)
			key = binary.BigEndian.AppendUint16(nil, binary.BigEndian.Uint16(key)+1)
		}
		w.delete(key)
		w.get(key)
	case 9:
		w.deleteFollowed(key)
	}
}

// deleteFollowed deletes the row of a key, if there is one, after a look at the one behind it.
func (w *tableWalk) deleteFollowed(key []byte) {
	if w.table.Get(key) == nil {
		return
	}
	want := false
	for next := int(binary.BigEndian.Uint16(key)) + 1; next < 3000 && byte(next>>8) == key[0] && !want; next++ {
		want = w.model[string(binary.BigEndian.AppendUint16(nil, uint16(next)))] != nil
	}
	require.Equal(w.t, want, w.table.followed(key[:1]), "a row after %x", key)
	w.delete(key)
}

// compare requires that all three hold the same rows.
func (w *tableWalk) compare(found *bbolt.Bucket) {
	w.t.Helper()
	rows := 0
	for _, b := range []*bbolt.Bucket{found, w.plain} {
		rows = 0
		require.NoError(w.t, b.ForEach(func(k, v []byte) error {
			if rows++; !bytes.Equal(v, w.model[string(k)]) {
				return fmt.Errorf("row %x is %x, want %x", k, v, w.model[string(k)])
			}
			return nil
		}))
		require.Equal(w.t, len(w.model), rows)
	}
}

// Rule: a row is deleted after a look at the one behind it, also if the transaction has emptied the pages in between.
func TestDeleteAfterEmptyPages(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(memoryFolder(t), "rows.db"), 0o600, &bbolt.Options{NoSync: true})
	require.NoError(t, err)
	defer db.Close()
	for _, from := range []int{0, 3, 900} { // where the rows that stay begin
		w := &tableWalk{t: t, random: rand.New(rand.NewPCG(1, 1)), model: make(map[string][]byte)}
		begin := func(tx *bbolt.Tx) {
			buckets := [2]*bbolt.Bucket{}
			for i, name := range []string{"table", "plain"} {
				buckets[i], err = tx.CreateBucketIfNotExists([]byte(name))
				require.NoError(t, err)
			}
			w.table, w.plain = &table{opened: buckets[0]}, buckets[1]
		}
		key := func(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			begin(tx)
			for n := range 1000 {
				w.put(key(n))
			}
			return nil
		}))
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			begin(tx)
			for n := 999; n >= from; n-- {
				w.deleteFollowed(key(n))
			}
			w.compare(w.table.bucket())
			return nil
		}))
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			begin(tx)
			for n := range from {
				w.delete(key(n))
			}
			return nil
		}))
	}
}

// Rule: a table behaves like its bucket, even when it remembers the row that was read last:
// whatever is put and deleted in between, Delete removes the row of its key and no other.
func TestTableIsItsBucket(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	db, err := bbolt.Open(filepath.Join(memoryFolder(t), "rows.db"), 0o600, &bbolt.Options{NoSync: true})
	require.NoError(t, err)
	defer db.Close()
	names := [][]byte{[]byte("table"), []byte("plain")}
	w := &tableWalk{t: t, random: rand.New(rand.NewPCG(seed, 0)), model: make(map[string][]byte)}
	begin := func(tx *bbolt.Tx) {
		var buckets [2]*bbolt.Bucket
		for i, name := range names {
			buckets[i], err = tx.CreateBucketIfNotExists(name)
			require.NoError(t, err)
		}
		w.table, w.plain = &table{opened: buckets[0], name: names[0]}, buckets[1]
	}
	update := func(steps int, step func()) {
		t.Helper()
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			begin(tx)
			for range steps {
				step()
			}
			w.compare(w.table.bucket())
			return nil
		}))
		require.NoError(t, db.View(func(tx *bbolt.Tx) error {
			w.plain = tx.Bucket(names[1])
			w.compare(tx.Bucket(names[0]))
			for err := range tx.Check() {
				return err
			}
			return nil
		}))
	}
	update(3000, func() { w.put(w.key()) })
	pages := 0
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		pages = tx.Bucket(names[0]).Stats().LeafPageN
		return nil
	}))
	require.Greater(t, pages, 10, "rows of one page prove little")
	for range 8 {
		update(1500, w.step)
	}
	update(4000, func() { w.get(w.key()); w.delete(w.key()) }) // pages become empty within a transaction
}

// Rule: the same for every two rows of a page: the first is read, the other changed, the first
// deleted.
func TestTableDeletesTheRowThatWasNamed(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(memoryFolder(t), "rows.db"), 0o600, &bbolt.Options{NoSync: true})
	require.NoError(t, err)
	defer db.Close()
	changes := map[string]func(b *table, key []byte) error{
		"put":    func(b *table, key []byte) error { return b.Put(key, []byte("new")) },
		"delete": func(b *table, key []byte) error { return b.Delete(key) },
		"get":    func(b *table, key []byte) error { b.Get(key); return nil },
	}
	keys := []byte("acegi")
	for name, change := range changes {
		for _, first := range keys {
			for other := byte('a'); other <= 'j'; other++ { // every second one is missing
				if other == first {
					continue
				}
				require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
					_ = tx.DeleteBucket([]byte("rows"))
					bucket, err := tx.CreateBucket([]byte("rows"))
					require.NoError(t, err)
					b, want := &table{opened: bucket}, make(map[byte]bool)
					for _, k := range keys {
						require.NoError(t, b.Put([]byte{k}, []byte("old")))
						want[k] = true
					}
					require.NotNil(t, b.Get([]byte{first}))
					require.NoError(t, change(b, []byte{other}))
					require.NoError(t, b.Delete([]byte{first}))
					delete(want, first)
					switch name {
					case "put":
						want[other] = true
					case "delete":
						delete(want, other)
					}
					for k := byte('a'); k <= 'j'; k++ {
						require.Equal(t, want[k], bucket.Get([]byte{k}) != nil, "row %c, after %s of %c and delete of %c", k, name, other, first)
					}
					return nil
				}))
			}
		}
	}
}

// Rule: rows that are read in the order of their keys take one search, also across pages.
func TestRowsInOrderTakeOneSearch(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(memoryFolder(t), "rows.db"), 0o600, &bbolt.Options{NoSync: true})
	require.NoError(t, err)
	defer db.Close()
	const rows = 1000
	key := func(i int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(i)) }
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("rows"))
		require.NoError(t, err)
		for i := range rows {
			require.NoError(t, bucket.Put(key(i), key(i)))
		}
		return nil
	}))
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		b := &table{opened: tx.Bucket([]byte("rows"))}
		for i := range rows {
			require.Equal(t, key(i), b.Get(key(i)))
		}
		require.Equal(t, 1, b.seeks)
		require.Equal(t, key(5), b.Get(key(5)))
		require.Equal(t, 2, b.seeks)
		return nil
	}))
}
