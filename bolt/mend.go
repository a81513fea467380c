package bolt

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

// mend replaces a file that has a mark, and whose lock f has, by a copy of what it was
// before the transaction whose sync failed. After that, path leads to another file.
//
// The system may show what that transaction wrote and never write it to the disk, or show
// a part of it. What is older was synced, and the transaction has overwritten nothing that
// is needed for it. So the copy is of the transaction before, of which the disk has every
// page; and being a copy, it is written and synced anew.
func mend(path string, f *os.File, a access) (mended bool, err error) {
	failed, ok, err := marked(path)
	if err != nil || !ok || a.readOnly || !canLock {
		return false, err
	}
	a.log.Warn("a sync failed when the queue was last open; making a copy of the file as it was before", "path", path)
	if err := replaceByCopy(path, f, failed); err != nil {
		return false, fmt.Errorf("make a copy of the file, whose last sync failed: %w; check the disk, or save what is sound to another one with Salvage (jobctl db salvage)", err)
	}
	return true, nil
}

// replaceByCopy makes the copy, puts it in the place of path and removes the mark. A crash
// in between leaves the mark and either file, and the next Open begins anew.
func replaceByCopy(path string, f *os.File, failed failedSync) error {
	err := replaceFile(path, f, func(to *os.File) error { return copyBefore(to, f, failed) })
	if err != nil {
		return err
	}
	return errors.Join(ignoreNotExist(os.Remove(path+markSuffix)), atomicfile.SyncFolder(filepath.Dir(path)))
}

// replaceFile puts a new file, which fill writes, in the place of an old one whose lock the
// caller has. The new file has the mode and the owner of the old one, and must be a queue. It
// is on the disk before it has the name, so a crash leaves one or the other. It is locked
// before it has the name, so nobody else opens it early.
func replaceFile(path string, old *os.File, fill func(to *os.File) error) (err error) {
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
	if err := checkCopy(to.Name()); err != nil {
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
func checkCopy(path string) error {
	db, _, err := openDB(path, access{readOnly: true}, new(bbolt.Options))
	if errors.Is(err, ErrOlderFormat) {
		return nil // an upgrade comes later, or is the transaction that was taken back
	}
	if err != nil {
		return err
	}
	return db.Close()
}

// copyBefore copies a file as it was before the transaction that failed.
func copyBefore(to, from *os.File, failed failedSync) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, io.NewSectionReader(from, 0, info.Size())); err != nil {
		return unnamed(err)
	}
	return takeBack(to, failed)
}

// takeBack makes the older meta page of a file the one in force, if the newer one is that
// of the transaction that failed. It is not where that transaction's was never written, and
// where the mark is that of another file, which had this name before.
func takeBack(f *os.File, failed failedSync) error {
	metas, err := pages.Metas(f)
	if err != nil {
		return pageError(err)
	}
	newest := metas[0]
	if failed.transaction == 0 || newest.TxID != failed.transaction {
		return nil
	}
	if len(metas) == 1 {
		return fmt.Errorf("%w: the meta page of the transaction before is damaged", pawl.ErrCorrupt)
	}
	if older := metas[1]; older.TxID+1 != newest.TxID || older.Root != failed.root || older.Pages != failed.pages {
		return nil
	}
	const header = 16 // bytes of a page, which name it
	_, err = f.WriteAt(make([]byte, newest.PageSize-header), int64(newest.Page)*int64(newest.PageSize)+header)
	return unnamed(err)
}
