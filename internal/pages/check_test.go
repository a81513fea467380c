package pages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/race"
)

// What bbolt writes passes, whatever was done with it: a check that refuses a sound file
// keeps people from their jobs.
func TestCheckOfWhatBboltWrites(t *testing.T) {
	for seed := range uint64(race.Fewer(16)) {
		r := rand.New(rand.NewPCG(seed, 1))
		path := filepath.Join(folder(t), "sound.db")
		db, err := bbolt.Open(path, 0o600, options(seed%2 == 0))
		require.NoError(t, err)
		for step := range 48 {
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return change(r, tx) }))
			if step%4 != 3 {
				continue
			}
			file, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, check(t, file), "seed %d", seed)
		}
		require.NoError(t, db.Close())
	}
}

// change does something to a file that leaves it sound.
func change(r *rand.Rand, tx *bbolt.Tx) error {
	b, err := tx.CreateBucketIfNotExists(fmt.Append(nil, "bucket ", r.IntN(3)))
	for err == nil && r.IntN(2) == 0 {
		b.FillPercent = []float64{0.1, 0.5, 0.9, 1}[r.IntN(4)]
		b, err = b.CreateBucketIfNotExists(fmt.Append(nil, "nested ", r.IntN(3)))
	}
	if err != nil {
		return err
	}
	sizes := []int{0, 1, 10, 100, 1000, 5000}
	put := r.IntN(3) > 0
	for range r.IntN(150) {
		key := fmt.Appendf(nil, "%0*d", 1+r.IntN(30), r.IntN(300))
		if put {
			err = b.Put(key, make([]byte, sizes[r.IntN(len(sizes))]))
		} else if k, v := b.Cursor().Seek(key); v != nil {
			err = b.Delete(bytes.Clone(k))
		}
		if err != nil {
			return err
		}
	}
	if r.IntN(20) == 0 {
		if name := fmt.Append(nil, "bucket ", r.IntN(3)); tx.Bucket(name) != nil {
			return tx.DeleteBucket(name)
		}
	}
	return nil
}

