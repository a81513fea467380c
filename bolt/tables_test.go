package bolt

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// spaceOfTest has two tables.
var (
	spaceOfTest = driver.NewSpace("test")
	tableA      = spaceOfTest.Table("a")
	tableB      = spaceOfTest.Table("b")
)

// write is a mutation that only writes.
type write func(driver.Writer) error

func (w write) Check(driver.Ops) error       { return nil }
func (w write) Apply(tx driver.Writer) error { return w(tx) }

// keysIn returns the keys of a span in the order of a scan.
func keysIn(t *testing.T, r driver.Reader, table *driver.Table, s driver.Span) (keys []string) {
	t.Helper()
	require.NoError(t, r.Scan(table, s, func(key, value []byte) bool {
		require.Equal(t, string(key), string(value))
		keys = append(keys, string(key))
		return true
	}))
	return keys
}

// fillTable stores rows whose values are their keys.
func fillTable(t *testing.T, q *Queue, keys ...string) {
	t.Helper()
	require.NoError(t, q.Mutate(t.Context(), write(func(w driver.Writer) error {
		for _, key := range keys {
			if err := w.Put(tableA, []byte(key), []byte(key)); err != nil {
				return err
			}
		}
		return nil
	}), 0))
}

// Rule: a scan returns the rows of a span in key order, or in reverse, up to its limit, and a
// transaction reads its own writes.
func TestScanOfASpan(t *testing.T) {
	q := openTest(t, nil)
	fillTable(t, q, "a", "b1", "b2", "b\xff", "c", "\xff", "\xff\xff")
	for _, c := range []struct {
		span driver.Span
		want []string
	}{
		{driver.Span{}, []string{"a", "b1", "b2", "b\xff", "c", "\xff", "\xff\xff"}},
		{driver.Span{Prefix: []byte("b")}, []string{"b1", "b2", "b\xff"}},
		{driver.Span{Prefix: []byte("b"), From: []byte("b2")}, []string{"b2", "b\xff"}},
		{driver.Span{Prefix: []byte("b"), From: driver.After([]byte("b2"))}, []string{"b\xff"}},
		{driver.Span{Prefix: []byte("b"), From: []byte("a")}, []string{"b1", "b2", "b\xff"}},
		{driver.Span{From: []byte("b2"), Limit: 2}, []string{"b2", "b\xff"}},
		{driver.Span{Prefix: []byte("d")}, nil},
		{driver.Span{Reverse: true, Limit: 2}, []string{"\xff\xff", "\xff"}},
		{driver.Span{Prefix: []byte("b"), Reverse: true}, []string{"b\xff", "b2", "b1"}},
		{driver.Span{Prefix: []byte("\xff"), Reverse: true}, []string{"\xff\xff", "\xff"}},
		{driver.Span{Prefix: []byte("\xfe"), Reverse: true}, nil},
	} {
		look := func(r driver.Reader) error {
			require.Equal(t, c.want, keysIn(t, r, tableA, c.span), "%+v", c.span)
			if len(c.want) > 1 { // a scan that its caller ends
				n := 0
				require.NoError(t, r.Scan(tableA, c.span, func(_, _ []byte) bool { n++; return false }))
				require.Equal(t, 1, n)
			}
			return nil
		}
		require.NoError(t, q.ViewRows(t.Context(), look))
		undone := errors.New("undone")
		require.ErrorIs(t, q.Mutate(t.Context(), write(func(w driver.Writer) error {
			if err := w.Delete(tableA, []byte("a")); err != nil {
				return err
			}
			if err := w.Put(tableA, []byte("a"), []byte("a")); err != nil {
				return err
			}
			return errors.Join(look(w), undone)
		}), 0), undone)
	}
}

// Rule: DeleteSpan removes rows in key order, and no others, within its limit of rows, and
// stops after the row that reaches its limit of bytes.
func TestDeleteSpan(t *testing.T) {
	for _, c := range []struct {
		span  driver.Span
		size  int
		bytes int
		left  []string
	}{
		{driver.Span{}, 1000, 14, nil},
		{driver.Span{}, 0, 0, []string{"a", "b1", "b2", "b3"}},
		{driver.Span{}, 3, 6, []string{"b2", "b3"}},
		{driver.Span{Prefix: []byte("b")}, 1000, 12, []string{"a"}},
		{driver.Span{Prefix: []byte("b"), Limit: 2}, 1000, 8, []string{"a", "b3"}},
		{driver.Span{Prefix: []byte("b"), From: []byte("b2")}, 1000, 8, []string{"a", "b1"}},
		{driver.Span{Prefix: []byte("c")}, 1000, 0, []string{"a", "b1", "b2", "b3"}},
	} {
		q := openTest(t, nil)
		fillTable(t, q, "a", "b1", "b2", "b3")
		require.NoError(t, q.Mutate(t.Context(), write(func(w driver.Writer) error {
			rows, bytes, err := w.DeleteSpan(tableA, c.span, c.size)
			require.Equal(t, 4-len(c.left), rows, "%+v", c)
			require.Equal(t, c.bytes, bytes, "%+v", c)
			return err
		}), 0))
		require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error {
			require.Equal(t, c.left, keysIn(t, r, tableA, driver.Span{}), "%+v", c)
			return nil
		}))
	}
}

