package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/handlers"
	"github.com/gopawl/pawl/worker"
)

// runsSuffix follows the name of the file in the name of the folder of the attempts.
const runsSuffix = ".runs"

// handle registers the handlers, and returns a function that ends them. path is the path of
// the queue's file.
func (w *working) handle(jobs *worker.Worker, path string, r *report) (end func() error, err error) {
	var ends []func() error
	end = func() error {
		var all error
		for _, one := range slices.Backward(ends) {
			all = errors.Join(all, one())
		}
		return all
	}
	if w.exec {
		runner, err := w.runner(path, r)
		if err != nil {
			return nil, err
		}
		ends = append(ends, runner.Close)
		worker.Handle(jobs, handlers.Exec, func(ctx context.Context, job *pawl.Job[handlers.Command]) error {
			r.begin(job.Envelope, job.Attempt, commandLine(job.Args.Args))
			return r.returned(job.ID, runner.Run(ctx, job))
		})
	}
	if w.http {
		sender, err := handlers.NewSender(&handlers.HTTPOptions{Allow: w.nets, AllowHosts: w.hosts})
		if err != nil {
			return nil, errors.Join(err, end())
		}
		ends = append(ends, sender.Close)
		worker.Handle(jobs, handlers.HTTP, func(ctx context.Context, job *pawl.Job[handlers.Request]) error {
			r.begin(job.Envelope, job.Attempt, requestLine(&job.Args))
			return r.returned(job.ID, sender.Send(ctx, job))
		})
	}
	return end, nil
}

// runner creates the runner of commands, and reports what commands of a killed worker left
// behind.
func (w *working) runner(path string, r *report) (*handlers.Runner, error) {
	o := &handlers.ExecOptions{Roots: w.dirs, JobEnv: w.env, Grace: max(w.grace, 1), Output: w.keepOutput, OnRun: r.ran}
	if len(w.dirs) > 0 {
		o.Dir = w.dirs[0]
	}
	if w.outputDir != "" {
		logs, err := handlers.NewLogs(w.outputDir, w.keepRuns)
		if err != nil {
			return nil, err
		}
		o.OnRun = func(run handlers.Run) {
			logs.Keep(run)
			r.ran(run)
			if _, err := os.Stat(logs.Path(run)); err == nil { // there is no file if the disk was full
				r.kept(run.Job.ID, logs.Path(run))
			}
		}
	}
	runner, err := handlers.NewRunner(path+runsSuffix, w.allow, o)
	if err != nil {
		return nil, &failure{exitError, err.Error(), "'jobctl work --help' describes --allow, --allow-dir and --env."}
	}
	for _, o := range runner.Orphans() {
		if o.Err != nil {
			r.say("note: %s", o.Err)
			continue
		}
		r.say("note: a worker was killed while it ran job %s; its leftover processes were killed: pid %s",
			o.Job, strings.Trim(fmt.Sprint(o.PIDs), "[]"))
	}
	return runner, nil
}

// commandLine returns a command for people, as typed into a shell.
func commandLine(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if arg == "" || strings.ContainsFunc(arg, func(c rune) bool { return strings.ContainsRune(" \t\n'\"\\$`*?[]{}()<>|&;#~!", c) }) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// requestLine returns a request for people. It omits the query, which may contain secrets.
func requestLine(r *handlers.Request) string {
	method := r.Method
	if method == "" {
		method = "GET"
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return method
	}
	return method + " " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
