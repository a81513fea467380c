package main

import (
	"context"
	"flag"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/dlq"
)

func deadListCommand() command {
	return command{words: "dead list", args: "[-q QUEUE] [-k KIND] [-n COUNT]", short: "dead letters with their last error", file: true,
		text: `Lists dead letters in the order in which they died, queue by queue.

  -q QUEUE        of this queue
  -k, --kind KIND of this kind
  -n COUNT        at most so many, 0 for all (default 50)

Example:
  jobctl --db jobs.db dead list -q email -k mail.welcome

JSON: a list of objects with
` + jobFields,
		setup: func(fs *flag.FlagSet) action {
			var filter filterFlags
			filter.register(fs)
			limit := limitFlag(fs)
			return func(a *app, _ []string) error {
				return listDead(a, pawl.Filter{Queue: filter.queue, Kind: filter.kind}, *limit)
			}
		},
	}
}

func listDead(a *app, f pawl.Filter, limit int) error {
	r, err := bolt.OpenReader(a.flags.db)
	if err != nil {
		return err
	}
	defer r.Close()
	now := a.now()
	out := a.listing(column{title: "ID"}, column{title: "QUEUE"}, column{title: "KIND"}, column{title: "REASON"},
		column{"RUNS", true}, column{title: "DIED"}, column{title: "LAST ERROR"})
	return a.list(out, dlq.List(context.Background(), r, f), limit, func(e *pawl.Envelope) []string {
		last := "-"
		if n := len(e.History); n > 0 {
			last = firstLine(e.History[n-1].Error, errorWidth)
		}
		return []string{e.ID.String(), cell(e.Queue, nameWidth), cell(e.Kind, nameWidth),
			cell(string(e.Death.Reason), nameWidth), runs(e), relative(now, e.Death.At), last}
	})
}
