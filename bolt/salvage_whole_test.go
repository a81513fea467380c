package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/kills"
	"github.com/gopawl/pawl/internal/pages"
)

// Rule: if all records of the jobs are on a page that cannot be read, and no other page has one, each job is a dead job that
// says so. The rows of groups and of the app, which other pages have, are kept.
func TestSalvageWithoutTheOnlyPageOfRecords(t *testing.T) {
	folder := memoryFolder(t)
	from, to := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
	q, err := Open(from, crashOptions()) // without the check of the file at the end
	require.NoError(t, err)
	kills.MakeGroup(t, q, "k", "k")
	var jobs []*pawl.Envelope
	for i := range 20 {
		jobs = append(jobs, &pawl.Envelope{Kind: "k", Headers: map[string]string{"number": fmt.Sprint(i)}})
	}
	_, err = q.Enqueue(t.Context(), jobs...)
	require.NoError(t, err)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("app"))
		if err != nil {
			return err
		}
		return b.Put([]byte("key"), []byte("value"))
	}))
	require.NoError(t, q.Close())

	whole, err := os.ReadFile(from)
	require.NoError(t, err)
	meta, err := pages.Newest(bytes.NewReader(whole))
	require.NoError(t, err)
	leaves := make(map[uint64]bool)
	_, err = pages.Walk(t.Context(), bytes.NewReader(whole), int64(len(whole)), meta, pages.Visitor{Element: func(path [][]byte, e pages.Element) error {
		if len(path) == 2 && bytes.Equal(path[0], bucketRoot) && bytes.Equal(path[1], bucketJobs) {
			leaves[e.Page] = true
		}
		return nil
	}})
	require.NoError(t, err)
	require.Len(t, leaves, 1)
	size := uint64(meta.PageSize)
	for page := uint64(2); page < meta.Pages; page++ { // older versions of the page, too
		if header := whole[page*size:]; leaves[page] || bytes.Contains(header[:size], []byte("number")) {
			copy(header[12:16], "\xff\xff\xff\xff") // the number of pages that follow
		}
	}
	require.NoError(t, os.WriteFile(from, whole, 0o600))

	result, err := Salvage(t.Context(), from, to)
	require.NoError(t, err)
	require.Equal(t, 22, result.NoRecord, "%+v", result)
	require.Equal(t, 22, result.Counts.Dead)
	q = openAt(t, to, crashOptions())
	defer q.Close()
	_, err = group.Get(t.Context(), q, "g")
	require.NoError(t, err)
	require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
		require.Equal(t, "value", string(tx.Bucket([]byte("app")).Get([]byte("key"))))
		return nil
	}))
}

// Rule: if the page with the buckets of the queue cannot be read, and no page has a record of a job, what the app stored is kept.
func TestSalvageWithoutTheBucketsOfTheQueue(t *testing.T) {
	folder := memoryFolder(t)
	from, to := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
	q, err := Open(from, crashOptions()) // without the check of the file at the end
	require.NoError(t, err)
	require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("app"))
		if err != nil {
			return err
		}
		return b.Put([]byte("key"), []byte("value"))
	}))
	var page uint64
	require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
		page = uint64(tx.Bucket(bucketRoot).Root())
		return nil
	}))
	require.NoError(t, q.Close())
	b, err := os.ReadFile(from)
	require.NoError(t, err)
	size := uint64(os.Getpagesize())
	copy(b[page*size+12:], "\xff\xff\xff\xff") // the number of pages that follow
	require.NoError(t, os.WriteFile(from, b, 0o600))

	_, err = Salvage(t.Context(), from, to)
	require.NoError(t, err)
	q = openAt(t, to, crashOptions())
	defer q.Close()
	require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
		require.Equal(t, "value", string(tx.Bucket([]byte("app")).Get([]byte("key"))))
		return nil
	}))
}

// Rule: a row of a group, of a run, or of a schedule that does not match its checksum is lost, and the result says so. A row of
// a run is copied as it is. An entry of the history of a schedule is not.
func TestSalvageCountsTheDamagedRowsOfSpaces(t *testing.T) {
	for table, copied := range map[[2]string]bool{
		{"pawl.groups", "groups"}: false, {"pawl.workflow", "steps"}: true, {"pawl.schedule", "schedules"}: true, {"pawl.schedule", "history"}: false,
	} {
		folder := memoryFolder(t)
		from, to := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
		q, err := Open(from, crashOptions()) // without the check of the file at the end
		require.NoError(t, err)
		kills.MakeGroup(t, q, "k") // all tables of groups
		require.NoError(t, q.Update(t.Context(), func(tx *bbolt.Tx) error {
			space, err := tx.CreateBucketIfNotExists([]byte(table[0]))
			if err != nil {
				return err
			}
			rows, err := space.CreateBucketIfNotExists([]byte(table[1]))
			if err != nil {
				return err
			}
			return rows.Put([]byte("key\x00"), []byte("\x01content, and no checksum"))
		}))
		require.NoError(t, q.Close())
		result, err := Salvage(t.Context(), from, to)
		require.NoError(t, err)
		require.Equal(t, map[string]int{table[0] + "/" + table[1]: 1}, result.Lost)
		require.False(t, result.Sound())
		q = openAt(t, to, crashOptions())
		require.NoError(t, q.View(t.Context(), func(tx *bbolt.Tx) error {
			found := false
			if space := tx.Bucket([]byte(table[0])); space != nil {
				rows := space.Bucket([]byte(table[1]))
				found = rows != nil && rows.Get([]byte("key\x00")) != nil
			}
			require.Equal(t, copied, found, table)
			return nil
		}))
		require.NoError(t, q.Close())
	}
}
