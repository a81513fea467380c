package bolt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt/internal/dbfile"
	"github.com/gopawl/pawl/internal/withid"
)

// guarded opens a queue with one acknowledged job. Its file is not checked at the end.
func guarded(t *testing.T, path string) *Queue {
	t.Helper()
	q, err := Open(path, &Options{Logger: quiet().Logger, Insecure: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	add(t, q, func(e *pawl.Envelope) { e.Kind = "acknowledged" })
	return q
}

// otherQueue makes the file of another queue in the folder, with that many jobs.
func otherQueue(t *testing.T, folder string, jobs int) string {
	t.Helper()
	path := filepath.Join(folder, "other.db")
	q, err := Open(path, quiet())
	require.NoError(t, err)
	for range jobs {
		add(t, q, nil)
	}
	require.NoError(t, q.Close())
	return path
}

// Rule: a transaction that begins beside Close finds no fault in what the next process writes. A
// read of the file can still be in progress when the file is closed.
func TestNoFaultAfterClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	q := guarded(t, path)
	f, err := os.Open(path) // stays open, as the file does for a read in progress
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	g, err := dbfile.NewGuard(path, f, quiet().Logger)
	require.NoError(t, err)
	require.NoError(t, g.CloseDB(q.db))

	next := guarded(t, path)
	for range 3 {
		add(t, next, nil)
	}
	require.NoError(t, g.Content())
}

// Rule: a queue whose path no longer leads to its file acknowledges nothing more. It is
// poisoned and says what to do, Backup can save its file, and the file that replaced it is
// unchanged.
func TestReplacedFilePoisons(t *testing.T) {
	for _, test := range []struct {
		rule    string
		open    string
		replace func(folder, path, other string) error
	}{
		{"another file was renamed over it", "jobs.db", func(_, path, other string) error { return os.Rename(other, path) }},
		{"it was removed", "jobs.db", func(_, path, _ string) error { return os.Remove(path) }},
		{"it was renamed", "jobs.db", func(_, path, _ string) error { return os.Rename(path, path+".old") }},
		{"its folder was renamed", "jobs.db", func(folder, _, _ string) error { return os.Rename(folder, folder+".old") }},
		{"another file was linked to its name", "jobs.db", func(_, path, other string) error {
			return errors.Join(os.Remove(path), os.Link(other, path))
		}},
		{"its symbolic link leads elsewhere", "link.db", func(folder, _, other string) error {
			link := filepath.Join(folder, "link.db")
			return errors.Join(os.Remove(link), os.Symlink(other, link))
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folder := filepath.Join(memoryFolder(t), "queue")
			require.NoError(t, os.Mkdir(folder, 0o700))
			path, other := filepath.Join(folder, "jobs.db"), otherQueue(t, folder, 50)
			if test.open == "link.db" {
				q, err := Open(path, quiet())
				require.NoError(t, err)
				require.NoError(t, q.Close())
				require.NoError(t, os.Symlink("jobs.db", filepath.Join(folder, "link.db")))
			}
			q := guarded(t, filepath.Join(folder, test.open))
			before, err := os.ReadFile(other)
			require.NoError(t, err)
			require.NoError(t, test.replace(folder, path, other))

			err = withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "lost"})
			require.ErrorIs(t, err, pawl.ErrPoisoned)
			require.ErrorIs(t, err, ErrReplaced)
			require.ErrorContains(t, err, "jobctl db backup")
			<-q.Done()
			require.ErrorIs(t, q.Err(), pawl.ErrPoisoned)
			require.ErrorIs(t, q.Err(), ErrReplaced)

			saved := filepath.Join(memoryFolder(t), "saved.db")
			require.NoError(t, q.Backup(t.Context(), saved))
			require.ErrorIs(t, q.Close(), ErrReplaced)
			s := openAt(t, saved, nil)
			require.Contains(t, kindsOf(fetch(t, s, 9)), "acknowledged")
			for _, at := range []string{path, other} {
				if now, err := os.ReadFile(at); err == nil && at != path+".old" && len(now) == len(before) {
					require.True(t, bytes.Equal(before, now), "the other file was changed")
				}
			}
		})
	}
}

// Rule: if the path still leads to the file, the file was not replaced.
func TestPathThatStillLeadsToTheFile(t *testing.T) {
	folder := memoryFolder(t)
	t.Chdir(folder)
	q := guarded(t, "jobs.db")
	for _, harmless := range []func() error{
		func() error { return os.Chdir(os.TempDir()) },
		func() error { return os.Chmod(filepath.Join(folder, "jobs.db"), 0o640) },
		func() error { return os.Link(filepath.Join(folder, "jobs.db"), filepath.Join(folder, "link.db")) },
		func() error { return os.Truncate(filepath.Join(folder, "jobs.db"), 64<<20) },
	} {
		require.NoError(t, harmless())
		add(t, q, nil)
	}
	require.NoError(t, q.Close())
	require.NoError(t, os.Chdir(folder))
	checkFile(t, "jobs.db")
}

