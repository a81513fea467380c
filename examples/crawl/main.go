// Crawl reads all Markdown documents below some folders, several at a time, and reports their words and
// links and which links are broken. It is one workflow that fans out into a branch for each document.
// Kill it at any moment and start it again with the same arguments: it reads only the remaining ones.
//
//	go run ./examples/crawl [-db FILE] [-name NAME] [-j N] [FILE or FOLDER...]
//
// In the folder of this library it reads the library's documents by default:
//
//	go run ./examples/crawl -name first
//
// A name identifies a crawl. With the same name, an interrupted crawl continues and a finished one
// reports again, even if the documents have changed; another name starts another crawl.
//
//   - flow.go: the workflow
//   - document.go: the analysis of a document
//
// Exit codes: 0 finished without broken links; 1 broken links or failure; 2 usage; 130 interrupted.
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
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(new(program).main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// program is one run of crawl.
type program struct {
	around []workflow.Middleware // set by tests

	db, name string
	what     Corpus
}

func (p *program) main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("crawl", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&p.db, "db", "crawl.db", "`file` with the crawls")
	flags.StringVar(&p.name, "name", "documents", "`name` of the crawl")
	flags.IntVar(&p.what.AtOnce, "j", 4, "number of documents to read at a time")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if p.what.Paths = flags.Args(); len(p.what.Paths) == 0 {
		p.what.Paths = []string{"README.md", "docs"}
	}
	if p.what.AtOnce < 1 {
		fmt.Fprintln(stderr, "error: -j must be at least 1")
		return 2
	}
	report, err := p.run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; start it again with the same arguments to continue")
		return 130
	case errors.Is(err, workflow.ErrConflict):
		fmt.Fprintf(stderr, "error: crawl %q has other arguments; use another -name\n", p.name)
		return 1
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	report.print(stdout)
	if report.Broken > 0 {
		return 1
	}
	return 0
}

func (p *program) run(ctx context.Context) (report Report, err error) {
	q, err := bolt.Open(p.db, &bolt.Options{
		MaxCrashes: bolt.NoMaxCrashes, // killing the program is not the fault of a crawl
		Logger:     hclog.NewNullLogger(),
	})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	e := workflow.Open(q, &workflow.Options{Middleware: p.around, Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Logger: hclog.NewNullLogger()})
	if err := e.Handle(ctx, w, crawl); err != nil {
		return report, err
	}
	h, err := crawl.Start(ctx, e, p.name, p.what)
	if err != nil {
		return report, err
	}
	if err := w.Drain(ctx, pawl.WaitFinished); err != nil {
		return report, err
	}
	return h.Result(ctx)
}
