package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
)

// enqueuing is one `job enqueue`.
type enqueuing struct {
	line  jobLine // from the flags
	batch bool
	file  string // "" for none
	dry   bool
	wait  bool
	fresh bool       // the user expects a new queue
	made  handlerJob // a command or a request
}

// enqueuedView is the object of `job enqueue`.
type enqueuedView struct {
	ID       *string `json:"id"`
	Existing bool    `json:"existing"`
	DryRun   bool    `json:"dry_run"`
}

func (a *app) jobEnqueueCommand() *cobra.Command {
	e := &enqueuing{line: jobLine{MaxRetries: pawl.DefaultMaxRetries}}
	c := a.command(&spec{
		use: "enqueue KIND [JSON|-|@FILE] | --batch [-|@FILE] | --file FILE", short: "add a job, or many", args: -1, ids: true,
		long: `Adds a job of a kind. Its arguments are JSON: the JSON itself, - to read it from standard
input, or @ and the name of a file. Without JSON, they are null. A handler decodes them
into its Go type as if a Go program had enqueued them. An object matches a struct by the
names in its msgpack or json tags, or else by the exact names of its fields (To, not to).
If the struct lacks a name of the object, the job does not run: it becomes dead with the
reason payload. A time is {"$time":"2026-03-01T12:00:00Z"}, bytes are {"$base64":"AP8="},
and a time.Duration is a number of nanoseconds. Jobctl does not know the program's other
settings for the kind (queue, retries, deadline): set them with flags.

--batch reads many jobs from JSON lines: objects with kind, and optionally args,
queue, priority, delay, at, deadline, run_timeout, max_retries, unique, unique_in,
on_conflict, idempotency_key, idempotency_ttl, retain, key, cost, weight, group,
after, after_any and headers. All lines are checked before the first is stored;
then they are stored in portions, each completely or not at all. Flags supply what
a line omits.

--file reads up to 10,000 such lines, in any order, and stores all of their jobs in one
commit, or none. A line may have a name. Other lines may use it in after and after_any, in
place of the ID of its job.

A queue that does not exist is refused, unless there is no queue yet. To create one, add
--create-queue. The command prints the IDs, one per line.`,
		example: `  jobctl --db jobs.db job enqueue mail.welcome '{"To":"ada@example.com"}'
  jobctl --db jobs.db job enqueue report.build @args.json -q slow --delay 1h
  jobctl --db jobs.db job enqueue --batch -q email < jobs.jsonl
  jobctl --db jobs.db job enqueue --file graph.jsonl`,
		json:  "one object, or a list of objects with --batch or --file: name (only with\n  --file), id (null for --dry-run), existing (nothing was stored: id is the job\n  that has the unique key), dry_run; with --wait only the object of 'job wait'\n",
		exits: []int{exitConflict, exitDead},
		run:   func(ctx context.Context, args []string) error { return e.run(ctx, a, args) },
	})
	e.register(a, c)
	e.made.register(c)
	return c
}