// overwrites are what other programs do to an open file.
var overwrites = []struct {
	rule string
	do   func(t *testing.T, path string)
}{
	{"emptied", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) }},
	{"cut behind the meta pages", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 8192)) }},
	{"cut within", func(t *testing.T, path string) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, min(info.Size(), 32<<10)/2))
	}},
	{"another queue copied over it", func(t *testing.T, path string) {
		b, err := os.ReadFile(otherQueue(t, memoryFolder(t), 50))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}},
	{"a text copied over it", func(t *testing.T, path string) {
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("a text\n"), 100_000), 0o600))
	}},
}

// lookers are the calls that read the file.
var lookers = []struct {
	name string
	look func(ctx context.Context, r *reader) error
}{
	{"View", func(ctx context.Context, r *reader) error {
		return r.View(ctx, func(tx *bbolt.Tx) error {
			return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
				return b.ForEachBucket(func(k []byte) error { return b.Bucket(k).ForEach(func(_, _ []byte) error { return nil }) })
			})
		})
	}},
	{"Stats", func(ctx context.Context, r *reader) error {
		_, err := r.Stats(ctx)
		return err
	}},
	{"Jobs", func(ctx context.Context, r *reader) error {
		for _, err := range r.Jobs(ctx, pawl.Filter{}) {
			return err
		}
		return nil
	}},
	{"Check", func(ctx context.Context, r *reader) error { return r.Check(ctx) }},
	{"WriteBackup", func(ctx context.Context, r *reader) error {
		_, err := r.WriteBackup(ctx, new(bytes.Buffer))
		return err
	}},
}

// Rule: if another program truncates or writes to the file, the queue is poisoned. Nothing
// crashes or gets stuck, every call returns a typed error, and the queue writes nothing more to
// the file.
func TestOverwrittenFilePoisons(t *testing.T) {
	for _, test := range overwrites {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			q := guarded(t, path)
			for range 30 {
				add(t, q, nil)
			}
			test.do(t, path)
			now, err := os.ReadFile(path)
			require.NoError(t, err)

			err = withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})
			require.ErrorIs(t, err, pawl.ErrPoisoned)
			require.ErrorIs(t, err, ErrOverwritten)
			require.NotErrorIs(t, err, pawl.ErrUnknownOutcome, "nothing was written")
			require.ErrorContains(t, err, "restore a backup")
			for _, l := range lookers {
				require.ErrorIs(t, l.look(t.Context(), &q.reader), ErrOverwritten, l.name)
			}
			require.ErrorIs(t, q.Update(t.Context(), func(*bbolt.Tx) error { return nil }), pawl.ErrPoisoned)
			require.ErrorIs(t, q.Close(), ErrOverwritten)
			requireContent(t, path, now)
			lockFree(t, path)
		})
	}
}

// Rule: a read that finds the file overwritten poisons the queue before anybody writes.
func TestReadOfAnOverwrittenFile(t *testing.T) {
	for _, test := range overwrites {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			q := guarded(t, path)
			r := otherQueue(t, memoryFolder(t), 60)
			reader, err := OpenReader(r)
			require.NoError(t, err)
			test.do(t, path)
			test.do(t, r)
			for _, l := range lookers {
				require.ErrorIs(t, l.look(t.Context(), &q.reader), ErrOverwritten, l.name)
				require.ErrorIs(t, l.look(t.Context(), &reader.reader), ErrOverwritten, l.name)
			}
			<-q.Done()
			require.ErrorIs(t, q.Close(), ErrOverwritten)
			require.NoError(t, reader.Close())
			lockFree(t, path)
			lockFree(t, r)
		})
	}
}

// Rule: Close reports what happened to the file and does not write to it.
func TestCloseOfAnOverwrittenFile(t *testing.T) {
	for _, test := range overwrites {
		t.Run(test.rule, func(t *testing.T) {
			path := filepath.Join(memoryFolder(t), "jobs.db")
			q := guarded(t, path)
			test.do(t, path)
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.ErrorIs(t, q.Close(), ErrOverwritten)
			requireContent(t, path, now)
			lockFree(t, path)
		})
	}
	t.Run("removed", func(t *testing.T) {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		q := guarded(t, path)
		require.NoError(t, os.Remove(path))
		require.ErrorIs(t, q.Close(), ErrReplaced)
	})
}

