package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/gopawl/pawl"
)

// Transfer is the payload of a transfer.
type Transfer struct {
	Number   int
	From, To string
	Cents    int64
}

// Fee is the payload of the fee for a successful transfer.
type Fee struct {
	Number int // of the transfer
	From   string
}

var (
	makeTransfer = pawl.Define[Transfer]("ledger.transfer")
	chargeFee    = pawl.Define[Fee]("ledger.fee", pawl.Priority(1)) // before further transfers
)

const feeCents = 25

// transfer is the handler of transfers. If change returns nil, the whole transaction is durable,
// including the ack. If it returns an error, or the process dies before the commit, nothing is, and
// the job has not happened.
func (l *ledger) transfer(ctx context.Context, job *pawl.Job[Transfer]) error {
	t := job.Args
	err := l.store.change(ctx, func(b books) error {
		err := post(b, Entry{Transfer: t.Number, From: t.From, To: t.To, Amount: t.Cents})
		if errors.Is(err, errFunds) {
			return pawl.Permanent(err) // the job becomes dead; the credit is rolled back
		}
		if err != nil {
			return err
		}
		if _, err := chargeFee.Enqueue(ctx, b.queue(), Fee{t.Number, t.From}); err != nil {
			return err
		}
		return b.ack(job.Lease)
	})
	if err == nil {
		l.progress.add()
	}
	return err
}

// fee is the handler of fees.
func (l *ledger) fee(ctx context.Context, job *pawl.Job[Fee]) error {
	f := job.Args
	return l.store.change(ctx, func(b books) error {
		if err := post(b, Entry{Transfer: f.Number, Fee: true, From: f.From, To: bank, Amount: feeCents}); err != nil {
			return err
		}
		return b.ack(job.Lease)
	})
}

// plan is the configuration of a ledger.
type plan struct {
	Accounts, Transfers int
	Seed                uint64
}

// check compares the plan with that of the books.
func (p plan) check(stored []byte) error {
	var of plan
	if err := json.Unmarshal(stored, &of); err != nil {
		return fmt.Errorf("plan of the books: %w", err)
	}
	if of != p {
		return fmt.Errorf("the books were opened with -accounts %d -transfers %d -seed %d; use the same flags, or another -db",
			of.Accounts, of.Transfers, of.Seed)
	}
	return nil
}

// jobs returns the transfers. Amounts are up to half of an opening balance, so some accounts lack
// funds.
func (p plan) jobs() (jobs []*pawl.Envelope, err error) {
	random := rand.New(rand.NewPCG(p.Seed, 0))
	for n := range p.Transfers {
		from := random.IntN(p.Accounts)
		to := (from + 1 + random.IntN(p.Accounts-1)) % p.Accounts
		job, err := makeTransfer.Envelope(Transfer{
			Number: n + 1, From: accountName(from), To: accountName(to), Cents: 1 + random.Int64N(openingBalance/2),
		})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

func accountName(i int) string { return fmt.Sprintf("account %04d", i+1) }

// progress prints a line for each 5 % of the transfers.
type progress struct {
	out io.Writer
	all int

	mu   sync.Mutex
	made int
}

func (p *progress) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	if p.made%max(p.all/20, 1) == 0 {
		fmt.Fprintf(p.out, "%d of %d made\n", p.made, p.all)
	}
}
