// Crawler fetches all pages of six hosts, a few at a time and politely: one request of a host at a time, a
// bounded rate for each host, and turns among hosts. When a host answers 429 Too Many Requests, it asks
// that host no more until the time of Retry-After has passed, and goes on with the others.
//
//	go run ./examples/crawler [-j N]
//
// The hosts are its own, on loopback ports. One of them has ten times as many pages as each of the others,
// and two of them are busy once. They count what reaches them, and the program prints it:
//
//   - fetch.go: the limits, and the handler that fetches a page and enqueues its links
//   - web.go: the hosts
//
// It takes about three seconds. Exit codes: 0 done, 1 failure, 2 usage, 130 interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/tabwriter"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("crawler", flag.ContinueOnError)
	flags.SetOutput(stderr)
	slots := flags.Int("j", 2, "number of pages to fetch at a time")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 || *slots < 1 {
		fmt.Fprintln(stderr, "error: the only argument is -j, which is at least 1")
		flags.Usage()
		return 2
	}
	err := run(ctx, *slots, stdout)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted")
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, slots int, out io.Writer) (err error) {
	folder, err := os.MkdirTemp("", "pawl-crawler-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	q, err := bolt.Open(filepath.Join(folder, "queue.db"), &bolt.Options{
		Limits: map[string]pawl.Limits{pawl.DefaultQueue: polite},
		Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := pawl.Require(q, pawl.LimitKeys|pawl.FairKeys); err != nil {
		return err // another engine may not have them
	}
	w := newWeb()
	hosts, err := w.serve()
	if err != nil {
		return err
	}
	defer hosts.Close()
	c := crawler{q, &http.Client{Transport: hosts.transport()}}
	if err := c.crawl(ctx, slots, w.roots()...); err != nil {
		return err
	}
	report(out, w)
	return nil
}

// report prints what reached the hosts.
func report(out io.Writer, w *web) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "HOST\tPAGES\tAT ONCE\tIN A SECOND\tBUSY\tASKED WHILE BUSY\tDONE AFTER")
	for _, s := range w.sites {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d requests\n", s.name, s.served(), s.most, s.mostIn(polite.RatePerKey.Per), s.refused, s.whileBusy, s.done)
	}
	_ = t.Flush()
}
