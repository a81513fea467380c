package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/gopawl/pawl"
)

// The app's bucket, and what is in it. Amounts are cents.
var (
	bucketLedger   = []byte("ledger")
	keyPlan        = []byte("plan")     // what the books were opened for, as JSON
	bucketAccounts = []byte("accounts") // name of an account -> its balance, as decimal text
	bucketJournal  = []byte("journal")  // number in sequence -> Entry, as JSON
)

const (
	bank           = "bank" // the account that fees go to
	openingBalance = 10_000_00
)

// Entry is what happened to two accounts.
type Entry struct {
	Transfer int  // its number
	Fee      bool // this is the fee of that transfer
	From, To string
	Amount   int64
}

var errFunds = errors.New("insufficient funds")

// books are the app's data in a transaction, for reading or for writing.
type books struct{ accounts, journal *bbolt.Bucket }

func booksIn(tx *bbolt.Tx) books {
	b := tx.Bucket(bucketLedger)
	return books{b.Bucket(bucketAccounts), b.Bucket(bucketJournal)}
}

// post moves the money and adds the entry to the journal. It does not look whether the
// journal has the entry: that a job runs to its ack once is the queue's word. After an
// error the transaction must be rolled back.
func (b books) post(e Entry) error {
	if _, err := b.add(e.To, e.Amount); err != nil {
		return err
	}
	left, err := b.add(e.From, -e.Amount)
	if err != nil {
		return err
	}
	if left < 0 && !e.Fee { // the bank takes its fee, whatever is there
		return errFunds
	}
	n, err := b.journal.NextSequence()
	if err != nil {
		return err
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return b.journal.Put(binary.BigEndian.AppendUint64(nil, n), value)
}

// add changes a balance and returns it.
func (b books) add(account string, amount int64) (int64, error) {
	balance, err := parseBalance(b.accounts.Get([]byte(account)))
	if err != nil {
		return 0, fmt.Errorf("account %q: %w", account, err)
	}
	balance += amount
	return balance, b.accounts.Put([]byte(account), formatBalance(balance))
}

func parseBalance(b []byte) (int64, error) { return strconv.ParseInt(string(b), 10, 64) }
func formatBalance(cents int64) []byte     { return strconv.AppendInt(nil, cents, 10) }

// openBooks opens the accounts and enqueues the transfers, all in one transaction: a
// kill leaves a file in which nothing was opened, or one that has everything.
func (l *ledger) openBooks(ctx context.Context) error {
	return l.q.Update(ctx, func(tx *bbolt.Tx) error {
		if b := tx.Bucket(bucketLedger); b != nil {
			return l.plan.check(b.Get(keyPlan), l.state)
		}
		b, err := tx.CreateBucket(bucketLedger)
		if err != nil {
			return err
		}
		accounts, err := b.CreateBucket(bucketAccounts)
		if err != nil {
			return err
		}
		if _, err := b.CreateBucket(bucketJournal); err != nil {
			return err
		}
		if err := accounts.Put([]byte(bank), formatBalance(0)); err != nil {
			return err
		}
		for i := range l.plan.Accounts {
			if err := accounts.Put([]byte(accountName(i)), formatBalance(openingBalance)); err != nil {
				return err
			}
		}
		value, err := json.Marshal(l.plan)
		if err != nil {
			return err
		}
		if err := b.Put(keyPlan, value); err != nil {
			return err
		}
		jobs, err := l.plan.jobs()
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(jobs, pawl.MaxBatchJobs) {
			if err := l.q.EnqueueTx(tx, batch...); err != nil {
				return err
			}
		}
		return nil
	})
}
