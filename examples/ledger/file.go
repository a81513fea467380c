package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// The app's bucket and its content.
var (
	bucketLedger   = []byte("ledger")
	keyPlan        = []byte("plan")     // plan as JSON
	bucketAccounts = []byte("accounts") // account name -> balance as decimal text
	bucketJournal  = []byte("journal")  // sequence number -> Entry as JSON
)

// inFile is a store in a file.
type inFile struct{ *bolt.Queue }

func openFile(path string) (store, error) {
	q, err := bolt.Open(path, &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes, // killing the program is not the fault of a transfer
		Logger:     hclog.NewNullLogger(),
	})
	if err != nil {
		return nil, err
	}
	return inFile{q}, nil
}

func (s inFile) change(ctx context.Context, fn func(books) error) error {
	return s.Update(ctx, func(tx *bbolt.Tx) error { return fn(fileBooks{tx, s.Queue}) })
}

func (s inFile) view(ctx context.Context, fn func(books) error) error {
	return s.View(ctx, func(tx *bbolt.Tx) error { return fn(fileBooks{tx, s.Queue}) })
}

// fileBooks are books in a bucket beside those of the queue.
type fileBooks struct {
	tx *bbolt.Tx
	q  *bolt.Queue
}

func (b fileBooks) queue() pawl.Enqueuer    { return b.q.In(b.tx) }
func (b fileBooks) ack(l *pawl.Lease) error { return b.q.AckTx(b.tx, l) }
func (b fileBooks) accounts() *bbolt.Bucket { return b.tx.Bucket(bucketLedger).Bucket(bucketAccounts) }
func (b fileBooks) journal() *bbolt.Bucket  { return b.tx.Bucket(bucketLedger).Bucket(bucketJournal) }

func (b fileBooks) plan() ([]byte, error) {
	if all := b.tx.Bucket(bucketLedger); all != nil {
		return all.Get(keyPlan), nil
	}
	return nil, nil
}

func (b fileBooks) open(plan []byte, balances map[string]int64) error {
	all, err := b.tx.CreateBucket(bucketLedger)
	if err != nil {
		return err
	}
	if err := all.Put(keyPlan, plan); err != nil {
		return err
	}
	if _, err := all.CreateBucket(bucketJournal); err != nil {
		return err
	}
	accounts, err := all.CreateBucket(bucketAccounts)
	if err != nil {
		return err
	}
	for account, cents := range balances {
		if err := accounts.Put([]byte(account), formatBalance(cents)); err != nil {
			return err
		}
	}
	return nil
}

func (b fileBooks) add(account string, cents int64) (int64, error) {
	balance, err := parseBalance(b.accounts().Get([]byte(account)))
	if err != nil {
		return 0, fmt.Errorf("account %q: %w", account, err)
	}
	balance += cents
	return balance, b.accounts().Put([]byte(account), formatBalance(balance))
}

func (b fileBooks) record(e Entry) error {
	n, err := b.journal().NextSequence()
	if err != nil {
		return err
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return b.journal().Put(binary.BigEndian.AppendUint64(nil, n), value)
}

func (b fileBooks) read() (balances map[string]int64, journal []Entry, err error) {
	balances = make(map[string]int64)
	err = b.accounts().ForEach(func(account, value []byte) (err error) {
		balances[string(account)], err = parseBalance(value)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = b.journal().ForEach(func(_, value []byte) error {
		var e Entry
		err := json.Unmarshal(value, &e)
		journal = append(journal, e)
		return err
	})
	return balances, journal, err
}

func parseBalance(b []byte) (int64, error) { return strconv.ParseInt(string(b), 10, 64) }
func formatBalance(cents int64) []byte     { return strconv.AppendInt(nil, cents, 10) }
