// Steer is an app to try jobctl on. It enqueues jobs, runs them, and serves operators until it is
// stopped.
//
//	go run ./examples/steer [-db FILE] [-rate N]
//
// In another shell:
//
//	jobctl --db steer.db top
//
// The call of admin.Serve lets jobctl in while the app runs. Some mails find no mailbox and become dead,
// some find the server busy and are retried, and reports take a while. Kill it at any moment: the jobs
// are in the file, and the next start continues. Exit codes: 0 stopped, 1 failure, 2 usage.
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

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("steer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("db", "steer.db", "`file` of the queue")
	rate := flags.Int("rate", 20, "mails to enqueue per second; 0 for none")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *rate < 0 || *rate > 1000 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "error: -rate must be between 0 and 1000, and arguments are not allowed")
		return 2
	}
	if err := run(ctx, *path, *rate, stdout); err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, path string, rate int, out io.Writer) (err error) {
	q, err := bolt.Open(path, &bolt.Options{
		Logger:     hclog.NewNullLogger(), // jobctl shows dead jobs
		MaxCrashes: bolt.NoMaxCrashes,     // killing the program is not the fault of a job
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	server, err := admin.Serve(q, nil) // from here on jobctl --db works
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	w := worker.New(q, &worker.Options{
		Queues:      []string{"mail", "reports"},
		Concurrency: 4,
		Drain:       time.Second,
		Logger:      hclog.NewNullLogger(),
	})
	worker.Handle(w, SendMail, send)
	worker.Handle(w, Render, render)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	produced := make(chan error, 1)
	go func() {
		defer stop() // without a producer there is nothing to show
		produced <- produce(ctx, q, rate)
	}()
	fmt.Fprintf(out, "pid %d works on %s; stop it by ctrl-C\n", os.Getpid(), path)
	err = w.Run(ctx)
	stop()
	return errors.Join(err, <-produced)
}
