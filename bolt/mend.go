package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gopawl/pawl"
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
	transaction, ok, err := marked(path)
	if err != nil || !ok || a.readOnly || !canLock {
		return false, err
	}
	a.log.Warn("a sync failed when the queue was last open; making a copy of the file as it was before", "path", path)
	if err := replaceByCopy(path, f, transaction); err != nil {
		return false, fmt.Errorf("make a copy of the file, whose last sync failed: %w; check the disk, or save what is sound to another one with Salvage (jobctl salvage)", err)
	}
	return true, nil
}

// replaceByCopy makes the copy, puts it in the place of path and removes the mark. A crash
// in between leaves the mark and either file, and the next Open begins anew.
func replaceByCopy(path string, f *os.File, transaction uint64) (err error) {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	copied, err := os.CreateTemp(folder, ".pawl-new-*")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, copied.Close())
		if err != nil {
			err = errors.Join(err, ignoreNotExist(os.Remove(copied.Name())))
		}
	}()
	_, err = io.Copy(copied, io.NewSectionReader(f, 0, info.Size()))
	if err == nil {
		err = takeBack(copied, transaction)
	}
	if err == nil {
		err = pageError(pages.Check(context.Background(), copied, info.Size(), pages.Full))
	}
	if err == nil {
		err = errors.Join(copied.Chmod(info.Mode().Perm()), copied.Sync())
	}
	if err == nil {
		err = os.Rename(copied.Name(), path)
	}
	if err == nil {
		err = syncFolder(folder)
	}
	if err == nil {
		err = errors.Join(os.Remove(path+markSuffix), syncFolder(folder))
	}
	return unnamed(err)
}

// takeBack makes the older meta page of a file the one in force, if the newer one is that
// of the transaction.
func takeBack(f *os.File, transaction uint64) error {
	metas, err := pages.Metas(f)
	if err != nil {
		return pageError(err)
	}
	if metas[0].TxID != transaction {
		return nil // its meta page was not written
	}
	if len(metas) == 1 {
		return fmt.Errorf("%w: the meta page of the transaction before is damaged", pawl.ErrCorrupt)
	}
	const header = 16 // bytes of a page, which name it
	_, err = f.WriteAt(make([]byte, metas[0].PageSize-header), int64(metas[0].Page)*int64(metas[0].PageSize)+header)
	return err
}
