// Outbox keeps messages in a file until they can be delivered. It is a command-line tool that works
// offline and without a daemon.
//
//	outbox add Call me back    stores a message and returns, even without a network
//	outbox list                lists pending and failed messages with their errors
//	outbox sync -to URL        delivers due messages in order
//	outbox retry               retries dead messages
//
// Try it:
//
//	go run ./examples/outbox -db /tmp/outbox.db add hello
//	go run ./examples/outbox -db /tmp/outbox.db list
//	go run ./examples/outbox -db /tmp/outbox.db sync
//
// Add, list, retry, and drop also work while a sync runs: they ask the process that has the file. A second
// sync waits for the first, and takes over if that one is killed.
//
// A message is on disk when add prints its ID, and leaves the file after delivery. A kill in between
// loses nothing. Delivery is at least once; the receiver can recognize repeated messages by their ID.
//
// Exit codes: 0 success, and after sync nothing is left; 1 messages are left, or an error; 2 usage; 130
// interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const help = `outbox keeps messages in a file until they can be delivered.

usage: outbox [-db FILE] COMMAND

commands:
  add TEXT...      store a message and print its ID; - reads it from standard input,
                   and -- precedes a text that begins with -
  list [-json]     list undelivered messages and their errors
  sync [-to SINK]  deliver due messages to SINK, an http(s) URL or a file to append to;
                   exit with 1 if messages are left
  retry [ID...]    let sync retry dead messages, by default all
  drop ID...       remove dead messages permanently
  help             print this help

outbox COMMAND -h prints the flags of a command. By default the messages are in
outbox/outbox.db in your configuration folder.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second ctrl-C kills the program
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// program is one run of outbox.
type program struct {
	db             string // path of the file; "" means the default
	stdin          io.Reader
	stdout, stderr io.Writer
}

// usageError is an invalid command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr}
	err := p.run(ctx, args)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "outbox: %v; see outbox help\n", err)
		return 2
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "outbox: interrupted; the next sync delivers the rest")
		return 130
	}
	fmt.Fprintln(stderr, "outbox:", err)
	return 1
}

func (p *program) run(ctx context.Context, args []string) error {
	args, err := p.parse(flag.NewFlagSet("outbox", flag.ContinueOnError), "", args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		args = []string{"help"}
	case err != nil:
		return err
	case len(args) == 0:
		return usageError{"no command"}
	}
	name, args := args[0], args[1:]
	flags := flag.NewFlagSet("outbox "+name, flag.ContinueOnError)
	switch name {
	case "add":
		err = p.add(ctx, flags, args)
	case "list":
		err = p.list(ctx, flags, args)
	case "sync":
		err = p.sync(ctx, flags, args)
	case "retry":
		err = p.retry(ctx, flags, args)
	case "drop":
		err = p.drop(ctx, flags, args)
	case "help":
		fmt.Fprint(p.stdout, help)
	default:
		err = usageError{fmt.Sprintf("no command %q", name)}
	}
	if errors.Is(err, flag.ErrHelp) {
		return nil // parse has printed it
	}
	return err
}

// parse parses the flags of a command, including the common -db, and returns the arguments.
func (p *program) parse(flags *flag.FlagSet, operands string, args []string) ([]string, error) {
	flags.StringVar(&p.db, "db", p.db, "`file` with the messages")
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) && flags.Name() != "outbox" {
		fmt.Fprintf(p.stdout, "usage: %s [flags] %s\n", flags.Name(), operands)
		flags.SetOutput(p.stdout)
		flags.PrintDefaults()
	} else if err != nil && !errors.Is(err, flag.ErrHelp) {
		err = usageError{err.Error()}
	}
	return flags.Args(), err
}
