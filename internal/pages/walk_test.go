package pages_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/race"
)

// rows reads all rows of a file by bbolt.
func rows(t *testing.T, file []byte) map[string]string {
	t.Helper()
	path := filepath.Join(folder(t), "rows.db")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	require.NoError(t, err)
	defer db.Close()
	all := make(map[string]string)
	var read func(path string, b *bbolt.Bucket) error
	read = func(path string, b *bbolt.Bucket) error {
		all[path] = fmt.Sprint(b.Sequence())
		return b.ForEach(func(k, v []byte) error {
			if v == nil {
				return read(path+"/"+string(k), b.Bucket(k))
			}
			all[path+"/"+string(k)] = string(v)
			return nil
		})
	}
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return read("/"+string(name), b) })
	}))
	return all
}

// walked is what a walk has found.
type walked struct {
	rows      map[string]string
	problems  []pages.Problem
	unreached map[string]string // by key
	elements  int
}

// walkAll walks over a file by each of its meta pages, or over its pages.
func walkAll(t testing.TB, file []byte) (all []walked) {
	t.Helper()
	f, size := bytes.NewReader(file), int64(len(file))
	metas, err := pages.Metas(f)
	if err != nil {
		w, ok, err := pages.UnreachedOnly(t.Context(), f, size)
		require.NoError(t, err)
		if ok {
			all = append(all, walked{unreached: unreachedOf(t, w)})
		}
	}
	for _, m := range metas {
		one := walked{rows: make(map[string]string)}
		w, err := pages.Walk(t.Context(), f, size, m, pages.Visitor{
			Bucket: func(path [][]byte, sequence uint64) error {
				one.rows["/"+string(bytes.Join(path, []byte("/")))] = fmt.Sprint(sequence)
				return nil
			},
			Element: func(path [][]byte, e pages.Element) error {
				one.elements++
				value, err := e.Value()
				if err != nil || e.Size != int64(len(value)) { // plainly: fuzzing calls it for each row of each file
					t.Fatalf("a row of %d bytes has %d: %v", e.Size, len(value), err)
				}
				one.rows["/"+string(bytes.Join(path, []byte("/")))+"/"+string(e.Key)] = string(value)
				return nil
			},
			Problem: func(p pages.Problem) { one.problems = append(one.problems, p) },
		})
		require.NoError(t, err)
		one.unreached = unreachedOf(t, w)
		all = append(all, one)
	}
	return all
}

func unreachedOf(t testing.TB, w *pages.Walked) map[string]string {
	t.Helper()
	found := make(map[string]string)
	require.NoError(t, w.Unreached(func(e pages.Element) error {
		value, err := e.Value()
		found[string(e.Key)] = string(value)
		return err
	}))
	return found
}

// A walk over a sound file finds what bbolt finds, once, and nothing beside it.
func TestWalkOfASoundFile(t *testing.T) {
	for _, freelist := range []bool{true, false} {
		file := sample(t, freelist)
		w := walkAll(t, file)[0]
		want := rows(t, file)
		require.Equal(t, want, w.rows)
		require.Equal(t, len(want)-7, w.elements, "all but the buckets")
		require.Empty(t, w.problems)
		if freelist {
			require.Empty(t, w.unreached, "what is listed as free is not lost")
		}
	}
}

// A lost page costs what lies on it; what lies below it is found among the unreached.
func TestWalkAroundALostBranch(t *testing.T) {
	file := sample(t, true)
	l := layoutOf(t, file)
	want := rows(t, file)
	clear(at(file, l.roots["jobs"])[:pageSize])
	w := walkAll(t, file)[0]
	require.Len(t, w.problems, 1)
	require.Equal(t, l.roots["jobs"], w.problems[0].Page)
	require.Equal(t, "queue/jobs", string(bytes.Join(w.problems[0].Bucket, []byte("/"))))
	require.ErrorIs(t, w.problems[0].Err, pages.ErrDamaged)
	for i := range 300 {
		key := fmt.Sprintf("key %03d", i)
		require.Equal(t, want["/queue/ready/"+key], w.rows["/queue/ready/"+key])
		require.Contains(t, w.unreached, key)
	}
}

