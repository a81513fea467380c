package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/internal/pages"
	"github.com/gopawl/pawl/internal/withid"
)

// markFirst is the start of a marker.
const markFirst = "pawl: a sync failed in transaction %d, behind one of root %d and %d pages\n"

// failSync stores jobs "before", and "after" in a commit whose sync fails. It returns the ID of
// the first.
func failSync(t *testing.T, path string, commit func(*bbolt.Tx) error) pawl.ID {
	t.Helper()
	if !dbfile.CanLock {
		t.Skip("needs flock: without it a file is not repaired")
	}
	q, err := Open(path, quiet())
	require.NoError(t, err)
	id := add(t, q, nil).ID
	replaceCommit(t, q, commit)
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "after"}), pawl.ErrUnknownOutcome)
	require.NoError(t, q.Close())
	return id
}

// Rule: after a failed sync the queue is opened from a fresh copy of what was acknowledged, and
// nothing is left beside it.
func TestFileIsRepairedAfterAFailedSync(t *testing.T) {
	for _, test := range failedSyncs {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			id := failSync(t, path, test.commit)
			require.FileExists(t, MarkPath(path))
			before, err := os.Stat(path)
			require.NoError(t, err)

			r, err := OpenReader(path)
			require.NoError(t, err, "reading is possible meanwhile")
			require.NoError(t, r.Close())
			require.FileExists(t, MarkPath(path), "and repairs nothing")

			q := openAt(t, path, nil)
			after, err := os.Stat(path)
			require.NoError(t, err)
			require.False(t, os.SameFile(before, after), "it is a copy")
			require.Equal(t, before.Mode(), after.Mode())
			require.Len(t, snapshot(t, filepath.Dir(path)), 1, "nothing else is left in the folder")
			require.NotNil(t, find(t, q, id))
			require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
			add(t, q, nil)
		})
	}
}

// Rule: whatever the system shows of the failed transaction's pages, none of it is used: it may
// be a mixture of old and new pages.
func TestRepairedFileUsesNothingOfTheFailedTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	var before []byte
	id := failSync(t, path, func(tx *bbolt.Tx) error {
		var err error
		before, err = os.ReadFile(path)
		require.NoError(t, err)
		return failedSyncs[0].commit(tx)
	})
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	metas, err := pages.Metas(mustOpen(t, path))
	require.NoError(t, err)
	size, lost := int(metas[0].PageSize), 0
	for at := 2 * size; at < len(b); at += size { // except its meta page
		if at >= len(before) || string(b[at:at+size]) != string(before[at:at+size]) {
			clear(b[at : at+size])
			lost++
		}
	}
	require.Positive(t, lost)
	require.NoError(t, os.WriteFile(path, b, 0o600))

	q := openAt(t, path, nil)
	require.NotNil(t, find(t, q, id))
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
}

func mustOpen(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Rule: a file that cannot be copied is not opened and is unchanged, and the error says what to
// do.
func TestFileThatCannotBeRepaired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	failSync(t, path, failedSyncs[0].commit)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	metas, err := pages.Metas(mustOpen(t, path))
	require.NoError(t, err)
	b[uint64(metas[1].PageSize)*metas[1].Page+metaTxid] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	before := snapshot(t, filepath.Dir(path))
	_, err = Open(path, quiet())
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.ErrorContains(t, err, "the meta page of the transaction before is damaged")
	require.ErrorContains(t, err, "save what is sound to another one with Salvage")
	require.Equal(t, before, snapshot(t, filepath.Dir(path)))
	lockFree(t, path)
}

