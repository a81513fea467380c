// Jobctl looks into the queue of a pawl file and steers it, whether its app runs or not.
//
//	jobctl --db FILE [-o table|wide|json|jsonl|ids] COMMAND
//	jobctl --addr unix:///PATH|http://HOST:PORT|https://HOST COMMAND
//
// 'jobctl help' lists the commands, 'jobctl COMMAND --help' has the flags of one,
// examples, and the fields of its JSON, and 'jobctl help exit-codes' what a script decides
// by.
//
// Data goes to standard output, messages go to standard error. The file is untrusted:
// control characters in names, payloads and errors are printed escaped, as \x1b.
package main

// Few nouns make it up. A command is one file: its flags, its help and what it does, with
// package admin, to the queue that --db or --addr leads to. The app is what a command may
// use: standard streams, the clock and the flags that all commands share. A command turns
// what it finds into the structs of view.go or into admin.Job, and hands them to a listing
// or to app.print, which write a table or JSON. What changes jobs is a change (change.go):
// it chooses, asks, and does. An error becomes a message and an exit code in failure.go
// alone.

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
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
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

// app is what a command may use.
type app struct {
	stdin    io.Reader
	stdout   *bufio.Writer // data
	stderr   io.Writer     // messages
	now      func() time.Time
	zone     *time.Location // in which people read times
	env      func(name string) string
	terminal bool         // there is somebody to ask
	screen   bool         // standard output is a terminal
	width    int          // of so many columns; 0 where that is not known
	bars     bool         // standard error is one
	note     func(string) // is told what an open has changed besides what was asked for
	flags    shared
}

// run finds the command that args name and has it carried out.
func (a *app) run(ctx context.Context, args []string) int {
	if a.note == nil {
		a.note = func(sentence string) { a.say("note: %s", sentence) }
	}
	root := a.commands()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if flushErr := a.stdout.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("write the output: %w", flushErr)
	}
	return a.explain(ctx, err)
}