func (e *enqueuing) register(a *app, c *cobra.Command) {
	flags, l := c.Flags(), &e.line
	flags.VarP(nameFlag(&l.Queue, driver.CheckQueue), "queue", "q", "the `QUEUE` (default "+pawl.DefaultQueue+")")
	flags.IntVar(&l.Priority, "priority", 0, "a `NUMBER` from -128 to 127; higher runs first")
	flags.Var(ageFlag((*time.Duration)(&l.Delay)), "delay", "run no sooner than after this `TIME`")
	flags.Var(a.futureFlag(&l.At.Time), "at", "run no sooner than at that `TIME`")
	flags.Var(a.futureFlag(&l.Deadline.Time), "deadline", "from that `TIME` on, become dead instead of running")
	flags.Var(ageFlag((*time.Duration)(&l.RunTimeout)), "run-timeout", "the `TIME` limit of one attempt (default: the worker's)")
	flags.Var(countFlag(&l.MaxRetries), "max-retries", fmt.Sprintf("at most `COUNT` attempts after the first (default %d)", pawl.DefaultMaxRetries))
	flags.Var(textFlag(&l.Unique), "unique", "allow no other job of its queue and kind with this `KEY`")
	flags.Var(textFlag(&l.Key), "key", "what it belongs to besides its queue, such as a tenant: the limits of the queue for each `KEY` count it")
	flags.Var(countFlag(&l.Cost), "cost", "count its start as `COUNT` starts of the rates of its queue and key (default 1)")
	flags.Var(countFlag(&l.Weight), "weight", "give its key `COUNT` turns while one with weight 1 has one (default 1)")
	flags.Var(textFlag(&l.Group), "group", "make it a member of the group `NAME`, which must exist")
	flags.Var(idsFlag(&l.After), "after", "start once the jobs with these `IDS`, separated by commas, have all succeeded; 'job why' names those that it still waits for")
	flags.Var(idsFlag(&l.AfterAny), "after-any", "start once the jobs with these `IDS` have all ended: each has succeeded or is dead")
	flags.StringSliceVar(&l.UniqueIn, "unique-in", nil, "the key is taken in these `STATES` (default: until the job has ended)")
	flags.Var(oneOf(&l.OnConflict, "use_existing", "reject", "replace"), "on-conflict", "`WHAT` to do if the key is taken: use_existing (default), reject or replace")
	flags.Var(textFlag(&l.IdempotencyKey), "idempotency-key", "of the jobs of its kind with this `KEY`, only one succeeds")
	flags.Var(ageFlag((*time.Duration)(&l.IdempotencyTTL)), "idempotency-ttl", "how long a success counts for the idempotency key, a `TIME` (default 24h)")
	flags.Var(ageFlag((*time.Duration)(&l.Retain)), "retain", "keep the record of its success for this `TIME`")
	flags.Var(manyFlag{flagFunc{l.header}}, "header", "a `KEY=VALUE` stored beside the arguments; may be repeated")
	flags.BoolVar(&e.fresh, "create-queue", false, "create the queue if it does not exist yet")
	flags.BoolVar(&e.batch, "batch", false, "add many jobs from JSON lines")
	flags.Var(textFlag(&e.file), "file", "add the jobs of the JSON lines in `FILE`, all in one commit; a job may wait for others in it; - is standard input")
	flags.BoolVar(&e.wait, "wait", false, "wait until the job has ended, print it as 'job wait' does, and keep its record for 10m unless --retain is set")
	flags.BoolVar(&e.dry, "dry-run", false, "check the jobs and their queues, and change nothing")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || e.many() {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return a.completeKinds(c, args, typed)
	}
}

func (e *enqueuing) run(ctx context.Context, a *app, args []string) error {
	if asked, err := e.made.run(ctx, a, e, args); asked {
		return err
	}
	switch {
	case e.wait && (e.many() || e.dry):
		return usage("job enqueue", "--wait waits for one job that is stored; leave out --batch, --file and --dry-run")
	case e.file != "" && (e.batch || len(args) > 0):
		return usage("job enqueue", "--file names all jobs; leave out --batch and all arguments")
	case e.file != "":
		return e.runGraph(ctx, a)
	case e.batch:
		return e.runBatch(ctx, a, args)
	}
	switch {
	case len(args) == 0:
		return usage("job enqueue", "no kind was named")
	case len(args) > 2:
		return usage("job enqueue", "unexpected argument %q; put the arguments of the job in one pair of quotes", args[2])
	}
	var err error
	if e.line.Args, err = a.optionalArgument(args, 1, jsonFile); err != nil {
		return err
	}
	e.line.Kind = args[0]
	job, err := e.line.envelope()
	if err != nil {
		return usage("job enqueue", "%s", err)
	}
	return e.store(ctx, a, job)
}

// many reports whether jobs come as lines.
func (e *enqueuing) many() bool { return e.batch || e.file != "" }

// store adds a checked job, and prints its ID.
func (e *enqueuing) store(ctx context.Context, a *app, job *pawl.Envelope) error {
	if err := checkHandled(job); err != nil {
		return usage("job enqueue", "%s", err)
	}
	if e.wait && job.Retain == 0 {
		job.Retain = waitRetain
	}
	var stored pawl.Enqueued
	err := a.with(ctx, func(queue admin.Admin) error {
		if err := e.checkQueues(ctx, queue, job.Queue); err != nil || e.dry {
			return err
		}
		done, err := queue.Enqueue(ctx, job)
		if len(done) == 1 { // also with an unknown outcome
			stored = done[0]
		}
		return err
	})
	if err != nil {
		return e.refused(a, stored.ID, err)
	}
	object := !a.people() && a.flags.output != "ids"
	switch {
	case object && !e.wait:
		return a.print(e.view(stored))
	case e.dry:
		a.say("1 job would be added; nothing was changed")
		return nil
	case !object: // otherwise the job is printed when it has ended
		fmt.Fprintln(a.stdout, stored.ID)
	}
	if stored.Existing {
		a.say("note: nothing was added: that job has the unique key")
	}
	if !e.wait {
		return nil
	}
	return a.waitForStored(ctx, stored.ID)
}