// A page that claims more pages than it fills takes none from those whose parent is lost.
func TestWalkBesideALongRun(t *testing.T) {
	file := sample(t, true)
	l := layoutOf(t, file)
	leaf, _ := leafBelow(t, file, l.roots["ready"])
	clear(at(file, l.roots["jobs"])[:pageSize])
	put32(at(file, leaf)[12:], uint32(l.meta.Pages-leaf-1))
	w := walkAll(t, file)[0]
	for i := range 300 {
		require.Contains(t, w.unreached, fmt.Sprintf("key %03d", i))
	}
}

// A damaged element costs itself, not those behind it on its page, whatever its key looks
// like now.
func TestWalkAroundADamagedElement(t *testing.T) {
	sound := sample(t, true)
	l := layoutOf(t, sound)
	leaf, _ := leafBelow(t, sound, l.roots["jobs"])
	want := len(rows(t, sound))
	for rule, damage := range map[string]func(e []byte){
		"a key that is as high as can be":   func(e []byte) { e[get32(e[4:])] = 0xff },
		"a value that ends behind the page": func(e []byte) { put32(e[12:], 1<<31) },
		"an empty key":                      func(e []byte) { put32(e[8:], 0) },
		"a bucket that is none":             func(e []byte) { e[0] = 1 },
	} {
		b := bytes.Clone(sound)
		damage(element(at(b, leaf), 1))
		found := walkAll(t, b)[0].rows
		require.InDelta(t, want, len(found), 1, rule)
	}
}

// A page whose count is damaged loses no element: the first key shows how many there are.
func TestWalkOfPagesWithADamagedCount(t *testing.T) {
	sound := sample(t, true)
	l := layoutOf(t, sound)
	leaf, parent := leafBelow(t, sound, l.roots["jobs"])
	want := rows(t, sound)
	for _, page := range []uint64{leaf, parent, l.roots["queue"]} {
		for _, count := range []uint16{0, 1, 2} {
			b := bytes.Clone(sound)
			if at(b, page)[8] == 1 && count < 2 {
				continue // refused by its header
			}
			put16(at(b, page)[10:], count)
			w := walkAll(t, b)[0]
			require.Equal(t, want, w.rows, "page %d", page)
			require.Len(t, w.problems, 1)
		}
	}
}

// Where a page of one bucket was led to another, that one takes none of its rows.
func TestWalkOfAContestedPage(t *testing.T) {
	file := sample(t, true)
	l := layoutOf(t, file)
	want := rows(t, file)
	put64(bucketValue(file, l.roots["queue"], "jobs"), l.roots["ready"])
	w := walkAll(t, file)[0]
	require.NotEmpty(t, w.problems)
	for i := range 300 {
		key := fmt.Sprintf("/queue/ready/key %03d", i)
		require.Equal(t, want[key], w.rows[key])
	}
}

// A walk over any bytes ends, and visits no element more than twice.
func TestWalkOfMutations(t *testing.T) {
	for _, freelist := range []bool{true, false} {
		sound := sample(t, freelist)
		for class := range mutations {
			for seed := range uint64(race.Fewer(60)) {
				file := mutate(rand.New(rand.NewPCG(seed, uint64(class))), bytes.Clone(sound), class)
				for _, w := range walkAll(t, file) {
					require.LessOrEqual(t, w.elements, 2*len(file)/16)
				}
			}
		}
	}
}

// An error of the visitor, or the end of the context, ends a walk.
func TestWalkEnds(t *testing.T) {
	file := sample(t, true)
	m, err := pages.Newest(bytes.NewReader(file))
	require.NoError(t, err)
	f, size := bytes.NewReader(file), int64(len(file))
	_, err = pages.Walk(t.Context(), f, size, m, pages.Visitor{Element: func([][]byte, pages.Element) error { return errBroken }})
	require.ErrorIs(t, err, errBroken)
	_, err = pages.Walk(t.Context(), f, size, m, pages.Visitor{Bucket: func([][]byte, uint64) error { return errBroken }})
	require.ErrorIs(t, err, errBroken)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = pages.Walk(ended, f, size, m, pages.Visitor{})
	require.ErrorIs(t, err, context.Canceled)
}
