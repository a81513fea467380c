package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/handlers"
)

// working holds the flags of one `work`.
type working struct {
	exec, http bool
	queues     []string
	slots      int
	create     bool
	drain      string // "", or what it waits for
	once       bool
	runTimeout time.Duration
	finish     time.Duration
	maxCrashes int

	allow      []string
	dirs       []string
	env        []string
	grace      time.Duration
	outputDir  string
	keepOutput int
	keepRuns   int

	hosts []string
	nets  []netip.Prefix
}

// What --drain waits for.
const (
	drainReady = "ready"
	drainAll   = "all"
)

// Flags that belong to one type of job, and have no meaning for a worker without it.
var (
	execFlags = []string{"allow", "allow-dir", "env", "grace", "output-dir", "keep-output", "keep-runs"}
	httpFlags = []string{"allow-host", "allow-net"}
)

func (a *app) workCommand() *cobra.Command {
	w := &working{finish: 4 * time.Second, maxCrashes: 5, grace: handlers.DefaultGrace, keepOutput: handlers.DefaultOutput, keepRuns: 1000}
	s := &spec{
		use: "work --exec --allow PROGRAM... | --http", short: "run enqueued commands and requests", args: 0,
		long: `Runs the jobs that 'jobctl job enqueue --exec' and '--http' add: commands, HTTP
requests, or both. It has the file open until it ends, and serves it, so
every other command of jobctl works at the same time. Jobs of other kinds on its
queues stay ready.

A command is an argument list, run without a shell. Only programs that --allow names
may run, compared by resolved path; a program that runs others, such as a shell or
env, allows everything. An attempt has its own process group, and no process of it
is left when its job runs again, even if the worker was killed in between. The folder
FILE.runs records the running attempts. Exit code 0 is a success; after 64, 65, 78,
126 and 127 a job becomes dead; other codes are retried.

A request goes only to public addresses, and to those that --allow-net and
--allow-host name. A status from 200 to 299 is a success; 408, 425, 429 and 500 or
more are retried; after other statuses the job becomes dead.

SIGINT and SIGTERM end it: it takes no new jobs, lets running jobs continue for
--finish, then ends them and returns them to the queue. A second signal ends it at
once.

It prints a line on standard error for each attempt that ended, once that is durable.`,
		example: `  jobctl --db jobs.db work --exec --allow pdftotext --allow /opt/app/report -j 4
  jobctl --db jobs.db work --http --allow-net 10.1.2.0/24 -q hooks --create
  jobctl --db jobs.db work --exec --allow make --drain=all -o jsonl | jq .result`,
		json: `with -o jsonl, one object per line on standard output with at, result
  (done, retry, dead or returned), id, kind, queue, attempt, what (the
  command, or the request without its query), exit_code (null without one, -1
  for a signal), took (a duration), delay (until the retry), reason (of a
  dead job), error, output_file, output_cut_bytes, missed (how many lines
  before this one a slow reader lost)
`,
		exits: []int{exitNoMatch},
	}
	c := a.command(s)
	s.run = func(ctx context.Context, _ []string) error {
		if err := w.check(a, c.Flags()); err != nil {
			return err
		}
		return w.run(ctx, a)
	}
	w.register(c.Flags())
	return c
}

func (w *working) register(flags *pflag.FlagSet) {
	flags.BoolVar(&w.exec, "exec", false, "run commands")
	flags.BoolVar(&w.http, "http", false, "send HTTP requests")
	flags.VarP(eachFlag(&w.queues, driver.CheckQueue), "queue", "q", "work on this `QUEUE` (default "+pawl.DefaultQueue+"); may be repeated")
	flags.VarP(slotsFlag(&w.slots), "jobs", "j", "run at most `COUNT` jobs at once (default: one for each processor)")
	flags.BoolVar(&w.create, "create", false, "create the file if it does not exist")
	flags.Var(oneOf(&w.drain, drainReady, drainAll), "drain", "end when no job is ready or running; --drain=all also waits for delayed jobs, and therefore for every retry. Jobs of a paused queue count too")
	flags.Lookup("drain").NoOptDefVal = drainReady
	flags.BoolVar(&w.once, "once", false, "run one job if one is ready, and end; otherwise exit code 3")
	flags.Var(ageFlag(&w.runTimeout), "run-timeout", "the `TIME` limit of an attempt of a job without its own (default: no limit)")
	flags.Var(ageFlag(&w.finish), "finish", "after a signal, running jobs continue for at most this `TIME` (default 4s)")
	flags.Var(countFlag(&w.maxCrashes), "max-crashes", "a job whose worker crashes `COUNT` times in a row while it runs becomes dead; 0 means never (default 5)")

	flags.Var(eachFlag(&w.allow, notEmpty), "allow", "commands: allow this `PROGRAM`: an absolute path, or a name in PATH; may be repeated")
	flags.Var(eachFlag(&w.dirs, notEmpty), "allow-dir", "commands: allow this working `FOLDER` and those below it (default: any); the first is the default for jobs; may be repeated")
	flags.Var(eachFlag(&w.env, notEmpty), "env", "commands: jobs may set the variable `NAME`; may be repeated")
	flags.Var(ageFlag(&w.grace), "grace", fmt.Sprintf("commands: a `TIME` from SIGTERM to SIGKILL (default %v)", handlers.DefaultGrace))
	flags.Var(textFlag(&w.outputDir), "output-dir", "commands: keep the output of each attempt as a file in this `FOLDER`")
	flags.Var(sizeFlag(&w.keepOutput), "keep-output", "commands: how much output to keep of an attempt, as a `SIZE`: its first and last half (default 64KiB, at most 64MiB)")
	flags.Var(slotsFlag(&w.keepRuns), "keep-runs", "commands: keep the last `COUNT` files in --output-dir (default 1000)")

	flags.Var(eachFlag(&w.hosts, notEmpty), "allow-host", "requests: allow this `HOST`, whatever its address; may be repeated")
	flags.Var(manyFlag{flagFunc{w.addNet}}, "allow-net", "requests: allow these `ADDRESSES`, such as 10.1.2.0/24; may be repeated")
}

// check rejects an invalid command line.
func (w *working) check(a *app, flags *pflag.FlagSet) error {
	refuse := func(format string, args ...any) error { return usage("work", format, args...) }
	switch {
	case a.flags.addr != "":
		return refuse("a worker opens the file itself; name it with --db, not --addr")
	case a.flags.output == "json":
		return refuse("-o json writes one document, but this output has no end; use -o jsonl")
	case flags.Changed("timeout"):
		return refuse("there is no app to wait for; --run-timeout is how long a job may run")
	case !w.exec && !w.http:
		return refuse("nothing to work on was named; add --exec for commands, --http for requests, or both")
	case w.exec && len(w.allow) == 0:
		return refuse("no program may run; name those that may with --allow")
	case w.drain != "" && w.once:
		return refuse("--drain and --once were given; choose one")
	case w.outputDir == "" && flags.Changed("keep-runs"):
		return refuse("--keep-runs is for --output-dir")
	}
	return refuseAlone("work", flags, flagsOf{w.exec, "--exec", execFlags}, flagsOf{w.http, "--http", httpFlags})
}

// addNet parses one --allow-net: a range of addresses, or one address.
func (w *working) addNet(text string) error {
	if one, err := netip.ParseAddr(text); err == nil && one.Zone() == "" {
		w.nets = append(w.nets, netip.PrefixFrom(one, one.BitLen()))
		return nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return errors.New("it must be a range of addresses such as 10.1.2.0/24, or an address")
	}
	w.nets = append(w.nets, prefix)
	return nil
}