// waitForStored waits until a job that was just stored has ended, and prints the outcome.
func (a *app) waitForStored(ctx context.Context, id pawl.ID) error {
	_ = a.stdout.Flush() // the ID; an error appears again at the last flush
	end, err := read(ctx, a.with, func(queue admin.Admin) (*pawl.Envelope, error) { return queue.Await(ctx, id) })
	if err != nil {
		f := a.failure(err)
		if errors.Is(err, pawl.ErrNotFound) { // an existing job that ended first
			return partial{f}
		}
		f.next = strings.TrimSuffix(fmt.Sprintf("The job is stored: 'jobctl job wait %s' waits for it.\n%s", id, f.next), "\n")
		return partial{f}
	}
	return a.showEnd(end)
}

// waitRetain is how long the record of a job is kept if --wait is set, so that it is still there
// when the wait begins.
const waitRetain = 10 * time.Minute

// checkQueues rejects an unexpected new queue: the name may be misspelled, no worker serves it,
// and it stays forever. The first queue of a file is always new, and the default queue may be
// new.
func (e *enqueuing) checkQueues(ctx context.Context, queue admin.Admin, names ...string) error {
	switch {
	case e.fresh && e.dry:
		_, err := queue.Stats(ctx) // whether it can be reached
		return err
	case e.fresh:
		return nil
	}
	return noNewQueue(ctx, queue, names...)
}

// checkDry is the part of a dry run that needs the queue.
func (e *enqueuing) checkDry(ctx context.Context, a *app, names ...string) error {
	return a.with(ctx, func(queue admin.Admin) error { return e.checkQueues(ctx, queue, names...) })
}

func noNewQueue(ctx context.Context, queue admin.Admin, names ...string) error {
	s, err := queue.Stats(ctx)
	if err != nil || len(s.Queues) == 0 {
		return err
	}
	for _, name := range names {
		if name == "" || name == pawl.DefaultQueue {
			continue
		}
		if _, err := findQueue(&s, name); err != nil {
			f := err.(*failure)
			return &failure{f.code, f.text, f.next + "\n--create-queue creates a new one. Nothing was stored."}
		}
	}
	return nil
}

func (e *enqueuing) view(stored pawl.Enqueued) enqueuedView {
	v := enqueuedView{Existing: stored.Existing, DryRun: e.dry}
	if !e.dry {
		id := stored.ID.String()
		v.ID = &id
	}
	return v
}

// refused explains an error about one job. Its ID is zero if it is not known.
func (e *enqueuing) refused(a *app, id pawl.ID, err error) error {
	f := e.explained(a, err)
	if !errors.Is(err, pawl.ErrUnknownOutcome) {
		return f
	}
	if !id.IsZero() {
		f.next = fmt.Sprintf(lookFirst+"\n'jobctl job show %s' shows the job, unless it is done.", id)
	}
	return partial{f}
}

func (e *enqueuing) explained(a *app, err error) *failure {
	f := a.failure(err)
	if f.code == exitConflict && strings.Contains(err.Error(), "unique key") {
		f.next = "--on-conflict sets what to do if a unique key is taken."
	}
	return f
}

// maxArgument is the most bytes of JSON that are read for one job: three times the size of the
// largest payload, since JSON is longer.
const maxArgument = 3 * pawl.MaxBatchBytes

// jsonFile says what to do if the file of a JSON argument is missing.
const jsonFile = "Name a file with the JSON of the job's arguments after the @."

// argument returns what an argument refers to: itself, standard input for -, or a file after @.
// missing says what to do if there is no such file.
func (a *app) argument(arg, missing string) ([]byte, error) {
	if arg == "-" {
		return readAll(a.stdin, "standard input")
	}
	name, isFile := strings.CutPrefix(arg, "@")
	if !isFile {
		return []byte(arg), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &failure{exitError, err.Error(), missing}
	}
	defer f.Close()
	return readAll(f, name)
}

// optionalArgument returns the JSON of args[i], as argument does, or null if there is no such argument.
func (a *app) optionalArgument(args []string, i int, missing string) ([]byte, error) {
	if i >= len(args) {
		return []byte("null"), nil
	}
	return a.argument(args[i], missing)
}

func readAll(from io.Reader, name string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, maxArgument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(b) > maxArgument:
		return nil, fmt.Errorf("%s has more than %s; enqueue a reference to the data instead", name, plain.Size(maxArgument))
	}
	return b, nil
}

// idsFlag takes IDs of jobs, separated by commas.
func idsFlag(to *[]pawl.ID) pflag.Value {
	return manyFlag{flagFunc{func(text string) error {
		for one := range strings.SplitSeq(text, ",") {
			id, err := pawl.ParseID(strings.TrimSpace(one))
			if err != nil {
				return err
			}
			*to = append(*to, id)
		}
		return nil
	}}}
}

// futureFlag takes a time, or a duration from now.
func (a *app) futureFlag(to *time.Time) flagFunc {
	return parsed(to, func(text string) (time.Time, error) { return parseFuture(text, a.now(), a.location()) })
}
