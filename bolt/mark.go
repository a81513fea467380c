package bolt

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
)

// markSuffix and the path of a queue's file are the path of its mark.
const markSuffix = "-failed-sync"

// markFirst is how a mark begins; the number of the transaction follows.
const markFirst = "pawl: a sync failed in transaction %d\n"

const markRest = "\nWhat the system shows of the file beside this one may differ from what the disk has.\n" +
	"The next Open makes a copy of the file as it was before that transaction, puts it in the\n" +
	"place of the file, and removes this mark. Do not remove it by hand.\n"

// mark leaves a mark beside a file whose sync failed in a transaction, for the next Open.
// It does what it can: the disk is in trouble.
func mark(path string, transaction int) error {
	f, err := os.OpenFile(path+markSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // the first failure counts
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, markFirst+markRest, transaction)
	err = errors.Join(err, f.Sync(), f.Close())
	return errors.Join(err, syncFolder(filepath.Dir(path)))
}

// marked reads the mark of a file. Transaction is 0 when there is one that cannot be
// understood.
func marked(path string) (transaction uint64, ok bool, err error) {
	f, err := os.OpenFile(path+markSuffix, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) {
		return 0, false, nil // the name of a mark may be longer than names can be, and then there is none
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return 0, false, err
	}
	_, _ = fmt.Fscanf(strings.NewReader(string(text)), markFirst, &transaction)
	return transaction, true, nil
}

// commitMarked commits a transaction of the queue's. When it fails for good, by a sync above
// all, it leaves a mark; what the disk refused, and nobody will see, is the caller's to
// handle.
func commitMarked(tx *bbolt.Tx, commit func(*bbolt.Tx) error) error {
	db, path, transaction := tx.DB(), tx.DB().Path(), tx.ID()
	err := commit(tx)
	switch {
	case err == nil:
		return nil
	case !refusedByDisk(err):
	case shows(db, transaction):
		err = fmt.Errorf("a part of the meta page was written: %v", err) // without its type: it is no refusal
	default:
		return err
	}
	if markErr := mark(path, transaction); markErr != nil {
		err = fmt.Errorf("%w (and the mark %s could not be left: %w; open a copy of the file)", err, path+markSuffix, markErr)
	}
	return err
}

// shows reports whether the file shows a transaction whose commit was refused: so much of
// its meta page was written as counts, and then no more.
func shows(db *bbolt.DB, transaction int) bool {
	newest := 0
	err := db.View(func(tx *bbolt.Tx) error {
		newest = tx.ID()
		return nil
	})
	return err != nil || newest >= transaction
}
