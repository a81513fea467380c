package main

import (
	"fmt"
	"strings"
)

const overview = `Jobctl looks into the file of a pawl queue and puts dead letters back to work.
It works on a file that no process has open: stop the app, or read a copy that
was made while it was stopped. Only salvage creates a file.

Usage: jobctl --db FILE [-o table|json|jsonl] COMMAND
       jobctl [-o table|json|jsonl] salvage FROM TO

Commands:
%s  help         this text, or 'help COMMAND'

Flags of every command, before or behind its words:
  --db FILE    the file of the queue
  -o FORMAT    table (default), json, or jsonl: one JSON object a line
  --help       what a command does, its flags and the fields of its JSON

Exit codes:
  0  done; a list may be empty
  1  an error
  2  the command line is wrong; nothing was looked at
  3  no match: no such job, or nothing to retry
  4  another process has the file open
  5  damaged data was met; what could be read was printed
  6  the job is in another state than the command needs, or its deadline has
     passed, or another job has its unique key
  7  the file has the format of another release; nothing was changed

Data goes to standard output, messages go to standard error. Control characters
in names, payloads and errors are printed escaped, as \x1b.
`

// jsonRules go below the fields of every command that prints JSON.
const jsonRules = `
Times are RFC 3339 in UTC with nine digits of nanoseconds, years beyond 0..9999
are cut to them; durations are written as 1h2m3.5s. A field is never left out:
what does not apply is null. Bytes of a name or an error that are no UTF-8 are
U+FFFD.

'jobctl help' has the flags of every command and the exit codes.
`

// help prints what the words name: a command, a noun's commands, or everything.
func (a *app) help(words string) error {
	if c, ok := find(words); ok {
		fmt.Fprint(a.stdout, c.help())
		return nil
	}
	switch {
	case words == "" || words == "help":
		fmt.Fprintf(a.stdout, overview, summaries(""))
	case isNoun(words):
		fmt.Fprintf(a.stdout, "Usage: jobctl --db FILE %s COMMAND\n\nCommands:\n%s", words, summaries(words+" "))
	default:
		return usage("", "unknown command %q", words)
	}
	return nil
}

// incomplete complains about a command line that ends before its command.
func (a *app) incomplete(words string) error {
	if words == "" {
		return usage("", "no command was named")
	}
	var verbs []string
	for _, c := range commands() {
		if verb, ok := strings.CutPrefix(c.words, words+" "); ok {
			verbs = append(verbs, verb)
		}
	}
	return usage(words, "%q needs a verb: %s", words, strings.Join(verbs, " or "))
}

func (c command) help() string {
	var b strings.Builder
	b.WriteString("Usage: jobctl ")
	if c.file {
		b.WriteString("--db FILE ")
	}
	b.WriteString(strings.TrimSpace(c.words + " " + c.args))
	b.WriteString("\n\n" + c.text)
	if c.file {
		b.WriteString(jsonRules)
	}
	return b.String()
}

// summaries is one line for each command whose words begin with prefix.
func summaries(prefix string) string {
	var b strings.Builder
	for _, c := range commands() {
		if strings.HasPrefix(c.words, prefix) {
			fmt.Fprintf(&b, "  %-12s %s\n", c.words, c.short)
		}
	}
	return b.String()
}
