// Workflows compares pawl's durable workflows with other libraries of such, in one run:
// every engine takes its turn in every round, in a process of its own, so that they share
// what the machine does meanwhile. It prints tables, and writes
// docs/workflows-performance.md.
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
	quick := flag.Bool("quick", false, "finish in under a minute: a short window, one round, no report")
	asJSON := flag.Bool("json", false, "print one JSON object a line, and write no report")
	only := flag.String("only", "", "run only the engines whose names match this regular expression")
	callers := flag.Int("callers", 0, "run only with so many callers")
	flag.StringVar(&r.disk, "dir", os.TempDir(), "a folder on the disk to measure")
	flag.StringVar(&r.profiles, "profile", "", "write a CPU profile of each trial into this folder")
	rounds := flag.Int("rounds", 0, "rounds (default 5, or 1 with -quick)")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; -h lists the flags", flag.Arg(0))
	case *rounds < 0:
		return fmt.Errorf("-rounds: %d is negative", *rounds)
	case *callers < 0:
		return fmt.Errorf("-callers: %d is negative", *callers)
	}
	r.size = fullSize
	if *quick {
		r.size = quickSize
	}
	if err := r.choose(*only, *callers, *rounds); err != nil {
		return err
	}
	if err := r.run(ctx); err != nil {
		return err
	}
	rep := report{results: r.results, engines: r.engines, size: r.size, failed: r.failed, untraced: r.untraced, load: r.load}
	if *asJSON {
		err := rep.json(os.Stdout)
		return errors.Join(err, rep.own())
	}
	rep.table(os.Stdout)
	if err := rep.own(); err != nil || *quick || *only != "" || *callers > 0 {
		return err // a report is of all engines at full size
	}
	return rep.write(filepath.Join("..", "..", "docs", "workflows-performance.md"), r.disk)
}
