package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/handlers"
)

// handlerJob holds the flags of `job enqueue` for a command or a request, the jobs that 'jobctl
// work' runs.
type handlerJob struct {
	flags *pflag.FlagSet // of the command, to see which were given

	exec, http bool
	data       string
	ok         []int

	dir              string
	env              map[string]string
	retry, permanent []int

	method  string
	headers map[string]string
}

// Flags that belong to one type of job, or to both, and have no meaning for others.
var (
	eitherJobFlags = []string{"data", "ok"}
	execJobFlags   = []string{"dir", "env", "retry", "permanent"}
	httpJobFlags   = []string{"method", "request-header"}
)

func (h *handlerJob) register(c *cobra.Command) {
	h.flags = c.Flags()
	f := h.flags
	f.BoolVar(&h.exec, "exec", false, "a command: the words after --")
	f.BoolVar(&h.http, "http", false, "an HTTP request to a URL")
	f.VarP(textFlag(&h.data), "data", "d", "the `BODY` of the request, or the standard input of the command; - is standard input, @FILE a file")
	f.IntSliceVar(&h.ok, "ok", nil, "these `CODES` are also a success: exit codes, or HTTP statuses")
	f.Var(textFlag(&h.dir), "dir", "the command's working `FOLDER` (default: the current one)")
	f.Var(pairFlag(&h.env, cutVariable, "it must be a name, =, and a value"), "env", "a `NAME=VALUE` in the command's environment; may be repeated")
	f.IntSliceVar(&h.retry, "retry", nil, "retry after these exit `CODES`, whatever the worker's default")
	f.IntSliceVar(&h.permanent, "permanent", nil, "never retry after these exit `CODES`")
	f.VarP(textFlag(&h.method), "method", "X", "the `METHOD` of the request (default GET, with --data POST)")
	f.VarP(pairFlag(&h.headers, cutHeader, "it must be a name, a colon, and a value"), "request-header", "H", "a `HEADER` of the request as 'Name: value'; may be repeated")
	c.Use = "enqueue KIND [JSON] | --batch|--file|--exec|--http"
	c.Long += `

--exec and --http add a job for 'jobctl work': a command, run without a shell, or a
request. A relative --dir is relative to the current folder of jobctl. The worker
looks up the program, and must allow it and the names of --env. Arguments, bodies and
headers are stored in the file, so do not put secrets in them.`
	c.Example += `
  jobctl --db jobs.db job enqueue --exec --run-timeout 5m -- make site
  jobctl --db jobs.db job enqueue --http -d @order.json https://example.com/hook`
	kinds := c.ValidArgsFunction
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case h.http:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case h.exec:
			return nil, cobra.ShellCompDirectiveDefault
		}
		return kinds(c, args, typed)
	}
}

// run adds a command or a request, if the flags ask for one.
func (h *handlerJob) run(ctx context.Context, a *app, e *enqueuing, args []string) (asked bool, err error) {
	if err := h.check(e, args); err != nil {
		return true, err
	}
	var made *pawl.Envelope
	switch {
	case h.exec:
		made, err = h.command(a, args)
	case h.http:
		made, err = h.request(a, args[0])
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	if !h.flags.Changed("max-retries") {
		e.line.MaxRetries = made.MaxRetries
	}
	e.line.Kind, e.line.Args = made.Kind, []byte("null")
	job, err := e.line.envelope()
	if err != nil {
		return true, usage("job enqueue", "%s", err)
	}
	job.Payload, job.Policy = made.Payload, made.Policy
	return true, e.store(ctx, a, job)
}

// check rejects flags that contradict each other or the arguments.
func (h *handlerJob) check(e *enqueuing, args []string) error {
	refuse := func(format string, args ...any) error { return usage("job enqueue", format, args...) }
	err := refuseAlone("job enqueue", h.flags,
		flagsOf{h.exec || h.http, "--exec or --http", eitherJobFlags}, flagsOf{h.exec, "--exec", execJobFlags}, flagsOf{h.http, "--http", httpJobFlags})
	if err != nil {
		return err
	}
	switch {
	case !h.exec && !h.http:
		return nil
	case h.exec && h.http, e.many():
		return refuse("--exec, --http, --batch and --file exclude each other; choose one")
	case h.flags.Changed("timeout") && !h.flags.Changed("run-timeout"):
		return refuse("--timeout is how long to wait for an app's answer; --run-timeout is how long the job may run: use that, or both")
	case h.exec && len(args) == 0:
		return refuse("no program was named; add it and its arguments after --")
	case h.exec && h.flags.ArgsLenAtDash() != 0:
		return refuse("the program must follow --, so that its flags are not read as flags of jobctl: --exec -- %s", commandLine(args))
	case h.http && len(args) != 1:
		return refuse("%s given; a request has one URL", plural(len(args), "argument"))
	}
	return nil
}

// command returns the job that runs a command.
func (h *handlerJob) command(a *app, args []string) (*pawl.Envelope, error) {
	dir, err := filepath.Abs(h.dir) // "" is the current folder
	if err != nil {
		return nil, fmt.Errorf("the current folder: %w", err)
	}
	input, err := a.argument(h.data, "Name a file after the @ of --data.")
	if err != nil {
		return nil, err
	}
	return handlers.Exec.Envelope(handlers.Command{
		Args: args, Dir: dir, Env: h.env, Stdin: input, OK: h.ok, Retry: h.retry, Permanent: h.permanent,
	})
}

// checkHandled rejects a command or a request that 'jobctl work' would reject, however it was
// given: a password in a URL must not be stored in the file.
func checkHandled(job *pawl.Envelope) error {
	switch job.Kind {
	case handlers.Exec.Name():
		command, err := handlers.Exec.Job(job)
		if err != nil {
			return err
		}
		return command.Args.Check()
	case handlers.HTTP.Name():
		request, err := handlers.HTTP.Job(job)
		if err != nil {
			return err
		}
		return request.Args.Check()
	}
	return nil
}

// request returns the job that sends a request.
func (h *handlerJob) request(a *app, to string) (*pawl.Envelope, error) {
	body, err := a.argument(h.data, "Name a file after the @ of --data.")
	if err != nil {
		return nil, err
	}
	method := h.method
	if method == "" && h.data != "" {
		method = "POST"
	}
	return handlers.HTTP.Envelope(handlers.Request{Method: method, URL: to, Headers: h.headers, Body: body, OK: h.ok})
}