// Rule: if a space has no tables they are empty, and the first row creates all of them. A table
// that is missing beside others was lost: that is an error, and the table is never recreated.
func TestMissingTables(t *testing.T) {
	q := openTest(t, nil)
	read := func(table *driver.Table) (errs []error) {
		require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error {
			value, err := r.Get(table, []byte("key"))
			require.Nil(t, value)
			errs = append(errs, err, r.Scan(table, driver.Span{}, func(_, _ []byte) bool { panic("a row") }))
			return nil
		}))
		return errs
	}
	put := func(table *driver.Table) error {
		return q.Mutate(t.Context(), write(func(w driver.Writer) error { return w.Put(table, []byte("row"), []byte("row")) }), 0)
	}
	remove := func(table *driver.Table) error {
		return q.Mutate(t.Context(), write(func(w driver.Writer) error {
			_, _, err := w.DeleteSpan(table, driver.Span{}, 1)
			return errors.Join(err, w.Delete(table, []byte("key")))
		}), 0)
	}
	require.Equal(t, []error{nil, nil}, read(tableA))
	require.NoError(t, remove(tableA))
	require.NoError(t, put(tableA))
	require.Equal(t, []error{nil, nil}, read(tableB))
	require.NoError(t, put(tableB))
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		return tx.Bucket(spaceOfTest.Bytes()).DeleteBucket(tableB.Bytes())
	}))
	for _, err := range append(read(tableB), put(tableB), remove(tableB)) {
		require.ErrorIs(t, err, driver.ErrNoTable)
		require.ErrorIs(t, err, pawl.ErrCorrupt)
	}
	require.NoError(t, put(tableA))
}

// Rule: mutations of one transaction get the same Writer, and those of another transaction a
// different one.
func TestOneWriterForATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openTest(t, nil)
		var writers []driver.Writer
		note := write(func(w driver.Writer) error { writers = append(writers, w); return nil })
		release := make(chan struct{})
		answers := []<-chan error{started(func() error {
			return q.Mutate(t.Context(), write(func(w driver.Writer) error { <-release; return note(w) }), 0)
		})}
		for range 2 { // which share the next commit
			synctest.Wait()
			answers = append(answers, started(func() error { return q.Mutate(t.Context(), note, 0) }))
		}
		synctest.Wait()
		close(release)
		for _, answer := range answers {
			require.NoError(t, <-answer)
		}
		require.False(t, writers[0] == writers[1])
		require.True(t, writers[1] == writers[2])
	})
}

// Rule: a row with the key of a bucket, and a bucket with the key of a row, are damage.
func TestABucketAmongRows(t *testing.T) {
	q := openTest(t, nil)
	fillTable(t, q, "a", "c")
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		_, err := tx.Bucket(spaceOfTest.Bytes()).Bucket(tableA.Bytes()).CreateBucket([]byte("b"))
		return err
	}))
	require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error {
		var damaged []string
		err := r.Scan(tableA, driver.Span{}, func(key, value []byte) bool {
			damaged = append(damaged, fmt.Sprint(string(key), value == nil))
			return true
		})
		require.Equal(t, []string{"afalse", "btrue", "cfalse"}, damaged)
		return err
	}))
	for name, do := range map[string]write{
		"put":    func(w driver.Writer) error { return w.Put(tableA, []byte("b"), nil) },
		"delete": func(w driver.Writer) error { return w.Delete(tableA, []byte("b")) },
		"delete of all": func(w driver.Writer) error {
			_, _, err := w.DeleteSpan(tableA, driver.Span{}, 100)
			return err
		},
		"key too large": func(w driver.Writer) error { return w.Put(tableA, slices.Repeat([]byte("k"), bbolt.MaxKeySize+1), nil) },
	} {
		require.ErrorIs(t, q.Mutate(t.Context(), do, 0), pawl.ErrCorrupt, name)
	}
}

// Rule: a row without a value is a row, before the commit and after it.
func TestPutOfNoValue(t *testing.T) {
	q := openTest(t, nil)
	look := func(r driver.Reader) {
		value, err := r.Get(tableA, []byte("k"))
		require.NoError(t, err)
		require.NotNil(t, value)
	}
	require.NoError(t, q.Mutate(t.Context(), write(func(w driver.Writer) error {
		err := w.Put(tableA, []byte("k"), nil)
		look(w)
		return err
	}), 0))
	require.NoError(t, q.ViewRows(t.Context(), func(r driver.Reader) error { look(r); return nil }))
}
