package dbfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl/internal/atomicfile"
	"github.com/gopawl/pawl/internal/pages"
)

// markSuffix follows the path of a queue's file in the path of its failed-sync marker.
const markSuffix = "-failed-sync"

// MarkPath returns the path of the failed-sync marker of a file.
func MarkPath(path string) string { return path + markSuffix }

// FailedSync is the content of a marker: the failed transaction, and the result of the previous
// transaction. The result shows whether the marker belongs to a file.
type FailedSync struct {
	Transaction uint64 // 0 if unknown
	Root, Pages uint64 // of the previous transaction; 0 if unknown
}

// markFirst is the start of a marker.
const markFirst = "pawl: a sync failed in transaction %d, behind one of root %d and %d pages\n"

const markRest = "\nWhat the system shows of the file beside this one may differ from what the disk has.\n" +
	"The next Open makes a copy of the file as it was before that transaction, puts it in the\n" +
	"place of the file, and removes this mark. Do not remove it by hand.\n"

// Mark leaves a marker beside a file whose sync failed in a transaction, for the next Open. It
// is best effort, since the disk is failing. On systems where files cannot be repaired, there
// are no markers.
func Mark(path string, transaction int) error {
	if !CanLock {
		return nil
	}
	if path == "" {
		return errors.New("the database was closed meanwhile, so its file has no name")
	}
	f, err := os.OpenFile(path+markSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if errors.Is(err, fs.ErrExist) {
		if _, ok, markErr := Marked(path); ok || markErr != nil {
			return markErr // the first failure counts
		}
	}
	if err != nil {
		return err
	}
	failed := before(path, uint64(transaction))
	_, err = fmt.Fprintf(f, markFirst+markRest, failed.Transaction, failed.Root, failed.Pages)
	err = errors.Join(err, f.Sync(), f.Close())
	return errors.Join(err, atomicfile.SyncFolder(filepath.Dir(path)))
}

// before finds the result of the transaction that precedes the given one.
func before(path string, transaction uint64) FailedSync {
	failed := FailedSync{Transaction: transaction}
	f, err := os.Open(path)
	if err != nil {
		return failed
	}
	defer f.Close()
	metas, _ := pages.Metas(f)
	for _, m := range metas {
		if m.TxID+1 == transaction {
			failed.Root, failed.Pages = m.Root, m.Pages
		}
	}
	return failed
}

// Marked reads the marker of a file. If there is none, or another user put it there, ok is
// false. It returns zero for content it cannot parse.
func Marked(path string) (failed FailedSync, ok bool, err error) {
	f, err := os.OpenFile(path+markSuffix, os.O_RDONLY|noFollow|noWait, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) {
		return failed, false, nil // a name that is too long for a marker has no marker
	}
	if err != nil {
		return failed, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return failed, false, err
	}
	if file, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || !ofOwner(info, file) {
		return failed, false, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return failed, false, err
	}
	if n, _ := fmt.Fscanf(strings.NewReader(string(text)), markFirst, &failed.Transaction, &failed.Root, &failed.Pages); n < 3 {
		failed = FailedSync{}
	}
	return failed, true, nil
}

// emptyMark makes the marker of a file undo nothing, durably.
func emptyMark(path string) error {
	f, err := os.OpenFile(path+markSuffix, os.O_WRONLY|os.O_TRUNC|noFollow, 0)
	if err != nil {
		return ignoreNotExist(err)
	}
	return errors.Join(atomicfile.Sync(f), f.Close())
}

// CommitMarked commits a transaction of the queue. If the outcome is unknown, usually because a
// sync failed, it leaves a marker. If the disk refused the commit, and no part of it can become
// visible, CommitMarked only returns the error.
func CommitMarked(tx *bbolt.Tx, commit func(*bbolt.Tx) error) error {
	db, path, transaction := tx.DB(), tx.DB().Path(), tx.ID()
	err := commit(tx)
	switch {
	case err == nil:
		return nil
	case !RefusedByDisk(err):
	case shows(db, transaction):
		err = fmt.Errorf("a part of the meta page was written: %v", err) // without its type, since the commit was not refused
	default:
		return err
	}
	if markErr := Mark(path, transaction); markErr != nil {
		err = fmt.Errorf("%w (and the mark %s could not be left: %v; open a copy of the file)", err, path+markSuffix, markErr) // without its type: the disk may have refused the marker, not the commit
	}
	return err
}

// shows reports whether the file shows a transaction whose commit was refused: the essential
// part of its meta page was written, but not the rest.
func shows(db *bbolt.DB, transaction int) bool {
	newest := 0
	err := db.View(func(tx *bbolt.Tx) error {
		newest = tx.ID()
		return nil
	})
	return err != nil || newest >= transaction
}
