package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shared holds the flags of every command.
type shared struct {
	db       string // a file, or a server without its password; "" with addr
	server   string // the URL if db is on a server
	addr     string // address of an app
	output   string // table, wide, json, jsonl or ids
	color    string // auto, always or never
	utc      bool
	timeout  time.Duration
	yes      bool
	verbose  bool
	insecure bool
}

// Tests raise these limits, because an app takes longer to answer on a busy machine.
var (
	answerTime     = 3 * time.Second // the default of --timeout
	completionTime = time.Second     // for the words after a tab
)

func (a *app) register(flags *pflag.FlagSet) {
	a.flags = shared{output: "table", color: "auto", timeout: answerTime}
	s := &a.flags
	flags.Var(textFlag(&s.db), "db", "the `FILE` of the queue, or its server: postgres://USER@HOST/DATABASE or redis://HOST (default: the variable JOBCTL_DB)")
	flags.Var(textFlag(&s.addr), "addr", "the `ADDRESS` of its app: unix:///PATH, http://HOST:PORT or https://HOST; the variable JOBCTL_TOKEN holds the token")
	flags.VarP(oneOf(&s.output, "table", "wide", "json", "jsonl", "ids"), "output", "o", "the `FORMAT`: table (default), wide (a table with more columns), json, jsonl (one JSON object per line), or ids (of jobs or runs, or names of queues, one per line)")
	flags.Var(oneOf(&s.color, "auto", "always", "never"), "color", "use colors `WHEN`: auto (default: on a terminal, unless NO_COLOR is set or TERM is dumb), always or never")
	flags.BoolVar(&s.utc, "utc", false, "show times in tables in UTC, not in local time")
	flags.Var(ageFlag(&s.timeout), "timeout", "the `TIME` to wait for an app's answer (default 3s)")
	flags.BoolVarP(&s.yes, "yes", "y", false, "answer yes to every question")
	flags.BoolVarP(&s.verbose, "verbose", "v", false, "print more on standard error")
	flags.BoolVar(&s.insecure, "insecure", false, "accept a file that other users could have created or changed")
}

// people reports whether the output is for a person, and not a program.
func (a *app) people() bool { return a.flags.output == "table" || a.flags.output == "wide" }

func (a *app) wide() bool { return a.flags.output == "wide" }

// location returns the time zone for people.
func (a *app) location() *time.Location {
	if a.flags.utc || a.zone == nil {
		return time.UTC
	}
	return a.zone
}

// flagFunc is a flag value that a function parses.
type flagFunc struct{ set func(string) error }

func (f flagFunc) Set(text string) error { return f.set(text) }
func (f flagFunc) Type() string          { return "text" }
func (f flagFunc) String() string        { return "" } // help texts name the defaults in words

// manyFlag is the value of a flag that may be repeated: each value counts.
type manyFlag struct{ flagFunc }

func (manyFlag) Type() string { return "textArray" } // Array lets completion offer the flag again

// onceFlag rejects a second value; otherwise the last one would silently win.
type onceFlag struct {
	pflag.Value
	set bool
}

func (f *onceFlag) Set(text string) error {
	if f.set {
		return errors.New("it was given twice; give it once")
	}
	f.set = true
	return f.Value.Set(text)
}

// refuseTwice lets each flag of a command that does not collect its values occur once. Flags of
// all commands are exempt: an alias may contain one, and the last one wins.
func refuseTwice(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		kind := f.Value.Type()
		if kind != "bool" && !strings.HasSuffix(kind, "Array") && !strings.HasSuffix(kind, "Slice") {
			f.Value = &onceFlag{Value: f.Value}
		}
	})
}

// eachOf is a flag that collects several of these words.
func eachOf(to *[]string, words ...string) pflag.Value {
	return chosen{eachFlag(to, oneOf(new(string), words...).Set), words}
}