// Each damage is found, by the page where it is.
func TestCheckOfDamage(t *testing.T) {
	sound := sample(t, true)
	l := layoutOf(t, sound)
	jobs := l.roots["jobs"]
	leaf, parent := leafBelow(t, sound, jobs)
	for _, test := range []struct {
		rule   string
		damage func(b []byte)
		says   string
	}{
		{rule: "the header of the meta page is its own", says: fmt.Sprintf("page %d: the header of this meta page", l.meta.Page),
			damage: func(b []byte) { at(b, l.meta.Page)[8] = 2 }},
		{rule: "transactions have room to be counted: bbolt takes the older meta page where the number wraps", says: "its transaction number",
			damage: func(b []byte) { setMeta(at(b, l.meta.Page), 64, 1<<64-2+l.meta.Page) }},
		{rule: "a meta page that bbolt takes for sound has numbers that can be", says: "it claims 9223372036854775808 pages",
			damage: func(b []byte) { setMeta(at(b, 1-l.meta.Page), 56, 1<<63) }},
		{rule: "both meta pages say how large a page is", says: "that of page 0 is 1024",
			damage: func(b []byte) {
				page := at(b, 1)
				setMeta(page, 24, get64(page[24:])+1024)
			}},
		{rule: "the root is a page of the file", says: "refers to page 9999",
			damage: func(b []byte) { setMeta(at(b, l.meta.Page), 32, 9999) }},
		{rule: "the root is no meta page", says: "refers to page 0",
			damage: func(b []byte) { setMeta(at(b, l.meta.Page), 32, 0) }},
		{rule: "the high-water mark is within the file", says: "the file is truncated",
			damage: func(b []byte) { setMeta(at(b, l.meta.Page), 56, uint64(len(b)/pageSize)+1) }},
		{rule: "a page names itself", says: fmt.Sprintf("page %d: its header names page 7777", leaf),
			damage: func(b []byte) { put64(at(b, leaf), 7777) }},
		{rule: "a page has one kind", says: fmt.Sprintf("page %d: it is neither a branch nor a leaf: its flags are 0x3", leaf),
			damage: func(b []byte) { at(b, leaf)[8] = 3 }},
		{rule: "overflow ends within the file", says: fmt.Sprintf("page %d: its 1000000 overflow pages", leaf),
			damage: func(b []byte) { put32(at(b, leaf)[12:], 1_000_000) }},
		{rule: "overflow is nobody else's", says: "is referenced again",
			damage: func(b []byte) { put32(at(b, jobs)[12:], uint32(l.meta.Pages-jobs-1)) }},
		{rule: "elements fit into their page", says: fmt.Sprintf("page %d: its 65535 elements do not fit", leaf),
			damage: func(b []byte) { put16(at(b, leaf)[10:], 65535) }},
		{rule: "a branch has two children: bbolt panics where it deletes from less", says: fmt.Sprintf("page %d: it is a branch with 1 elements", jobs),
			damage: func(b []byte) { put16(at(b, jobs)[10:], 1) }},
		{rule: "a leaf below a branch has an element", says: fmt.Sprintf("page %d: it is an empty leaf", leaf),
			damage: func(b []byte) { put16(at(b, leaf)[10:], 0) }},
		{rule: "a page is in one tree", says: "is referenced again",
			damage: func(b []byte) { put64(bucketValue(b, l.roots["queue"], "ready"), jobs) }},
		{rule: "pages form no circle", says: "is referenced again",
			damage: func(b []byte) { put64(element(at(b, parent), 0)[8:], parent) }},
		{rule: "the leaves of a tree are at one level: bbolt merges neighbours", says: "but the leaf pages of its tree are at level",
			damage: func(b []byte) { // a leaf in the place of its parent, and known by the same key
				put64(element(at(b, jobs), 1)[8:], get64(element(at(b, get64(element(at(b, jobs), 1)[8:])), 0)[8:]))
			}},
		{rule: "a child is a page of the file", says: fmt.Sprintf("page %d: it refers to page 888888", jobs),
			damage: func(b []byte) { put64(element(at(b, jobs), 1)[8:], 888888) }},
		{rule: "a key of a branch lies within the page", says: fmt.Sprintf("page %d: element 1 reaches beyond", jobs),
			damage: func(b []byte) { put32(element(at(b, jobs), 1), 4000) }},
		{rule: "the keys of a branch rise", says: fmt.Sprintf("page %d: element 1 has a key that is not greater", jobs),
			damage: func(b []byte) {
				page := at(b, jobs)
				first, second := element(page, 0), element(page, 1)
				copy(second[get32(second):][:7], first[get32(first):][:7])
			}},
		{rule: "a key of a leaf lies within the page", says: fmt.Sprintf("page %d: element 1 reaches beyond", leaf),
			damage: func(b []byte) { put32(element(at(b, leaf), 1)[4:], 4000) }},
		{rule: "a value lies within the page", says: fmt.Sprintf("page %d: element 1 reaches beyond", leaf),
			damage: func(b []byte) { put32(element(at(b, leaf), 1)[12:], 1<<32-1) }},
		{rule: "keys are not empty: bbolt panics", says: fmt.Sprintf("page %d: element 1 has an empty key", leaf),
			damage: func(b []byte) { put32(element(at(b, leaf), 1)[8:], 0) }},
		{rule: "elements do not overlap", says: fmt.Sprintf("page %d: element 1 overlaps", leaf),
			damage: func(b []byte) { put32(element(at(b, leaf), 1)[4:], 20) }},
		{rule: "elements lie side by side: what is missing is lost", says: fmt.Sprintf("page %d: element 0 leaves a gap", leaf),
			damage: func(b []byte) { put16(at(b, leaf)[10:], uint16(at(b, leaf)[10])-1) }},
		{rule: "the children of a branch lie side by side", says: fmt.Sprintf("page %d: element 0 leaves a gap", parent),
			damage: func(b []byte) { put16(at(b, parent)[10:], uint16(at(b, parent)[10])-1) }},
		{rule: "elements have flags that bbolt knows", says: fmt.Sprintf("page %d: element 1 has unknown flags", leaf),
			damage: func(b []byte) { element(at(b, leaf), 1)[0] = 4 }},
		{rule: "the keys of a leaf rise", says: fmt.Sprintf("page %d: element 2 has a key that is not", leaf),
			damage: func(b []byte) {
				page := at(b, leaf)
				first, second := element(page, 1), element(page, 2)
				copy(second[get32(second[4:]):][:7], first[get32(first[4:]):][:7])
			}},
		{rule: "the first key is that by which the parent knows the page", says: fmt.Sprintf("page %d: element 0 has another key", leaf),
			damage: func(b []byte) {
				e := element(at(b, leaf), 0)
				e[get32(e[4:])+6]++
			}},
		{rule: "keys lie below those of the next page", says: fmt.Sprintf("page %d: element", leaf),
			damage: func(b []byte) {
				page := at(b, leaf)
				e := element(page, int(page[10])-1)
				e[get32(e[4:])] = 'z'
			}},
		{rule: "a bucket is no row", says: "it has a bucket of 8 bytes",
			damage: func(b []byte) {
				e := element(at(b, leaf), 1)
				e[0] = 1
				put32(e[12:], 8)
			}},
		{rule: "a bucket begins at a page of the file", says: fmt.Sprintf("page %d: it refers to page 777777", l.roots["queue"]),
			damage: func(b []byte) { put64(bucketValue(b, l.roots["queue"], "jobs"), 777777) }},
		{rule: "a small bucket is a leaf", says: "is an inline bucket without a leaf page",
			damage: func(b []byte) { bucketValue(b, l.roots["queue"], "small")[16+8] = 1 }},
		{rule: "the elements of a small bucket fit", says: "is an inline bucket whose elements do not fit",
			damage: func(b []byte) { put16(bucketValue(b, l.roots["queue"], "small")[16+10:], 99) }},
		{rule: "a small bucket holds no bucket", says: "an inline bucket contains a bucket",
			damage: func(b []byte) { bucketValue(b, l.roots["queue"], "small")[16+16] = 1 }},
		{rule: "the list of free pages is one", says: fmt.Sprintf("page %d: it is not a list of free pages", l.meta.Freelist),
			damage: func(b []byte) { at(b, l.meta.Freelist)[8] = 2 }},
		{rule: "the list of free pages is where the meta page says", says: "its list of free pages is at page 1",
			damage: func(b []byte) { setMeta(at(b, l.meta.Page), 48, 1) }},
		{rule: "the list of free pages names itself", says: "its header names page 5555",
			damage: func(b []byte) { put64(at(b, l.meta.Freelist), 5555) }},
		{rule: "the list of free pages fits", says: "free pages does not fit",
			damage: func(b []byte) { put16(at(b, l.meta.Freelist)[10:], 60000) }},
		{rule: "free pages rise, so none is listed twice", says: "its list of free pages has page",
			damage: func(b []byte) { copy(at(b, l.meta.Freelist)[24:32], at(b, l.meta.Freelist)[16:24]) }},
		{rule: "free pages are pages of the file", says: "its list of free pages has page 66666",
			damage: func(b []byte) {
				page := at(b, l.meta.Freelist)
				put64(page[16+8*(int(page[10])-1):], 66666)
			}},
		{rule: "free pages are not in use", says: "is in use",
			damage: func(b []byte) {
				page := at(b, l.meta.Freelist)
				put16(page[10:], 1)
				put64(page[16:], leaf)
			}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			b := bytes.Clone(sound)
			test.damage(b)
			err := check(t, b)
			require.ErrorIs(t, err, pages.ErrDamaged)
			require.ErrorContains(t, err, test.says)
		})
	}
}