// requireContent requires that a file has the given content.
func requireContent(t *testing.T, path string, want []byte) {
	t.Helper()
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, now), "the file was changed")
}

// Rule: a file that is truncated during an app's transaction is an error of that transaction,
// in a read and in a write. The app's own panics are not recovered.
func TestFileCutAmidATransaction(t *testing.T) {
	readAll := func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketRoot).Bucket(bucketJobs).ForEach(func(_, _ []byte) error { return nil })
	}
	t.Run("View", func(t *testing.T) {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		q := guarded(t, path)
		require.PanicsWithValue(t, "mine", func() { _ = q.View(t.Context(), func(*bbolt.Tx) error { panic("mine") }) })
		err := q.View(t.Context(), func(tx *bbolt.Tx) error {
			require.NoError(t, os.Truncate(path, 0))
			return readAll(tx)
		})
		require.ErrorIs(t, err, ErrOverwritten)
		<-q.Done()
		require.ErrorIs(t, q.Close(), ErrOverwritten)
	})
	t.Run("Update", func(t *testing.T) {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		q := guarded(t, path)
		err := q.Update(t.Context(), func(tx *bbolt.Tx) error {
			require.NoError(t, os.Truncate(path, 0))
			return readAll(tx)
		})
		require.ErrorIs(t, err, pawl.ErrPoisoned)
		require.ErrorIs(t, err, ErrOverwritten)
		require.ErrorIs(t, q.Close(), ErrOverwritten)
		requireContent(t, path, []byte{})
	})
	t.Run("Update that reads nothing more", func(t *testing.T) {
		path := filepath.Join(memoryFolder(t), "jobs.db")
		q := guarded(t, path)
		err := q.Update(t.Context(), func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("mine"))
			return errors.Join(err, os.Truncate(path, 0))
		})
		require.ErrorIs(t, err, pawl.ErrPoisoned)
		require.ErrorIs(t, err, ErrOverwritten)
		require.NotErrorIs(t, err, pawl.ErrUnknownOutcome)
		require.ErrorIs(t, q.Close(), ErrOverwritten)
		requireContent(t, path, []byte{})
	})
}

// Rule: a queue over an app's database detects the same, and leaves the database to the app.
func TestOverAFileThatChanges(t *testing.T) {
	for _, test := range []struct {
		rule   string
		change func(path, other string) error
		want   error
	}{
		{"replaced", func(path, other string) error { return os.Rename(other, path) }, ErrReplaced},
		{"removed", func(path, _ string) error { return os.Remove(path) }, ErrReplaced},
		{"cut", func(path, _ string) error { return os.Truncate(path, 8192) }, ErrOverwritten},
	} {
		t.Run(test.rule, func(t *testing.T) {
			folder := memoryFolder(t)
			t.Chdir(folder)
			other := otherQueue(t, folder, 50)
			db, err := bbolt.Open("app.db", 0o600, nil)
			require.NoError(t, err)
			q, err := Over(db, quiet())
			require.NoError(t, err)
			for range 30 {
				add(t, q, nil)
			}
			t.Chdir(t.TempDir())
			require.NoError(t, db.Update(func(tx *bbolt.Tx) error { // the app commits too
				_, err := tx.CreateBucket([]byte("app"))
				return err
			}))
			add(t, q, nil)
			require.NoError(t, test.change(filepath.Join(folder, "app.db"), other))
			err = withid.Enqueue(t.Context(), q, &pawl.Envelope{Kind: "k"})
			require.ErrorIs(t, err, pawl.ErrPoisoned)
			require.ErrorIs(t, err, test.want)
			require.NoError(t, q.Close())
			require.NoError(t, db.Close())
		})
	}
}

// Rule: Over refuses a database whose path leads to another file by now, as when the file was
// compacted in place while bbolt waited for its lock.
func TestOverAFileThatWasReplaced(t *testing.T) {
	for rule, change := range map[string]func(path, other string) error{
		"replaced": func(path, other string) error { return os.Rename(other, path) },
		"removed":  func(path, _ string) error { return os.Remove(path) },
	} {
		t.Run(rule, func(t *testing.T) {
			folder := memoryFolder(t)
			other := otherQueue(t, folder, 1)
			path := filepath.Join(folder, "app.db")
			db, err := bbolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			defer db.Close()
			require.NoError(t, change(path, other))
			_, err = Over(db, quiet())
			require.ErrorIs(t, err, ErrReplaced)
		})
	}
}
