// Bench compares pawl with other queues, with what bbolt can do at best, and with other libraries of
// durable workflows. All systems of a comparison run in one run and take turns in every round, so that
// they share the machine's conditions. It prints tables, and writes docs/performance.md with its chart,
// docs/workflows-performance.md, and docs/postgres-performance.md. The comparisons over Redis, and over SQLite,
// beanstalkd, and NATS, and of schedules, have no page.
//
//	go run . [queues | workflows | postgres | redis | engines | endurance | recurring] [flags]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gopawl/pawl/bench/recurring"
	"github.com/gopawl/pawl/bench/workflows"
)

func main() {
	if child() || workflows.Child() || recurring.Child() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the command line. A comparison with all systems at full size writes its report.
type options struct {
	quick, json       bool
	only, cases, disk string
	rounds, callers   int
	profiles          string
}

func run(ctx context.Context, args []string) error {
	what := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		what, args = args[0], args[1:]
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.BoolVar(&o.quick, "quick", false, "finish in about a minute: smaller cases, one round, no report")
	flags.BoolVar(&o.json, "json", false, "print one JSON object per line, and write no report")
	flags.StringVar(&o.only, "only", "", "run only the systems whose names match this regular expression")
	flags.StringVar(&o.disk, "dir", os.TempDir(), "a folder on the disk to measure")
	flags.IntVar(&o.rounds, "rounds", 0, "rounds of each case (default 3, 5 for workflows, or 1 with -quick)")
	flags.StringVar(&o.cases, "case", "", "only comparisons of queues: run only the cases whose names match this regular expression")
	flags.IntVar(&o.callers, "callers", 0, "only workflows: run only with this number of callers")
	flags.StringVar(&o.profiles, "profile", "", "only workflows: write a CPU profile of each trial into this folder")
	_ = flags.Parse(args) // exits on an error
	jobs := what != "workflows" && o.callers == 0 && o.profiles == ""
	flows := (what == "" || what == "workflows") && o.cases == ""
	switch {
	case !slices.Contains([]string{"", "queues", "workflows", "postgres", "redis", "engines", "endurance", "recurring"}, what):
		return fmt.Errorf("unknown comparison %q; use queues, workflows, postgres, redis, engines, endurance, recurring, or none for queues and workflows", what)
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; bench -h lists the flags", flags.Arg(0))
	case o.rounds < 0:
		return fmt.Errorf("-rounds: %d is negative", o.rounds)
	case o.callers < 0:
		return fmt.Errorf("-callers: %d is negative", o.callers)
	case !jobs && !flows:
		return errors.New("-case is for comparisons of queues, and -callers and -profile are for workflows")
	}
	if what == "recurring" {
		return recurring.Compare(ctx, os.Stdout, recurring.Options{Quick: o.quick, Disk: o.disk})
	}
	var r runner
	var w *workflows.Runner
	compared, page, picture := queues(), "performance.md", "performance.svg"
	switch what {
	case "postgres":
		compared, page, picture = onPostgres(), "postgres-performance.md", ""
	case "redis":
		compared, page, picture = onRedis(), "", ""
	case "engines":
		compared, page, picture = onEngines(), "", ""
	case "endurance":
		compared, page, picture = endurance(), "", ""
	}
	if jobs {
		r.disk, r.rounds, r.size = o.disk, o.rounds, fullSize
		if o.quick {
			r.size = quickSize
		}
		if err := r.choose(compared, o.cases, o.only); err != nil {
			return err
		}
	}
	if flows {
		var err error
		if w, err = workflows.New(workflows.Options{Quick: o.quick, Only: o.only, Callers: o.callers, Rounds: o.rounds,
			Disk: o.disk, Profiles: o.profiles}); err != nil {
			return err
		}
	}
	if jobs {
		if err := compareQueues(ctx, &r, o, page, picture); err != nil {
			return err
		}
	}
	if flows {
		page := filepath.Join("..", "docs", "workflows-performance.md")
		if o.quick || o.only != "" || o.callers > 0 {
			page = ""
		}
		return w.Compare(ctx, os.Stdout, o.json, page)
	}
	return nil
}

// compareQueues runs a comparison of queues and writes its report.
func compareQueues(ctx context.Context, r *runner, o options, page, picture string) error {
	results, err := r.run(ctx)
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing was written")
	}
	if err != nil {
		return err
	}
	if o.json {
		return results.JSON(os.Stdout)
	}
	c := comparison{
		subject: r.subject, results: results, servers: r.servers, absent: r.absent,
		size: r.size, rounds: r.rounds, disk: r.disk, load: r.load,
	}
	c.table(os.Stdout)
	if page == "" || o.quick || o.cases != "" || o.only != "" {
		return nil
	}
	return writeReport(filepath.Join("..", "docs", page), picture, c)
}
