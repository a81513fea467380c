// Reports has three schedules in three time zones: a daily report in Berlin at an hour that daylight saving
// time skips once a year, the prices of Tokyo at the end of each trading day, and a weekly settlement in New
// York, which is a workflow.
//
//	go run ./examples/reports [-db FILE] [-at TIME]
//
// It fires them until it is interrupted. Stop or kill it at any moment, and start it again: each report comes
// as its schedule says, whatever was missed in between, and none comes twice.
//
// With -at, the program believes that it is this time, does what is due by then, prints the history of each
// schedule, and ends. So a month passes in a few starts:
//
//	go run ./examples/reports -at 2026-03-27T12:00:00Z
//	go run ./examples/reports -at 2026-03-30T12:00:00Z
//
// Exit codes: 0 done, 1 failure, 2 usage.
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
	_ "time/tzdata" // the machine may have no time zones

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("reports", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("db", "reports.db", "`file` with the schedules and jobs")
	at := flags.String("at", "", "the `time` to believe, as in 2026-03-30T12:00:00Z; the default is the real one")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	now := time.Now
	if *at != "" {
		t, err := time.Parse(time.RFC3339, *at)
		if err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return 2
		}
		now = func() time.Time { return t }
	}
	if err := run(ctx, *path, now, *at != "", stdout); err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

// Report says what a report is about.
type Report struct{ Title string }

var makeReport = pawl.Define[Report]("report")

// run works until ctx ends, or until everything is done that is due if once is set.
func run(ctx context.Context, path string, now func() time.Time, once bool, out io.Writer) (err error) {
	q, err := bolt.Open(path, &bolt.Options{Now: now, Logger: hclog.NewNullLogger()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	settle := workflow.Define("settle", func(r *workflow.Run, account string) (string, error) {
		return workflow.Step(r, "pay", func(context.Context) (string, error) {
			fmt.Fprintf(out, "settled the account of %s in run %s\n", account, r.ID())
			return "paid", nil
		})
	})
	e := workflow.Open(q, &workflow.Options{Logger: hclog.NewNullLogger()})
	w := worker.New(q, &worker.Options{Concurrency: 1, Logger: hclog.NewNullLogger()})
	if err := e.Handle(ctx, w, settle); err != nil {
		return err
	}
	worker.Handle(w, makeReport, func(_ context.Context, job *pawl.Job[Report]) error {
		tick, _ := schedule.TickOf(job.Envelope)
		fmt.Fprintf(out, "%s of %s, after %d that were missed\n", job.Args.Title, tick.Nominal.UTC().Format("2006-01-02 15:04 MST"), tick.Missed)
		return nil
	})

	s, err := schedule.Open(q, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Sync(ctx,
		schedule.Job("berlin", "30 2 * * *", makeReport, Report{"daily report"}, schedule.In("Europe/Berlin"),
			schedule.CatchUp(7), schedule.Overlap(schedule.Allow)),
		schedule.Job("tokyo", "0 15 * * MON-FRI", makeReport, Report{"prices"}, schedule.In("Asia/Tokyo")),
		schedule.Flow("new-york", "0 18 * * FRI", settle, "Ada", schedule.In("America/New_York")))
	if err != nil {
		return err
	}
	if !once {
		return w.Run(ctx)
	}
	if err := decided(ctx, s, now()); err != nil {
		return err
	}
	if err := w.Drain(ctx, pawl.WaitDrained); err != nil {
		return err
	}
	return show(ctx, s, out)
}

// decided waits until no schedule has anything due.
func decided(ctx context.Context, s *schedule.Scheduler, now time.Time) error {
	for ctx.Err() == nil {
		list, err := s.List(ctx, "", 10)
		if err != nil {
			return err
		}
		due := false
		for _, info := range list {
			due = due || !info.Due.After(now)
		}
		if !due {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ctx.Err()
}

// show prints the schedules with their latest decisions.
func show(ctx context.Context, s *schedule.Scheduler, out io.Writer) error {
	list, err := s.List(ctx, "", 10)
	if err != nil {
		return err
	}
	for _, info := range list {
		zone, err := time.LoadLocation(info.Terms.Zone)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s: %s; next %s\n", info.Name, info.Words, info.Next.In(zone).Format(time.RFC1123))
		history, err := s.History(ctx, info.Name, 0)
		if err != nil {
			return err
		}
		for _, e := range history {
			fmt.Fprintf(out, "  %-7s %s", e.Decision, e.First.In(zone).Format(time.RFC1123))
			if e.Ticks > 1 {
				fmt.Fprintf(out, " to %s", e.Last.In(zone).Format(time.RFC1123))
			}
			fmt.Fprintln(out)
		}
	}
	return nil
}
