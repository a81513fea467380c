// Steer is an app to try jobctl on: it enqueues jobs and works on them for as long as it
// runs, and lets operators in.
//
//	go run ./examples/steer [-db FILE] [-rate N]
//
// In another shell:
//
//	jobctl --db steer.db top
//
// The one call that lets jobctl in while the app runs is admin.Serve. Some of its mails find
// no mailbox and end as dead letters, some find the server busy and are tried again, and its
// reports take a while. Kill it whenever you like: what it had enqueued is in the file, and the
// next start goes on with it. Exit codes: 0 stopped, 1 it failed, 2 usage.
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
	rate := flags.Int("rate", 20, "mails to enqueue in a second, 0 for none")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *rate < 0 || *rate > 1000 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "error: -rate is not between 0 and 1000, or there is an argument that is no flag")
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
		Logger:     hclog.NewNullLogger(), // dead letters are looked at by jobctl
		MaxCrashes: bolt.NoMaxCrashes,     // this program is there to be killed
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
