// Onboarding welcomes new customers over a week: a mail at once, another after two days to
// those who have not begun, a third at the end of the week. Each customer is a workflow that
// sleeps for days: between the mails there is a row in a file, and no process has to run.
//
//	go run ./examples/onboarding [-db FILE] [-day DURATION] [ADDRESS...]
//
// It signs the addresses up, once each, and works until nobody waits for a mail any more. To
// watch it, let a day pass in a second:
//
//	go run ./examples/onboarding -day 1s ada@example.com grace@example.com
//
// Stop or kill it and start it again, without addresses too: nobody gets a mail twice that was
// sent and written down, and what fell due meanwhile is sent at once. While it runs it can be
// told that a customer has begun:
//
//	jobctl --db onboarding.db wf signal onboarding:ada@example.com begun '"a first project"'
//
// The test (main_test.go) lives through the week in no time, by package workflowtest.
//
// Exit codes: 0 everybody is through, 1 it failed, 2 usage, 130 interrupted.
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
	path := flags.String("db", "onboarding.db", "`file` of the customers")
	day := flags.Duration("day", 24*time.Hour, "how long a day is for those who sign up")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *day <= 0 {
		fmt.Fprintln(stderr, "error: -day is not above 0")
		return 2
	}
	err := run(ctx, *path, *day, flags.Args(), stdout)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; start it again to go on")
		return 130
	}
	fmt.Fprintln(stderr, "error:", err)
	return 1
}

func run(ctx context.Context, path string, day time.Duration, addresses []string, out io.Writer) (err error) {
	q, err := bolt.Open(path, &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes, // this program is there to be killed
		Logger:     hclog.NewNullLogger(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	server, err := admin.Serve(q, nil) // lets jobctl in while it runs
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
			fmt.Fprintf(out, "%s has signed up already, with days of another length\n", address)
		} else if err != nil {
			return err
		}
	}
	return w.Drain(ctx, pawl.WaitFinished) // which waits for those who sleep
}