// Rule: if the marker cannot be parsed, the file is copied unchanged.
func TestMarkThatCannotBeUnderstood(t *testing.T) {
	for _, text := range []string{"", "no mark", fmt.Sprintf(markFirst, 1, 2, 3) + "and more", string(make([]byte, 1<<20))} {
		path := filepath.Join(t.TempDir(), "jobs.db")
		require.NoError(t, os.WriteFile(path, soundFile(t), 0o600))
		require.NoError(t, os.WriteFile(MarkPath(path), []byte(text), 0o600))
		q := openAt(t, path, nil)
		require.Equal(t, pawl.Counts{Ready: 2, Delayed: 1, Dead: 1}, countsOf(t, q, pawl.DefaultQueue))
		require.Len(t, snapshot(t, filepath.Dir(path)), 1)
	}
}

// Rule: the marker of the first failure stays, and a failure to leave it is reported.
func TestMark(t *testing.T) {
	if !dbfile.CanLock {
		t.Skip("needs flock: without it there are no marks")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	require.NoError(t, os.WriteFile(path, soundFile(t), 0o600))
	require.NoError(t, dbfile.Mark(path, 7))
	require.NoError(t, dbfile.Mark(path, 8))
	failed, ok, err := dbfile.Marked(path)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 7, failed.Transaction)
	require.Error(t, dbfile.Mark(filepath.Join(path, "nowhere"), 7))
}

// Rule: a marker left for another file of the same name undoes nothing in this file.
func TestMarkOfAnotherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	failSync(t, path, failedSyncs[0].commit)
	other := filepath.Join(t.TempDir(), "other.db")
	q, err := Open(other, quiet())
	require.NoError(t, err)
	fill(t, q, 500, "q")
	require.NoError(t, q.Close())
	m, err := pages.Newest(mustOpen(t, other))
	require.NoError(t, err)
	failed, _, err := dbfile.Marked(path)
	require.NoError(t, err)
	require.NoError(t, os.Rename(other, path)) // with a transaction of the same number
	text := fmt.Sprintf(markFirst, m.TxID, failed.Root, failed.Pages)
	require.NoError(t, os.WriteFile(MarkPath(path), []byte(text), 0o600))
	q = openAt(t, path, nil)
	require.Equal(t, 500, countsOf(t, q, "q").Ready)
	require.NoFileExists(t, MarkPath(path))
}

// Rule: a marker whose removal is undone by a crash undoes nothing of the repaired file, whose
// next transaction has the number of the failed one.
func TestMarkThatComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	failSync(t, path, failedSyncs[0].commit)
	removed := filepath.Join(t.TempDir(), "removed")
	require.NoError(t, os.Link(MarkPath(path), removed))
	q, err := Open(path, quiet())
	require.NoError(t, err)
	add(t, q, nil)
	crashed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.NoError(t, os.WriteFile(path, crashed, 0o600))
	require.NoError(t, os.Rename(removed, MarkPath(path)))
	require.Equal(t, pawl.Counts{Ready: 2}, countsOf(t, openAt(t, path, nil), pawl.DefaultQueue))
	require.NoFileExists(t, MarkPath(path))
}

// Rule: the file is repaired whatever the process's working directory is, and under whichever
// name the file is opened next.
func TestMarkLiesBesideTheFile(t *testing.T) {
	folder, links := t.TempDir(), t.TempDir()
	path, link := filepath.Join(folder, "jobs.db"), filepath.Join(links, "link.db")
	require.NoError(t, os.Symlink(path, link))
	t.Chdir(folder)
	for name, insecure := range map[string]bool{"jobs.db": false, link: true} {
		require.NoError(t, openers[0].open(path))
		o := quiet()
		o.Insecure = insecure
		q, err := Open(name, o)
		require.NoError(t, err)
		t.Chdir(links)
		replaceCommit(t, q, failedSyncs[0].commit)
		require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), pawl.ErrUnknownOutcome)
		require.NoError(t, q.Close())
		require.Equal(t, dbfile.CanLock, snapshot(t, folder)[MarkPath("jobs.db")] != "")
		t.Chdir(folder)
		require.NoError(t, openers[0].open(path))
		require.Len(t, snapshot(t, folder), 1)
		require.Len(t, snapshot(t, links), 1)
	}
}