// bucketValue is the value of a bucket on a leaf page.
func bucketValue(b []byte, page uint64, name string) []byte {
	p := at(b, page)
	for i := range int(p[10]) {
		e := element(p, i)
		key := e[get32(e[4:]):][:get32(e[8:])]
		if string(key) == name {
			return e[get32(e[4:])+get32(e[8:]):]
		}
	}
	return nil
}

// A page that is neither in use nor listed as free is lost, and that is all.
func TestCheckOfALostPage(t *testing.T) {
	b := sample(t, true)
	l := layoutOf(t, b)
	page := at(b, l.meta.Freelist)
	require.Greater(t, page[10], byte(1))
	put16(page[10:], uint16(page[10])-1)
	require.NoError(t, check(t, b))
}

// What is no bbolt file is told apart from a damaged one.
func TestCheckOfWhatIsNoFile(t *testing.T) {
	for rule, file := range map[string][]byte{
		"an empty file": nil, "a text": []byte("jobs: 1\n"), "a long text": bytes.Repeat([]byte("jobs: 1\n"), 9999),
	} {
		require.ErrorIs(t, check(t, file), pages.ErrForeign, rule)
	}
	torn := sample(t, false)
	torn[30]++
	torn[pageSize+30]++
	require.ErrorContains(t, check(t, torn), "both meta pages of the file are damaged")
}

// One damaged meta page is what a power cut leaves; the other one counts.
func TestCheckWithoutTheFirstMeta(t *testing.T) {
	for page := range 2 {
		b := sample(t, false)
		clear(b[page*pageSize:][:pageSize])
		m, err := pages.Newest(bytes.NewReader(b))
		require.NoError(t, err)
		require.EqualValues(t, 1-page, m.Page)
	}
}

// broken is a file of which a part cannot be read.
type broken struct {
	io.ReaderAt
	from int64
}

var errBroken = errors.New("the disk is broken")

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from {
		return 0, errBroken
	}
	return b.ReaderAt.ReadAt(p, off)
}

// A disk that does not read is no damage of the file, and a caller can end the check.
func TestCheckEnds(t *testing.T) {
	b := sample(t, true)
	err := pages.Check(t.Context(), broken{bytes.NewReader(b), 20_000}, int64(len(b)))
	require.ErrorIs(t, err, errBroken)
	require.NotErrorIs(t, err, pages.ErrDamaged)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, pages.Check(ended, bytes.NewReader(b), int64(len(b))), context.Canceled)
}
