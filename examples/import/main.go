// Import reads a CSV file of names and amounts into a database: each row is a job, all rows are a group, and
// the callback of the group sums them up. Kill the program at any moment, start it again with the same
// arguments, and it continues. Each row is imported once, and there is one summary.
//
//		go run ./examples/import [-db FILE] CSV
//
//	  - main.go: the program, which ends when all jobs have ended
//	  - rows.go: its jobs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("import", flag.ContinueOnError)
	db := flags.String("db", "import.db", "`file` of the queue and the imported rows")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("usage: import [-db FILE] CSV")
	}
	path, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err // before a job for it is stored
	}
	q, err := bolt.Open(*db, &bolt.Options{Logger: hclog.NewNullLogger(), MaxCrashes: bolt.NoMaxCrashes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	if err := begin(ctx, q, path); err != nil {
		return err
	}
	w := worker.New(q, &worker.Options{Concurrency: 64, Logger: hclog.NewNullLogger()})
	handle(w, q)
	if err := w.Drain(ctx, pawl.WaitFinished); err != nil {
		return err
	}
	return report(ctx, q, path, out)
}

// begin makes the group of a file and enqueues the job that reads it, unless an earlier start has done so.
func begin(ctx context.Context, q *bolt.Queue, path string) error {
	summary, err := SumUp.Envelope(File{path})
	if err != nil {
		return err
	}
	err = group.Make(ctx, q, group.Group{Name: groupOf(path), Done: summary, Retain: 30 * 24 * time.Hour})
	if err != nil && !errors.Is(err, pawl.ErrConflict) {
		return err
	}
	_, err = ReadFile.Enqueue(ctx, q, File{path}, pawl.IdempotencyKey(path))
	return err
}
