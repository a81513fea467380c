// Crawl reads all Markdown documents below some folders, several at a time, and reports how
// many words and links they have and which links lead nowhere. It is one workflow that fans
// out into a branch for each document, and in again: kill it at any moment and start it again
// with the same arguments, and it reads only what it had not read.
//
//	go run ./examples/crawl [-db FILE] [-name NAME] [-j N] [FILE or FOLDER...]
//
// Without arguments it reads the documents of this library, when it is started there:
//
//	go run ./examples/crawl -name first
//
// A name stands for one crawl. Started again with the same name, one that was interrupted goes
// on and one that is done reports once more, whatever the documents have become since; another
// name is another crawl.
//
//   - flow.go: the workflow
//   - document.go: what is counted in a document
//
// Exit codes: 0 it is read, and all links lead somewhere; 1 some do not, or it failed; 2
// usage; 130 interrupted.
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

// program is one run of crawl. A test sets what its user does not.
type program struct {
	around []workflow.Middleware // around every step

	db, name string
	what     Corpus
}

func (p *program) main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("crawl", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&p.db, "db", "crawl.db", "`file` of the crawls")
	flags.StringVar(&p.name, "name", "documents", "`name` of the crawl")
	flags.IntVar(&p.what.AtOnce, "j", 4, "how many documents are read at a time")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if p.what.Paths = flags.Args(); len(p.what.Paths) == 0 {
		p.what.Paths = []string{"README.md", "docs"}
	}
	if p.what.AtOnce < 1 {
		fmt.Fprintln(stderr, "error: -j is less than 1")
		return 2
	}
	report, err := p.run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; start it again with the same arguments to go on")
		return 130
	case errors.Is(err, workflow.ErrConflict):
		fmt.Fprintf(stderr, "error: crawl %q is one with other arguments; name this one by -name\n", p.name)
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
		MaxCrashes: bolt.NoMaxCrashes, // this program is there to be killed
		Logger:     hclog.NewNullLogger(),
	})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	e := workflow.Open(q, &workflow.Options{Around: p.around, Logger: hclog.NewNullLogger()})
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
