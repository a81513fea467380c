// Onboarding welcomes new customers during a week: a mail at once, another after two days for those who
// have not begun, a third at the end of the week. Each customer is a workflow that sleeps for days.
// Between the mails it is a row in a file, and no process needs to run.
//
//	go run ./examples/onboarding [-db FILE] [-day DURATION] [ADDRESS...]
//
// It signs up the addresses, once each, and works until nobody waits for a mail. To watch it, make a day
// last a second:
//
//	go run ./examples/onboarding -day 1s ada@example.com grace@example.com
//
// Stop or kill it and start it again, with or without addresses: a mail that was sent and recorded is not
// sent again, and overdue mails are sent at once. While it runs, this signals that a customer has begun:
//
//	jobctl --db onboarding.db wf signal onboarding:ada@example.com begun '"a first project"'
//
// The test in main_test.go passes the week in no time with package workflowtest.
//
// Exit codes: 0 all customers are done, 1 failure, 2 usage, 130 interrupted.
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
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("onboarding", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("db", "onboarding.db", "`file` with the customers")
	day := flags.Duration("day", 24*time.Hour, "length of a day for new customers")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *day <= 0 {
		fmt.Fprintln(stderr, "error: -day must be positive")
		return 2
	}
	err := run(ctx, *path, *day, flags.Args(), stdout)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; start it again to continue")
		return 130
	}
	fmt.Fprintln(stderr, "error:", err)
	return 1
}

func run(ctx context.Context, path string, day time.Duration, addresses []string, out io.Writer) (err error) {
	q, err := bolt.Open(path, &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes, // killing the program is not the fault of a customer
		Logger:     hclog.NewNullLogger(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	server, err := admin.Serve(q, nil) // lets jobctl in
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	onboarding := newFlow(&printer{out: out})
	e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	if err := e.Handle(ctx, w, onboarding); err != nil {
		return err
	}
	for _, address := range addresses {
		_, err := onboarding.Start(ctx, e, address, Customer{Address: address, Day: day})
		if errors.Is(err, workflow.ErrConflict) {
			fmt.Fprintf(out, "%s has already signed up, with another -day\n", address)
		} else if err != nil {
			return err
		}
	}
	return w.Drain(ctx, pawl.WaitFinished) // waits for sleeping workflows too
}
