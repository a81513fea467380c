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

// The app's bucket and its content. Amounts are in cents.
var (
	bucketLedger   = []byte("ledger")
	keyPlan        = []byte("plan")     // plan as JSON
	bucketAccounts = []byte("accounts") // account name -> balance as decimal text
	bucketJournal  = []byte("journal")  // sequence number -> Entry as JSON
)

const (
	bank           = "bank" // receives the fees
	openingBalance = 10_000_00
)

// Entry is a movement between two accounts.
type Entry struct {
	Transfer int  // number of the transfer
	Fee      bool // this is its fee
	From, To string
	Amount   int64
}

var errFunds = errors.New("insufficient funds")

// books is the app's data in a transaction.
type books struct{ accounts, journal *bbolt.Bucket }

func booksIn(tx *bbolt.Tx) books {
	b := tx.Bucket(bucketLedger)
	return books{b.Bucket(bucketAccounts), b.Bucket(bucketJournal)}
}

// post moves the money and adds the entry to the journal. It does not check for an earlier entry: the
// queue guarantees that a job is acked once. After an error the caller must roll back.
func (b books) post(e Entry) error {
	if _, err := b.add(e.To, e.Amount); err != nil {
		return err
	}
	left, err := b.add(e.From, -e.Amount)
	if err != nil {
		return err
	}
	if left < 0 && !e.Fee { // a fee may overdraw the account
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

// add changes a balance and returns the new one.
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

// openBooks opens the accounts and enqueues the transfers in one transaction, so a kill leaves either
// nothing or everything.
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
			if _, err := l.q.EnqueueTx(tx, batch...); err != nil {
				return err
			}
		}
		return nil
	})
}
