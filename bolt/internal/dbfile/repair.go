package dbfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/atomicfile"
	"github.com/gopawl/pawl/internal/pages"
)

// repair handles a file with a failed-sync marker. It replaces the file by a copy of its
// content before the transaction whose sync failed. So path then leads to another file. F is
// the open file, and has its lock.
//
// The system may show what that transaction wrote without ever writing it to the disk, or may
// show only a part of it. Everything older was synced, and the transaction has not overwritten
// it. So the disk has every page of the previous transaction, and repair writes and syncs a
// copy of those pages.
func repair(path string, f *os.File, a Access) (repaired bool, err error) {
	failed, ok, err := Marked(path)
	if err != nil || !ok || a.ReadOnly || !CanLock {
		return false, err
	}
	a.Log.Warn("a sync failed when the queue was last open; making a copy of the file as it was before", "path", path)
	if err := replaceByCopy(path, f, a.Check, failed); err != nil {
		return false, fmt.Errorf("make a copy of the file, whose last sync failed: %w; check the disk, or save what is sound to another one with Salvage (jobctl db salvage)", err)
	}
	return true, nil
}

// replaceByCopy makes the copy, replaces path by it, and removes the marker. A crash in between
// leaves the marker and one of the files, and the next Open starts over. replaceByCopy empties
// the marker first. Otherwise, if the sync of its removal fails, the marker could come back
// after the copy has a transaction of the same number, and would undo that transaction.
func replaceByCopy(path string, f *os.File, check Check, failed FailedSync) error {
	err := Replace(path, f, check, func(to *os.File) error { return copyBefore(to, f, failed) })
	if err != nil {
		return err
	}
	if err := emptyMark(path); err != nil {
		return err
	}
	return errors.Join(ignoreNotExist(os.Remove(path+markSuffix)), atomicfile.SyncFolder(filepath.Dir(path)))
}

// Replace replaces an old file by a new file that fill writes. The caller has the lock of the
// old file. The new file has the mode and owner of the old one, and must be a queue. It is
// durable before it gets the name, so a crash leaves one file or the other. It is locked before
// it gets the name, so no other process opens it too early.
func Replace(path string, old *os.File, check Check, fill func(to *os.File) error) (err error) {
	folder := filepath.Dir(path)
	to, err := os.CreateTemp(folder, ".pawl-new-*")
	if err != nil {
		return unnamed(err)
	}
	defer func() {
		unlock(to)
		err = errors.Join(err, to.Close())
		if err != nil {
			err = errors.Join(err, ignoreNotExist(os.Remove(to.Name())))
		}
	}()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	if err := fill(to); err != nil {
		return err
	}
	if err := errors.Join(to.Chmod(info.Mode().Perm()), sameOwner(to, info)); err != nil {
		return err
	}
	if err := atomicfile.Sync(to); err != nil {
		return err
	}
	if err := checkCopy(to.Name(), check); err != nil {
		return err
	}
	if _, err := tryLock(to, false); err != nil {
		return err
	}
	if err := os.Rename(to.Name(), path); err != nil {
		return err
	}
	return atomicfile.SyncFolder(folder)
}

// checkCopy requires that a file is a queue.
func checkCopy(path string, check Check) error {
	db, _, err := Open(path, Access{ReadOnly: true, Check: check}, new(bbolt.Options))
	if errors.Is(err, ErrOlderFormat) {
		return nil // an upgrade may follow, or may be the transaction that was undone
	}
	if err != nil {
		return err
	}
	return db.Close()
}

// copyBefore copies a file in its state before the failed transaction.
func copyBefore(to, from *os.File, failed FailedSync) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, info.Size())); err != nil {
		return unnamed(err)
	}
	return takeBack(to, failed)
}

// takeBack makes the older meta page of a file current if the newer one belongs to the failed
// transaction. It does not if that transaction's meta page was never written, or if the marker
// belongs to another file that had this name before.
func takeBack(f *os.File, failed FailedSync) error {
	metas, err := pages.Metas(f)
	if err != nil {
		return pageError(err)
	}
	newest := metas[0]
	if failed.Transaction == 0 || newest.TxID != failed.Transaction {
		return nil
	}
	if len(metas) == 1 {
		return fmt.Errorf("%w: the meta page of the transaction before is damaged", pawl.ErrCorrupt)
	}
	if older := metas[1]; older.TxID+1 != newest.TxID || older.Root != failed.Root || older.Pages != failed.Pages {
		return nil
	}
	const header = 16 // size of the page header, which identifies the page
	_, err = f.WriteAt(make([]byte, newest.PageSize-header), int64(newest.Page)*int64(newest.PageSize)+header)
	return unnamed(err)
}
