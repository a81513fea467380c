// Bench compares pawl with other queues, and with what bbolt can do at best, in one run:
// every system takes its turn in every round of a case, so that they share what the
// machine does meanwhile. It prints a table, and writes docs/performance.md and its chart.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	if child() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var r runner
	quick := flag.Bool("quick", false, "finish in under a minute: smaller cases, one round, no report")
	asJSON := flag.Bool("json", false, "print one JSON object a line, and write no report")
	cases := flag.String("case", "", "run only the cases whose names match this regular expression")
	only := flag.String("only", "", "run only the systems whose names match this regular expression")
	flag.StringVar(&r.disk, "dir", os.TempDir(), "a folder on the disk to measure")
	flag.IntVar(&r.rounds, "rounds", 0, "rounds of each case (default 3, or 1 with -quick)")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; bench -h lists the flags", flag.Arg(0))
	case r.rounds < 0:
		return fmt.Errorf("-rounds: %d is negative", r.rounds)
	}
	r.size = fullSize
	if *quick {
		r.size = quickSize
	}
	if err := r.choose(*cases, *only); err != nil {
		return err
	}
	results, err := r.run(ctx)
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was written")
	}
	if err != nil {
		return err
	}
	if *asJSON {
		return printJSON(os.Stdout, results)
	}
	rep := report{
		results: results, systems: r.systems, servers: r.servers, absent: r.absent,
		size: r.size, rounds: r.rounds, disk: r.disk,
	}
	rep.table(os.Stdout)
	if *quick || *cases != "" || *only != "" {
		return nil // a report is of all cases and systems
	}
	return writeReport(filepath.Join("..", "docs", "performance.md"), "performance.svg", rep)
}
