// Jobctl inspects and controls the queue of a pawl file, whether its app runs or not.
//
//	jobctl --db FILE [-o table|wide|json|jsonl|ids] COMMAND
//	jobctl --addr unix:///PATH|http://HOST:PORT|https://HOST COMMAND
//
// 'jobctl help' lists the commands. 'jobctl COMMAND --help' describes the flags of one, with
// examples and the fields of its JSON. 'jobctl help exit-codes' lists the exit codes for
// scripts.
//
// Data goes to standard output, messages go to standard error. The file is untrusted:
// control characters in names, payloads and errors are printed escaped, as \x1b.
package main

// The program has few concepts. A command, or a few alike, is one file: flags, help and what it does,
// through package admin, to the queue that --db or --addr names. The app is what a command uses:
// standard streams, the clock and the flags that all commands share. A command converts its
// results into the structs of view.go or into admin.Job, and passes them to a listing or to
// app.print, which write a table or JSON. A change (change.go) changes jobs: it selects, asks,
// and acts. Only failure.go turns an error into a message and an exit code.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	os.Exit(runIn(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// runIn carries out one command line and returns the exit code.
func runIn(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		stdin:    stdin,
		stdout:   bufio.NewWriter(stdout),
		stderr:   stderr,
		now:      time.Now,
		zone:     time.Local,
		env:      os.Getenv,
		terminal: isTerminal(stdin) && isTerminal(stderr),
		screen:   isTerminal(stdout),
		width:    columnsOf(stdout),
		bars:     isTerminal(stderr),
	}
	return a.run(ctx, args)
}

// app is what a command uses.
type app struct {
	stdin     io.Reader
	stdout    *bufio.Writer // data
	stderr    io.Writer     // messages
	now       func() time.Time
	zone      *time.Location // the time zone for people
	env       func(name string) string
	terminal  bool         // there is a user to ask
	screen    bool         // standard output is a terminal
	width     int          // columns of the screen; 0 if unknown
	bars      bool         // standard error is a terminal
	note      func(string) // receives what opening changed beyond the request
	completes bool         // the command line asks for completions
	flags     shared
}

// run finds the command that args name and executes it.
func (a *app) run(ctx context.Context, args []string) int {
	if a.note == nil {
		a.note = func(sentence string) { a.say("note: %s", sentence) }
	}
	a.completes = completes(args)
	root := a.commands()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if flushErr := a.stdout.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("write the output: %w", flushErr)
	}
	return a.explain(ctx, err)
}
