package power

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// absent is the digest of an absent file.
const absent = "absent"

// digestOf hashes every row of a file: names and sequences of buckets, keys, values. Their
// position does not count, so a copy has the digest of its original.
func digestOf(tx *bbolt.Tx) (string, error) {
	d := digest{sum: sha256.New()}
	err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error { return d.bucket(name, b) })
	return hex.EncodeToString(d.sum.Sum(nil)[:16]), err
}

type digest struct {
	sum   hash.Hash
	width [8]byte
}

func (d *digest) number(n uint64) {
	binary.BigEndian.PutUint64(d.width[:], n)
	d.sum.Write(d.width[:])
}

func (d *digest) bytes(b []byte) {
	d.number(uint64(len(b)))
	d.sum.Write(b)
}

func (d *digest) bucket(name []byte, b *bbolt.Bucket) error {
	d.sum.Write([]byte("bucket"))
	d.bytes(name)
	if b == nil {
		return fmt.Errorf("%q is no bucket", name)
	}
	d.number(b.Sequence())
	err := b.ForEach(func(k, v []byte) error {
		if v == nil {
			return d.bucket(k, b.Bucket(k))
		}
		d.sum.Write([]byte("row"))
		d.bytes(k)
		d.bytes(v)
		return nil
	})
	d.sum.Write([]byte("end"))
	return err
}

// inspect opens a file read-only with bbolt and returns its digest. If asked, bbolt checks
// every page. It uses no code of the queue, so that code cannot hide a fault.
func inspect(path string, check bool) (is string, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return absent, nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 10 * time.Second})
	if err != nil {
		return "", fmt.Errorf("bbolt cannot open the file: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bbolt.Tx) (err error) {
		if err := whole(tx, path); err != nil {
			return err
		}
		if is, err = digestOf(tx); err != nil || !check {
			return err
		}
		var wrong []error
		for e := range tx.Check() { // read all, since otherwise its goroutine would wait forever
			if len(wrong) < 5 {
				wrong = append(wrong, e)
			}
		}
		return errors.Join(wrong...)
	})
	return is, err
}

// whole requires that the file has all pages that bbolt may read. A page beyond its end would be a fault, in a goroutine
// of bbolt's check that nothing recovers.
func whole(tx *bbolt.Tx, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() >= tx.Size() {
		return err
	}
	return fmt.Errorf("the file has %d bytes of %d", info.Size(), tx.Size())
}
