// Ledger moves money between accounts in the same file, or the same database, as the queue. Each transfer
// is a job that takes effect exactly once, however often the program is killed: the debit, the credit,
// the journal entry, the job for the fee and the ack are one transaction.
//
//	go run ./examples/ledger [-db PLACE] [-accounts N] [-transfers N] [-seed N]
//
// PLACE is a file, or the URL of a PostgreSQL database, such as postgres://app@db/app. It opens the
// accounts, works until every transfer is made or refused, and prints a statement. Kill it at any moment,
// start it again with the same arguments, and it continues. Run one at a time on one PLACE.
//
//   - books.go: the app's own data, wherever it is
//   - file.go: the books in a bucket beside the queue's, in a transaction of bbolt
//   - server.go: the books in tables beside the queue's, in a transaction of the server
//   - transfer.go: the jobs. A transfer without funds is rolled back and becomes dead; a successful one
//     enqueues its fee in the same transaction
//   - audit.go: invariants, checked from the books and the queue alone
//
// An app that already has a bbolt database adds the queue to it with [bolt.Over], and one that has a pool
// of connections with [postgres.Over]; the rest stays the same.
//
// Exit codes: 0 all transfers are settled and the books are right, 1 otherwise, 2 usage, 130
// interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	l := &ledger{out: stdout}
	flags := flag.NewFlagSet("ledger", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&l.db, "db", "ledger.db", "`place` of the accounts and the queue: a file, or a postgres:// URL")
	flags.IntVar(&l.plan.Accounts, "accounts", 10, "number of accounts")
	flags.IntVar(&l.plan.Transfers, "transfers", 1000, "number of transfers between them")
	flags.Uint64Var(&l.plan.Seed, "seed", 1, "seed of the random transfers")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 || l.plan.Accounts < 2 || l.plan.Transfers < 0 {
		fmt.Fprintln(stderr, "error: need at least 2 accounts, at least 0 transfers, and no arguments except flags")
		flags.Usage()
		return 2
	}
	err := l.run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; start it again with the same arguments to continue")
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

// ledger is one run of the program.
type ledger struct {
	db       string
	plan     plan
	out      io.Writer
	store    store
	progress progress
}

func (l *ledger) run(ctx context.Context) (err error) {
	l.store, err = openStore(ctx, l.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.store.Close()) }()

	if err := l.openBooks(ctx); err != nil {
		return err
	}
	s, err := audit(ctx, l.store)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.out, "%d transfers to go\n", s.waiting)
	l.progress = progress{out: l.out, made: s.made, all: l.plan.Transfers}

	// Each transfer is its own commit, so more slots would only wait for the disk of a file.
	w := worker.New(l.store, &worker.Options{Concurrency: 4, Logger: hclog.NewNullLogger()})
	worker.Handle(w, makeTransfer, l.transfer)
	worker.Handle(w, chargeFee, l.fee)
	if err := w.Drain(ctx, pawl.WaitFinished); err != nil {
		return err
	}
	if s, err = audit(ctx, l.store); err != nil {
		return err
	}
	s.print(l.out)
	if n := s.waiting + s.feesWaiting; n > 0 {
		return fmt.Errorf("%d jobs could not run; see: jobctl dead list", n)
	}
	return nil
}
