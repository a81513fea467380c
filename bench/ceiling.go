package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// ceiling is the limit to approach: records of a fixed size that move through the states
// of a queue in one bbolt file, from one goroutine, by transactions of a fixed size. It
// checks nothing, encodes nothing, wakes nobody and answers nobody.
//
// A payload that is larger than a record lies in a bucket of its own and is written once,
// since moving it would only make the program slower. It is copied once, when it is claimed.
type ceiling struct {
	db        *bbolt.DB
	seq       uint64 // of the last record in ready
	claimed   uint64 // of the last record that was claimed
	completed uint64 // of the last record that was completed
	handed    []byte // the last payload, where whoever works on it would have it
}

const recordSize = 200

var (
	ceilingReady    = []byte("ready")
	ceilingLeased   = []byte("leased")
	ceilingDelayed  = []byte("delayed")
	ceilingPayloads = []byte("payloads")
)

func openCeiling(dir string) (*ceiling, error) {
	db, err := bbolt.Open(filepath.Join(dir, "ceiling.db"), 0o600, &bbolt.Options{
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
	})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		var errs []error
		for _, name := range [][]byte{ceilingReady, ceilingLeased, ceilingDelayed, ceilingPayloads} {
			_, err := tx.CreateBucket(name)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	return &ceiling{db: db}, err
}

func (c *ceiling) close() error { return c.db.Close() }

// step is one transaction: it stores so many records, claims up to so many that are
// ready, and completes all that an earlier one had claimed.
func (c *ceiling) step(store, claim int, payload []byte) error {
	return c.db.Update(func(tx *bbolt.Tx) error {
		ready, leased, payloads := tx.Bucket(ceilingReady), tx.Bucket(ceilingLeased), tx.Bucket(ceilingPayloads)
		for ; c.completed < c.claimed; c.completed++ {
			if err := leased.Delete(sequence(c.completed + 1)); err != nil {
				return err
			}
			if len(payload) > recordSize {
				if err := payloads.Delete(sequence(c.completed + 1)); err != nil {
					return err
				}
			}
		}
		ready.FillPercent = 0.9 // the keys come in order
		payloads.FillPercent = 0.9
		for range store {
			c.seq++
			if err := ready.Put(sequence(c.seq), make([]byte, recordSize)); err != nil {
				return err
			}
			if len(payload) > recordSize {
				if err := payloads.Put(sequence(c.seq), payload); err != nil {
					return err
				}
			}
		}
		cursor := ready.Cursor()
		k, v := cursor.First()
		claimed := make([][2][]byte, 0, claim)
		for ; k != nil && len(claimed) < claim; k, v = cursor.Next() {
			claimed = append(claimed, [2][]byte{k, v})
		}
		for _, row := range claimed {
			if err := leased.Put(row[0], row[1]); err != nil {
				return err
			}
			if err := ready.Delete(row[0]); err != nil {
				return err
			}
			c.claimed++
			if len(payload) > recordSize {
				c.handed = bytes.Clone(payloads.Get(row[0]))
			}
		}
		return nil
	})
}

func sequence(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
