package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const overview = `Jobctl inspects and controls the queue of a pawl file. If an app has the file
open and serves package admin, jobctl asks the app; otherwise it opens the file.

Usage: jobctl --db FILE [-o FORMAT] COMMAND
       jobctl --addr ADDRESS [-o FORMAT] COMMAND

Commands:
%s
Flags of every command, before or after its words:
%s  -h, --help           what a command does, its flags and the fields of its JSON

Data goes to standard output, and messages go to standard error. Control
characters in names, payloads and errors are printed escaped, as \x1b. 'jobctl
help exit-codes' lists the exit codes for scripts, and 'jobctl help filters'
explains how to select jobs.
`

const filterTopic = `Commands that list or change jobs select them by filters. All must match:

  -q, --queue QUEUE    in this queue
  -s, --state STATE    ready, delayed, leased, dead or completed
  -k, --kind KIND      of this kind
      --error TEXT     whose last error contains this text, ignoring case
      --payload TERM   whose payload matches: user.id=42, user.id!=42 (a string,
                       a number, true, false or null), user.name~ada (contains
                       this text), or user.id (the field exists). A number in
                       the path is an index into a list. All terms must match
      --group GROUP    members of a group of jobs
      --reason REASON  dead for this reason: exhausted, permanent, poison,
                       deadline, cancelled, signature, payload or corrupt
      --since WHEN     created at that time or later
      --until WHEN     created before that time
      --older-than AGE in their state for at least that long
      --died-since WHEN, --died-until WHEN
                       dead jobs that became so at that time or later, or before
      --newest         newest first: dead jobs by when they became dead, others
                       by creation
      --sort KEY       created, or died: by when they became dead, in all queues

An age is a duration before now: 90s, 5m, 2h, 7d or 2w. A time is RFC 3339
(2026-03-01T09:00:00Z); without a zone it is local time. A date means its
beginning.

A command that changes jobs takes their IDs, or - to read IDs from standard
input, or filters, or --all. With filters or --all it first reports how many
jobs match, and asks; -y answers yes, and --dry-run changes nothing.
`

// jsonRules follow the fields of every command that prints JSON.
const jsonRules = `
Times are RFC 3339 in UTC with nanoseconds; a time after the year 9999 is "@"
and Unix seconds. Durations look like 1h2m3.5s. No field is omitted: one that
does not apply is null.
`

func (a *app) helpCommand() *cobra.Command {
	s := &spec{
		use: "help [COMMAND|exit-codes|filters]", short: "show this text, or help for a command", nofile: true, args: -1,
		example: "  jobctl help job list\n  jobctl help exit-codes",
	}
	c := a.command(s)
	c.ValidArgsFunction = nil
	s.run = func(_ context.Context, args []string) error {
		switch words := strings.Join(args, " "); words {
		case "exit-codes":
			fmt.Fprint(a.stdout, exitTopic())
		case "filters":
			fmt.Fprint(a.stdout, filterTopic)
		default:
			named, rest, _ := c.Root().Find(args)
			if len(rest) > 0 {
				return usage("", "unknown command %q", words)
			}
			fmt.Fprint(a.stdout, help(named))
		}
		return nil
	}
	return c
}

// help is the help text of a command, a noun, or everything.
func help(c *cobra.Command) string {
	switch {
	case !c.HasParent() || c.Name() == "help":
		return fmt.Sprintf(overview, summaries(c.Root()), flagLines(c.Root().PersistentFlags()))
	case c.Annotations == nil:
		return fmt.Sprintf("Usage: jobctl --db FILE %s COMMAND\n\nCommands:\n%s\n'jobctl help %s COMMAND' describes one, with its flags and examples.\n", wordsOf(c), summaries(c), wordsOf(c))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s\n\n%s\n", usageLine(c), reflowed(c.Long))
	if lines := flagLines(c.LocalNonPersistentFlags()); lines != "" {
		fmt.Fprintf(&b, "\nFlags:\n%s", lines)
	}
	fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	if fields := c.Annotations[jsonFields]; fields != "" {
		fmt.Fprintf(&b, "\n%s%s", "JSON: "+strings.TrimLeft(fields, " \n"), jsonRules)
	}
	fmt.Fprintf(&b, "\nExit codes: %s\n", exitNames(c))
	b.WriteString("\n'jobctl help' lists the flags of every command.\n")
	return b.String()
}

func usageLine(c *cobra.Command) string {
	line := "jobctl "
	if c.Annotations[withoutFile] == "" {
		line += "--db FILE "
	}
	_, args, _ := strings.Cut(c.Use, " ")
	return strings.TrimSpace(line + wordsOf(c) + " " + args)
}

// flagLines returns the flags of a command, one or more lines each.
func flagLines(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, text := pflag.UnquoteUsage(f)
		left := "      --" + f.Name
		if f.Shorthand != "" {
			left = "  -" + f.Shorthand + ", --" + f.Name
		}
		if f.NoOptDefVal == "" {
			left += " " + name
		}
		indent := "\n" + strings.Repeat(" ", 23)
		if left = fmt.Sprintf("%-22s ", left); len(left) > 23 {
			left = strings.TrimRight(left, " ") + indent
		}
		b.WriteString(left + strings.ReplaceAll(wrapped(strings.Fields(text), 56), "\n", indent) + "\n")
	})
	return b.String()
}

// columns is the width of a help text.
const columns = 80

// reflowed returns a text whose paragraphs fill the lines.
func reflowed(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = wrapped(strings.Fields(p), columns)
	}
	return strings.Join(paragraphs, "\n\n")
}

// wrapped returns a text in lines of at most width characters.
func wrapped(words []string, width int) string {
	var b strings.Builder
	line := 0
	for i, word := range words {
		switch {
		case i == 0:
		case line+1+len(word) > width:
			b.WriteString("\n")
			line = 0
		default:
			b.WriteString(" ")
			line++
		}
		b.WriteString(word)
		line += len(word)
	}
	return b.String()
}

// summaries returns one line for each command below c.
func summaries(c *cobra.Command) string {
	var b strings.Builder
	for _, below := range c.Commands() {
		if below.Annotations == nil && below.HasSubCommands() {
			b.WriteString(summaries(below))
			continue
		}
		fmt.Fprintf(&b, "  %-14s %s\n", wordsOf(below), below.Short)
	}
	return b.String()
}
