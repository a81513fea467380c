package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/worker"
)

// How long the end of a command may take beyond its grace period, with a margin; and the least
// time that a worker waits for an attempt that ignores its timeout.
const (
	beyondGrace = 2 * time.Second
	leastStuck  = 30 * time.Second
)

// run is the whole command. The order of the steps ensures that it touches nothing that
// another process has open, and that no job runs before the leftovers of an earlier worker are
// dead:
//
//  1. check that the file exists, has this release's format, and is not open elsewhere
//  2. open the queue, which locks the file: what a killed worker ran is ready again
//  3. take the folder of the attempts, and end what that worker's commands left behind
//  4. serve operators
//  5. run jobs
//
// They are undone in reverse order.
func (w *working) run(ctx context.Context, a *app) (err error) {
	if err := a.fileOnly("work", "an app of yours works on it"); err != nil {
		return err
	}
	if err := w.look(ctx, a); err != nil {
		return err
	}
	// With this, a closed output causes a write error, and does not end the process in the
	// middle of its jobs. Ignoring the signal is no alternative, since commands would inherit
	// that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	r := newReport(a, stop)
	defer func() { err = errors.Join(err, r.close()) }()
	q, err := bolt.Open(a.flags.db, &bolt.Options{
		MaxCrashes: w.crashCap(), Insecure: a.flags.insecure, Logger: r.logger(), OnEvent: r.hear, Now: a.now,
	})
	if err != nil {
		return a.taken(err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	if n := r.recovered.Load(); n > 0 {
		r.say("note: %s ran when a worker was killed; they are ready again, or dead by --max-crashes", plural(int(n), "job"))
	}
	jobs := worker.New(q, w.options(r))
	closeHandlers, err := w.handle(jobs, q.Path(), r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeHandlers()) }()

	server, err := admin.Serve(q, &admin.Options{Name: "jobctl work", Logger: r.logger()})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		r.say("note: no other process can inspect the queue while this runs: %s", err)
	case err != nil:
		return err
	default:
		defer func() { err = errors.Join(err, server.Close()) }()
	}
	return w.work(ctx, a, jobs, r)
}

// look rejects a file that this process cannot have.
func (w *working) look(ctx context.Context, a *app) error {
	if _, err := os.Stat(a.flags.db); errors.Is(err, fs.ErrNotExist) {
		if w.create {
			return nil
		}
		return &failure{exitError, a.flags.db + ": no such file", "Check --db; --create creates a new file."}
	}
	queue, err := a.open(ctx)
	if err != nil {
		return a.taken(err)
	}
	s, err := queue.Stats(ctx)
	if err = errors.Join(err, queue.Close()); err != nil {
		return a.taken(err)
	}
	if p := s.Process; p != nil {
		return isTaken(fmt.Sprintf("%s is locked by pid %d (%s)", a.flags.db, p.PID, p.Name))
	}
	return nil
}

// taken explains an error of opening the file to a user who wants to work on it.
func (a *app) taken(err error) error {
	if errors.Is(err, bolt.ErrLocked) {
		return isTaken(fmt.Sprintf("%s is locked%s", a.flags.db, holder(err)))
	}
	return err
}

func isTaken(text string) error {
	return &failure{exitLocked, text, "Only one process at a time can work on a file. Stop that one, or let it run the jobs:\nyou can add and list jobs while it runs."}
}

func (w *working) crashCap() int {
	if w.maxCrashes == 0 {
		return bolt.NoMaxCrashes
	}
	return w.maxCrashes
}

func (w *working) options(r *report) *worker.Options {
	return &worker.Options{
		Queues: w.queues, Concurrency: w.slots, Timeout: w.runTimeout,
		Drain:      max(w.finish, 1),      // 0 would mean the default
		StopGrace:  w.grace + beyondGrace, // until the commands are dead
		StuckGrace: max(w.grace+beyondGrace, leastStuck),
		Logger:     r.logger(),
	}
}

// work runs jobs until ctx ends, or until none are left if requested.
func (w *working) work(ctx context.Context, a *app, jobs *worker.Worker, r *report) (err error) {
	queues := w.queues
	if queues == nil {
		queues = []string{pawl.DefaultQueue}
	}
	r.say("working on %s, %s", a.flags.db, strings.Join(queues, ", "))
	hush := context.AfterFunc(ctx, func() {
		signal.Reset(os.Interrupt, syscall.SIGTERM) // main also does this, but it must precede the message
		r.say("stopping: running jobs have %v; a second signal ends them at once", w.finish)
	})
	switch {
	case w.once:
		err = jobs.ProcessOnce(ctx)
	case w.drain == drainAll:
		err = jobs.Drain(ctx, pawl.WaitFinished)
	case w.drain != "":
		err = jobs.Drain(ctx, pawl.WaitDrained)
	default:
		err = jobs.Run(ctx)
	}
	hush()
	switch {
	case errors.Is(err, pawl.ErrEmpty):
		return &failure{exitNoMatch, "no job is ready", ""}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		if r.failed() { // it ended the worker, and is reported when the report is closed
			return nil
		}
		return &failure{exitInterrupted, "interrupted before the end; unfinished jobs are in the queue", ""}
	}
	return err
}