// oneOf is a flag that takes one of several words.
func oneOf(to *string, words ...string) pflag.Value {
	return chosen{flagFunc{func(given string) error {
		if !slices.Contains(words, given) {
			return fmt.Errorf("it must be one of %s", strings.Join(words, ", "))
		}
		*to = given
		return nil
	}}, words}
}

// chosen is the value of a flag that takes words, which complete it.
type chosen struct {
	pflag.Value
	words []string
}

// completeFlag gives a flag its own completion. Package cobra keeps each for as long as the process
// runs, so no flag has one unless the command line asks for completions.
func (a *app) completeFlag(c *cobra.Command, name string, complete cobra.CompletionFunc) {
	if a.completes {
		_ = c.RegisterFlagCompletionFunc(name, complete)
	}
}

// completeFlags completes the values of a command's flags: with their words, or else by the name
// that the help gives the value. It does not change a flag that has its own completion.
func (a *app) completeFlags(c *cobra.Command) {
	byName := map[string]cobra.CompletionFunc{
		"QUEUE": a.completeQueues, "KIND": a.completeKinds, "FLOW": a.completeFlows,
		"FILE": files, "FOLDER": files, "BODY": files, "PROGRAM": files,
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, own := c.GetFlagCompletionFunc(f.Name); own || f.NoOptDefVal == "true" {
			return
		}
		name, _ := pflag.UnquoteUsage(f)
		complete := cobra.CompletionFunc(cobra.NoFileCompletions)
		if v, ok := f.Value.(chosen); ok {
			complete = cobra.FixedCompletions(v.words, cobra.ShellCompDirectiveNoFileComp)
		} else if byName[name] != nil {
			complete = byName[name]
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, complete)
	})
}

// nameFlag is a flag for a name. It rejects an empty name: otherwise a script's -q "$Q" with an
// empty Q would select every queue.
func nameFlag(to *string, valid func(string) error) pflag.Value {
	return flagFunc{func(name string) error {
		*to = name
		return valid(name)
	}}
}

// textFlag is a flag for a text. Like nameFlag, it rejects an empty text.
func textFlag(to *string) pflag.Value {
	return nameFlag(to, notEmpty)
}

// parsed is a flag that takes what a function parses.
func parsed[T any](to *T, parse func(string) (T, error)) flagFunc {
	return flagFunc{func(text string) (err error) {
		*to, err = parse(text)
		return err
	}}
}

// countFlag takes a number that is not negative.
func countFlag(to *int) pflag.Value { return parsed(to, parseCount) }

// ageFlag takes a duration.
func ageFlag(to *time.Duration) pflag.Value { return parsed(to, parseAge) }

// momentFlag takes a time, or an age before now. It is parsed when the command runs, with the
// clock of the app.
func (a *app) momentFlag(to *time.Time) pflag.Value {
	return parsed(to, func(text string) (time.Time, error) { return parseMoment(text, a.now(), a.location()) })
}

// dryRunFlag adds the --dry-run flag of a command that changes something.
func dryRunFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "dry-run", false, "print what would be done, and change nothing")
}

// flagProblem rewords an error of package pflag.
func flagProblem(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	text := err.Error()
	switch {
	case errors.As(err, &unknown):
		text = "unknown flag " + dashed(unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames() != "")
	case errors.As(err, &missing):
		text = "a value is missing after " + dashed(missing.GetSpecifiedName(), missing.GetSpecifiedShortnames() != "")
	case errors.As(err, &invalid):
		name := "--" + invalid.GetFlag().Name
		if short := invalid.GetFlag().Shorthand; short != "" {
			name = "-" + short
		}
		text = fmt.Sprintf("invalid value %q for flag %s: %s", invalid.GetValue(), name, errors.Unwrap(invalid))
	}
	return usage(wordsOf(c), "%s", text)
}

func dashed(name string, short bool) string {
	if short {
		return "-" + name
	}
	return "--" + name
}
