package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/gopawl/pawl"
)

// pipeGrace limits how long output is read after the program has ended, in case a process that
// left the group keeps the pipe open.
const pipeGrace = time.Second

// Run is the handler of kind [Exec]:
//
//	worker.Handle(w, handlers.Exec, runner.Run)
//
// It returns after the program has ended and its output was read:
//
//   - nil: the exit code is 0 or in Command.OK
//   - a permanent error: this worker does not allow the job, the job is invalid, or the exit
//     code is permanent
//   - the cause of ctx: ctx ended first, and the command was stopped
//   - any other error: the job is retried
func (r *Runner) Run(ctx context.Context, job *pawl.Job[Command]) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cmd, out, err := r.prepare(job)
	if err != nil {
		return err
	}
	hold, err := r.state.begin(ctx, job.ID)
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, hold.mark())
	began := time.Now()
	p, err := start(cmd, hold)
	if err != nil {
		_ = hold.end(cmd.Process != nil)
		if cmd.Process == nil {
			err = cannotStart(job.Args.Args[0], err)
		}
		return err
	}
	stopped := p.wait(ctx, r.grace)
	took := time.Since(began)
	if cmd.ProcessState == nil {
		err = fmt.Errorf("the exit of %q is unknown because other code in this process waits for all children: %w", job.Args.Args[0], p.err)
		return errors.Join(err, hold.end(true))
	}

	failure := &ExitError{Program: job.Args.Args[0], Code: cmd.ProcessState.ExitCode(), Signal: signalOf(cmd.ProcessState),
		Took: took, Tail: out.text(maxTail)}
	err = job.Args.judge(failure, r.permanent)
	switch {
	case stopped:
		err = fmt.Errorf("%w: %w", context.Cause(ctx), failure)
	case err == nil && p.err != nil && !errors.As(p.err, new(*exec.ExitError)) && !errors.Is(p.err, exec.ErrWaitDelay):
		err = fmt.Errorf("%s: its output or input failed: %w", failure.Program, p.err)
	}
	if left := hold.end(err != nil); left != nil && err != nil {
		err = fmt.Errorf("%w\n%w", err, left)
	}
	if r.onRun != nil {
		r.onRun(Run{Job: job.Envelope, Attempt: job.Attempt, Args: job.Args.Args, Started: began, Took: took,
			Code: failure.Code, Output: out.bytes(), Cut: out.cut(), Err: err})
	}
	return err
}

// prepare returns the command of a job, or the reason why this worker refuses it.
func (r *Runner) prepare(job *pawl.Job[Command]) (*exec.Cmd, *output, error) {
	c := &job.Args
	if err := c.Check(); err != nil {
		return nil, nil, pawl.Permanent(err)
	}
	dir, err := r.folders.resolve(c.Dir)
	if err != nil {
		return nil, nil, err
	}
	path, err := r.allow.resolve(c.Args[0], dir)
	if err != nil {
		return nil, nil, pawl.Permanent(err)
	}
	env, err := r.environ.of(c.Env, map[string]string{
		"PWD":               dir,
		"PAWL_JOB_ID":       job.ID.String(),
		"PAWL_QUEUE":        job.Queue,
		"PAWL_ATTEMPT":      strconv.Itoa(job.Attempt),
		"PAWL_LAST_ATTEMPT": strconv.FormatBool(job.Last),
		"PAWL_MAX_ATTEMPTS": strconv.Itoa(job.MaxRetries + 1),
	})
	if err != nil {
		return nil, nil, pawl.Permanent(err)
	}
	out := newOutput(r.output)
	cmd := &exec.Cmd{Path: path, Args: c.Args, Dir: dir, Env: env, Stdout: out, Stderr: out, WaitDelay: pipeGrace}
	if len(c.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	return cmd, out, nil
}

// cannotStart returns the error for a program that the system did not start. It is permanent if
// the program or its arguments are the cause; a lack of memory or processes is not.
func cannotStart(name string, err error) error {
	err = fmt.Errorf("%q cannot be started: %w", name, err)
	if errors.Is(err, os.ErrPermission) || neverStarts(err) {
		return pawl.Permanent(err)
	}
	return err
}