// Rule: a failed sync poisons the queue even if no marker can be left, whatever the error of
// that is.
func TestMarkThatCannotBeLeft(t *testing.T) {
	if !dbfile.CanLock {
		t.Skip("needs flock: without it there are no marks")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(MarkPath(path), 0o700))
	replaceCommit(t, q, failedSyncs[0].commit)
	err = withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.ErrorContains(t, err, "open a copy of the file")
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), pawl.ErrPoisoned)
	require.NoError(t, q.Close())
}

// Rule: a pipe with the name of a marker delays no process and is not a marker.
func TestMarkThatIsAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	require.NoError(t, openers[0].open(path))
	makePipe(t, MarkPath(path))
	openAt(t, path, nil)
	require.Error(t, dbfile.Mark(path, 1), "and it is told that none could be left")
}

// Rule: a queue over an app's database does not continue after a failed sync.
func TestOverAMarkedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	failSync(t, path, failedSyncs[0].commit)
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	_, err = Over(db, quiet())
	require.ErrorIs(t, err, pawl.ErrPoisoned)
	require.ErrorContains(t, err, "open and close the file once with Open")
	require.NoError(t, db.Close())

	require.NoError(t, openers[0].open(path))
	db, err = bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	q, err := Over(db, quiet())
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.NoError(t, db.Close())
}

// Rule: a write refused by the disk leaves no marker.
func TestNoMarkAfterARefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	replaceCommit(t, q, func(*bbolt.Tx) error { return refusals[0] })
	require.ErrorIs(t, withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"}), ErrDisk)
	replaceCommit(t, q, (*bbolt.Tx).Commit)
	require.NoError(t, q.Close())
	require.NoFileExists(t, MarkPath(path))
}

// Rule: a refused commit that is visible anyway, since half of its meta page was written, does
// not count as one that had no effect.
func TestTornMetaPageIsNoRefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	id := add(t, q, nil).ID
	replaceCommit(t, q, func(tx *bbolt.Tx) error {
		if err := tx.Commit(); err != nil {
			panic(err)
		}
		return refusals[0]
	})
	err = withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "torn"})
	require.ErrorIs(t, err, pawl.ErrUnknownOutcome)
	require.NotErrorIs(t, err, ErrDisk)
	require.NoError(t, q.Close())
	if !dbfile.CanLock {
		return
	}
	q = openAt(t, path, nil)
	require.NotNil(t, find(t, q, id))
	require.Equal(t, pawl.Counts{Ready: 1}, countsOf(t, q, pawl.DefaultQueue))
}

// Rule: a marker is readable by its owner alone, and a link in its place is not followed.
func TestMarkIsTheOwnersOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs the modes and links of Unix")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	require.NoError(t, openers[0].open(path))
	require.NoError(t, dbfile.Mark(path, 7))
	info, err := os.Stat(MarkPath(path))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	target := path + ".target"
	require.NoError(t, os.Rename(MarkPath(path), target))
	require.NoError(t, os.Symlink(target, MarkPath(path)))
	_, _, err = dbfile.Marked(path)
	require.Error(t, err)
}

// Rule: a file with a damaged page does not replace the marked file.
func TestMarkedFileWithADamagedPageStays(t *testing.T) {
	if !dbfile.CanLock {
		t.Skip("needs flock: without it a file is not repaired")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	b := soundFile(t)
	for i := 2 * os.Getpagesize(); i < len(b); i++ {
		b[i] ^= 0xff
	}
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.NoError(t, os.WriteFile(MarkPath(path), []byte("a mark"), 0o600))
	before, err := os.Stat(path)
	require.NoError(t, err)
	_, err = Open(path, quiet())
	require.ErrorIs(t, err, pawl.ErrCorrupt)
	require.FileExists(t, MarkPath(path))
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "it is not replaced")
}
