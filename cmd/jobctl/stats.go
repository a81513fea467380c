package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"

	"github.com/gopawl/pawl/bolt"
)

func statsCommand() command {
	return command{words: "stats", short: "how many jobs each queue has in each state", file: true,
		text: `Counts the jobs of each queue by state. OLDEST is how long the ready job that
waits longest is ready. Leased jobs in a file that no process has open were
being run when their process ended; the next open makes them ready again.
Completed ones have succeeded, and their record is kept for a while. A queue
that is paused gives no job to a worker until the app resumes it.

JSON: one object with
  path, format, size_bytes, free_bytes (null where the file has no list of
  its free pages, as one whose process was killed)
  queues: a list of name, paused (true or false), ready, delayed, parked,
          leased, dead, completed, oldest_ready_at (a time),
          oldest_ready_age (a duration)
`,
		setup: func(*flag.FlagSet) action { return stats },
	}
}

func stats(a *app, _ []string) error {
	r, err := bolt.OpenReader(a.flags.db)
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := r.Stats(context.Background())
	if err != nil {
		return err
	}
	now := a.now()
	if a.flags.output != "table" {
		return a.print(viewOfStats(s, now))
	}
	free := ""
	if s.Free >= 0 {
		free = fmt.Sprintf(", %s of it free", byteSize(s.Free))
	}
	fmt.Fprintf(a.stdout, "%s  format %d  %s%s\n", escape(s.Path), s.Format, byteSize(s.Size), free)
	t := table{out: a.stdout, columns: []column{
		{title: "QUEUE"}, {"READY", true}, {"DELAYED", true}, {"PARKED", true}, {"LEASED", true},
		{"DEAD", true}, {"COMPLETED", true}, {"OLDEST", true}, {},
	}}
	for _, q := range s.Queues {
		oldest := "-"
		if !q.Oldest.IsZero() {
			oldest = span(max(now.Sub(q.Oldest), 0))
		}
		paused := ""
		if q.Paused {
			paused = "paused"
		}
		t.add(cell(q.Name, nameWidth), strconv.Itoa(q.Ready), strconv.Itoa(q.Delayed), strconv.Itoa(q.Parked),
			strconv.Itoa(q.Leased), strconv.Itoa(q.Dead), strconv.Itoa(q.Completed), oldest, paused)
	}
	t.flush()
	if len(s.Queues) == 0 {
		a.say("no job was ever enqueued")
	}
	return nil
}
