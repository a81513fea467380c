package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
)

// Amounts are in cents.
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

// store is a queue with the books beside it: in one file, or in one database.
type store interface {
	pawl.Queue
	reader
	Close() error

	// change runs fn in one transaction of the books and the queue. If change returns nil, everything
	// has happened, and if it returns an error, nothing.
	change(ctx context.Context, fn func(books) error) error
}

// reader is a store that may be closed for writing.
type reader interface {
	view(ctx context.Context, fn func(books) error) error
	Jobs(ctx context.Context, f pawl.Filter) iter.Seq2[*pawl.Envelope, error]
}

// books are the app's data in a transaction, and what the app does with the queue in the same one.
type books interface {
	// plan returns the plan that the books were opened with, or nil if they are not open.
	plan() ([]byte, error)
	open(plan []byte, balances map[string]int64) error

	add(account string, cents int64) (balance int64, err error)
	record(e Entry) error
	read() (balances map[string]int64, journal []Entry, err error)

	queue() pawl.Enqueuer
	ack(l *pawl.Lease) error
}

// openStore opens a file, or the database of a URL.
func openStore(ctx context.Context, place string) (store, error) {
	if strings.Contains(place, "://") {
		return openServer(ctx, place)
	}
	return openFile(place)
}

// post moves the money and adds the entry to the journal. It does not check for an earlier entry: the
// queue guarantees that a job is acked once. After an error the caller must roll back.
func post(b books, e Entry) error {
	change := map[string]int64{e.From: -e.Amount, e.To: e.Amount}
	for _, account := range slices.Sorted(slices.Values([]string{e.From, e.To})) { // one order of locks, so no deadlock
		left, err := b.add(account, change[account])
		if err != nil {
			return err
		}
		if account == e.From && left < 0 && !e.Fee { // a fee may overdraw the account
			return errFunds
		}
	}
	return b.record(e)
}

// openBooks opens the accounts and enqueues the transfers in one transaction, so a kill leaves either
// nothing or everything.
func (l *ledger) openBooks(ctx context.Context) error {
	return l.store.change(ctx, func(b books) error {
		stored, err := b.plan()
		if err != nil {
			return err
		}
		if stored != nil {
			return l.plan.check(stored)
		}
		balances := map[string]int64{bank: 0}
		for i := range l.plan.Accounts {
			balances[accountName(i)] = openingBalance
		}
		plan, err := json.Marshal(l.plan)
		if err != nil {
			return err
		}
		if err := b.open(plan, balances); err != nil {
			return fmt.Errorf("open the books: %w", err)
		}
		jobs, err := l.plan.jobs()
		if err != nil {
			return err
		}
		for batch := range slices.Chunk(jobs, pawl.MaxBatchJobs) {
			if _, err := b.queue().Enqueue(ctx, batch...); err != nil {
				return err
			}
		}
		return nil
	})
}
