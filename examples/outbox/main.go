// Outbox keeps messages in a file until they can be delivered: a command-line tool
// that works offline and has no daemon.
//
//	outbox add Call me back    stores a message and returns, whatever the network does
//	outbox list                shows what waits, and what failed and why
//	outbox sync -to URL        delivers what is due, in the order in which it came
//	outbox retry               takes up again what was given up
//
// Try it:
//
//	go run ./examples/outbox -db /tmp/outbox.db add hello
//	go run ./examples/outbox -db /tmp/outbox.db list
//	go run ./examples/outbox -db /tmp/outbox.db sync
//
// A message is on the disk when add has printed its ID, and leaves the file when it
// was delivered; whoever is killed in between loses none. Delivery is at least once:
// the ID travels along, for the other side to know a message that it has already.
//
// Exit codes: 0 all is well, and after sync nothing is left; 1 something is left, or
// failed; 2 usage; 130 interrupted.
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
  add TEXT...      store a message (the words with spaces between; - reads it from
                   the standard input) and print its ID; put -- before a text that
                   begins with -
  list [-json]     show the messages that were not delivered, and why
  sync [-to SINK]  deliver what is due to SINK, an http(s) URL or a file to append to;
                   exits with 1 when something is left
  retry [ID...]    let sync try dead messages again, all unless IDs are given
  drop ID...       remove dead messages for good
  help             show this

outbox COMMAND -h shows the flags of a command. The messages are in
outbox/outbox.db in your folder for configurations, unless -db says otherwise.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second ctrl-C ends it at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// program is one run of outbox.
type program struct {
	db             string // path of the queue; "" for the default
	stdin          io.Reader
	stdout, stderr io.Writer
}

// usageError is a mistake in the command line.
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
		fmt.Fprintf(stderr, "outbox: %v; outbox help shows how it is used\n", err)
		return 2
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "outbox: interrupted; what was not delivered waits for the next sync")
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
		return nil // parse has shown it
	}
	return err
}

// parse adds the flag that all commands have, and returns what follows the flags.
func (p *program) parse(flags *flag.FlagSet, operands string, args []string) ([]string, error) {
	flags.StringVar(&p.db, "db", p.db, "`file` of the messages")
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
