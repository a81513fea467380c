// Jobctl looks into the file of a pawl queue and puts dead letters back to work. It
// works on a file that no process has open: stop the app, or read a copy that was
// made while it was stopped. Only salvage creates a file.
//
//	jobctl --db FILE [-o table|json|jsonl] COMMAND
//	jobctl [-o table|json|jsonl] salvage FROM TO
//
// The commands:
//
//	stats        how many jobs each queue has in each state
//	job list     jobs, by queue, state and kind
//	job show     everything about one job
//	dead list    dead letters with their last error
//	dead retry   make dead letters ready again
//	salvage      save what is sound in a damaged file into a new one
//	version      which build this is
//	help         this text, or 'help COMMAND'
//
// 'jobctl COMMAND --help' has the flags of a command, examples, and the fields of its
// JSON.
//
// Exit codes: 0 done, 1 an error, 2 the command line is wrong, 3 no match, 4 another
// process has the file open, 5 damaged data was met and what could be read was printed,
// 6 the job is in another state than the command needs, or cannot run again as it is, 7
// the file has the format of another release.
//
// Data goes to standard output, messages go to standard error. The file is untrusted:
// control characters in names, payloads and errors are printed escaped, as \x1b.
package main

// Few nouns make it up. A command is a pair of words with its flags and an action;
// the app is what an action may use: standard streams, the clock and the flags that
// all commands share. An action opens the file, turns what it finds into the structs
// of view.go, and hands them to a listing or to app.print, which write a table or
// JSON. An error becomes a message and an exit code in failure.go alone.

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run carries out one command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		stdin:    stdin,
		stdout:   bufio.NewWriter(stdout),
		stderr:   stderr,
		now:      time.Now,
		terminal: isTerminal(stdin) && isTerminal(stderr),
	}
	return a.run(args)
}

// app is what a command may use.
type app struct {
	stdin    io.Reader
	stdout   *bufio.Writer // data
	stderr   io.Writer     // messages
	now      func() time.Time
	terminal bool // there is somebody to ask
	flags    shared
}

// shared are the flags that every command takes.
type shared struct {
	db     string
	output string // table, json or jsonl
}

func (s *shared) register(fs *flag.FlagSet) {
	fs.StringVar(&s.db, "db", s.db, "")
	fs.Func("o", "", oneOf(&s.output, "table", "json", "jsonl"))
}

// oneOf is a flag that takes one of several words.
func oneOf(to *string, words ...string) func(string) error {
	return func(given string) error {
		for _, word := range words {
			if given == word {
				*to = given
				return nil
			}
		}
		return fmt.Errorf("it must be one of %s", strings.Join(words, ", "))
	}
}

func (a *app) run(args []string) int {
	a.flags.output = "table"
	err := a.dispatch(args)
	if flushErr := a.stdout.Flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("write the output: %w", flushErr)
	}
	return a.explain(err)
}

// dispatch finds the command that args name, between flags that all commands share,
// and runs it.
func (a *app) dispatch(args []string) error {
	words := ""
	for {
		fs := newFlagSet()
		a.flags.register(fs)
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			return a.help(words)
		} else if err != nil {
			return usage(words, "%s", flagProblem(err))
		}
		if args = fs.Args(); len(args) == 0 {
			return a.incomplete(words)
		}
		longer := strings.TrimPrefix(words+" "+args[0], " ")
		args = args[1:]
		if longer == "help" {
			return a.help(strings.Join(args, " "))
		}
		if c, ok := find(longer); ok {
			return a.perform(c, args)
		}
		if !isNoun(longer) {
			return usage(words, "unknown command %q", longer)
		}
		words = longer
	}
}

// perform parses the flags of a command and runs it.
func (a *app) perform(c command, args []string) error {
	fs := newFlagSet()
	a.flags.register(fs)
	act := c.setup(fs)
	given, err := parse(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return a.help(c.words)
	case err != nil:
		return usage(c.words, "%s", flagProblem(err))
	case c.file && a.flags.db == "":
		return usage(c.words, "no file was named; add --db FILE")
	case !c.ids && len(given) > 0:
		return usage(c.words, "unexpected argument %q", given[0])
	}
	return act(a, given)
}

// newFlagSet is silent: what to print is decided here.
func newFlagSet() *flag.FlagSet {
	fs := flag.NewFlagSet("jobctl", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return fs
}

// parse takes flags and arguments in any order, where package flag alone stops at
// the first argument. Behind "--" everything is an argument.
func parse(fs *flag.FlagSet, args []string) (given []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		rest := fs.Args()
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(given, rest...), nil
		}
		if len(rest) == 0 {
			return given, nil
		}
		given, args = append(given, rest[0]), rest[1:]
	}
}

// flagProblem rewords an error of package flag, which writes every flag with one
// dash.
func flagProblem(err error) string {
	text := err.Error()
	for _, word := range []struct{ theirs, ours string }{
		{"flag provided but not defined: ", "unknown flag "},
		{"flag needs an argument: ", "a value is missing behind "},
	} {
		if name, ok := strings.CutPrefix(text, word.theirs); ok {
			if name = strings.TrimLeft(name, "-"); len(name) > 1 {
				return word.ours + "--" + name
			}
			return word.ours + "-" + name
		}
	}
	return text
}
