package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/bolt"
)

// The error for an invalid command line names the problem and the help, on standard error, with
// exit code 2; for missing arguments it includes an example.
func TestUsageErrors(t *testing.T) {
	const (
		example = "\n  For example: jobctl --db jobs.db "
		retry   = example + "dead retry 01902a3b-7a40-7000-8000-0123456789ab"
		signal  = example + `wf signal order:1042 approved '{"By":"ada"}'`
		next    = "\n  For example: jobctl sched next '30 2 * * MON-FRI' --tz Europe/Berlin"
		cancel  = example + `wf cancel order:1042 --reason "the customer called"`
	)
	cases := []struct{ line, message, help string }{
		{"", "no command was named", "jobctl"},
		{"--db x", "no command was named", "jobctl"},
		{"jobs", `unknown command "jobs"; was it job?`, "jobctl"},
		{"statts", `unknown command "statts"; was it stats?`, "jobctl"},
		{"job lst", `unknown command "job lst"; was it list?`, "jobctl job"},
		{"nonsense", `unknown command "nonsense"`, "jobctl"},
		{"--db x job list --reason permanant", `invalid value "permanant" for flag --reason: it must be one of exhausted, permanent, poison, deadline, cancelled, signature, payload, corrupt`, "jobctl job list"},
		{"--db x job list --payload n>3", `invalid value "n>3" for flag --payload: a term supports =, != and ~, but not < or >`, "jobctl job list"},
		{"--db x job list --payload n>=3", `invalid value "n>=3" for flag --payload: a term supports =, != and ~, but not < or >`, "jobctl job list"},
		{"--db x export --to -", "--to names a file; without it the export goes to standard output", "jobctl export"},
		{"--db x db backup -", "- is not a file name: the new file appears completely or not at all, which standard output cannot; ./- is a file of that name", "jobctl db backup"},
		{"--db x db compact -", "- is not a file name: the new file appears completely or not at all, which standard output cannot; ./- is a file of that name", "jobctl db compact"},
		{"--addr nonsense stats", `--addr: invalid address: "nonsense" is none of unix:///folder/socket, http://host:port, https://host`, "jobctl"},
		{"job", `"job" needs a verb: list, show, why, logs, wait, enqueue, edit, retry, cancel, delete, run-now`, "jobctl job"},
		{"dead", `"dead" needs a verb: list, summary, retry, forward, delete`, "jobctl dead"},
		{"job remove", `unknown command "job remove"`, "jobctl job"},
		{"help jobs", `unknown command "jobs"`, "jobctl"},
		{"stats", "no file was named; add --db FILE", "jobctl stats"},
		{"stats --db", "a value is missing after --db", "jobctl stats"},
		{"stats --db x extra", `unexpected argument "extra"`, "jobctl stats"},
		{"--db x job list --wide", "unknown flag --wide", "jobctl job list"},
		{"--db x job list -w", "unknown flag -w", "jobctl job list"},
		{"--wide", "unknown flag --wide", "jobctl"},
		{"--db x job list -o xml", `invalid value "xml" for flag -o: it must be one of table, wide, json, jsonl, ids`, "jobctl job list"},
		{"-o xml job list", `invalid value "xml" for flag -o: it must be one of table, wide, json, jsonl, ids`, "jobctl job list"},
		{"--db x job list -s done", `invalid value "done" for flag -s: it must be one of ready, delayed, leased, dead, completed`, "jobctl job list"},
		{"--db x job list -n -1", `invalid value "-1" for flag -n: it must be a number, 0 or more`, "jobctl job list"},
		{"--db x job list -n many", `invalid value "many" for flag -n: it must be a number, 0 or more`, "jobctl job list"},
		{"--db x job list ID", `unexpected argument "ID"`, "jobctl job list"},
		{"--db x job show", "no job was named; add its ID", "jobctl job show"},
		{"--db x job show A B", "2 IDs were given; name one job", "jobctl job show"},
		{"--db x job show -- -A", `invalid id: "-A" is not of the form 01234567-89ab-7cde-8f01-23456789abcd`, "jobctl job show"},
		{"--db x job show -- A -o", "2 IDs were given; name one job", "jobctl job show"},
		{"--db x job show A --payload raw", `invalid value "raw" for flag --payload: it must be one of auto, json, hex, base64, none`, "jobctl job show"},
		{"--db x dead list -s ready", "unknown flag -s", "jobctl dead list"},
		{"--db x dead retry", "no job was named; add IDs, - to read them, filters, or --all" + retry, "jobctl dead retry"},
		{"--db x dead retry --all A -y", "--all and an ID were given; choose one" + retry, "jobctl dead retry"},
		{"--db x dead retry A -q email", "an ID and a filter were given; choose one" + retry, "jobctl dead retry"},
		{"--db x wf show", "no run was named; add its ID, or FLOW:ID" + example + "wf show order:1042", "jobctl wf show"},
		{"--db x wf show order", `"order" is not a run: name one by its ID, or by FLOW:ID` + example + "wf show order:1042", "jobctl wf show"},
		{"--db x wf signal order:1", "no signal was named; add its name after the run" + signal, "jobctl wf signal"},
		{"--db x wf signal order:1 approved {", "the value of the signal: invalid JSON: line 1, column 2: it ends too early" + signal, "jobctl wf signal"},
		{"--db x wf cancel", "no run was named; add IDs or FLOW:ID, - to read them, filters, or --all" + cancel, "jobctl wf cancel"},
		{"--db x wf cancel order:1 --flow order", "a run and a filter were given; choose one" + cancel, "jobctl wf cancel"},
		{"--db x wf fork order:1 --id 2", "no step was named; add --from" + example + "wf fork order:1042 --from charge --id 1042-again", "jobctl wf fork"},
		{"--db x wf verify order:1 -s waiting", "a run and a filter were given; choose one" + example + "wf verify", "jobctl wf verify"},
		{"--db x wf list -s lost", `invalid value "lost" for flag -s: it must be one of running, sleeping, waiting, paused, blocked, dead, done, failed, cancelled, terminated`, "jobctl wf list"},
		{"sched next", "no expression was given; add one in quotes" + next, "jobctl sched next"},
		{"sched next 1 2 * * *", "5 arguments were given; put the expression in quotes" + next, "jobctl sched next"},
		{"sched next @daily -n 10001", "-n 10001 is not in 1-10000" + next, "jobctl sched next"},
		{"sched next @daily -n 0", "-n 0 is not in 1-10000" + next, "jobctl sched next"},
		{"--db nats://app:hunter2@db stats", "jobctl cannot open nats: queues; it opens files, postgres:// and redis:// servers", "jobctl stats"},
		{"--db SQLite:app.sqlite stats", "jobctl cannot open sqlite: queues; it opens files, postgres:// and redis:// servers", "jobctl stats"},
		{"--db inline: stats", "jobctl cannot open inline: queues; it opens files, postgres:// and redis:// servers", "jobctl stats"},
		{"sched next @dayly", `invalid schedule: "@dayly" is not @every, @open, or one of @yearly, @monthly, @weekly, @daily, and @hourly (column 1)` + next, "jobctl sched next"},
		{"sched next @daily --tz Europe/Berlim", `the time zone "Europe/Berlim" is unknown; Europe/Berlin?` + next, "jobctl sched next"},
		{"sched next @daily --after soon", "--after soon: it must be an age such as 2h or 7d, a date such as 2026-03-01, or a time such as 2026-03-01T09:00:00Z" + next, "jobctl sched next"},
		{"version now", `unexpected argument "now"`, "jobctl version"},
	}
	for _, c := range cases {
		require.Equal(t, outcomeOf{exitUsage, "", "error: " + c.message + "\n  See '" + c.help + " --help'.\n"},
			jobctl(t, words(c.line)...), c.line)
	}
}

// Help goes to standard output with exit code 0, wherever it is requested.
func TestHelp(t *testing.T) {
	for line, first := range map[string]string{
		"help":                       "Jobctl inspects",
		"--help":                     "Jobctl inspects",
		"-h":                         "Jobctl inspects",
		"help help":                  "Jobctl inspects",
		"--db x help":                "Jobctl inspects",
		"job --help":                 "Usage: jobctl --db FILE job COMMAND",
		"help dead":                  "Usage: jobctl --db FILE dead COMMAND",
		"stats --help":               "Usage: jobctl --db FILE stats [--watch TIME] [--fail-if LIMITS]\n",
		"help job list":              "Usage: jobctl --db FILE job list [FILTER...]",
		"job list --help":            "Usage: jobctl --db FILE job list [FILTER...]",
		"job list -q email -h":       "Usage: jobctl --db FILE job list [FILTER...]",
		"job show --help":            "Usage: jobctl --db FILE job show ID",
		"--db x dead list --help":    "Usage: jobctl --db FILE dead list",
		"dead retry --all --help -y": "Usage: jobctl --db FILE dead retry ID... | - | FILTER... | --all\n",
		"version --help":             "Usage: jobctl version\n",
	} {
		got := jobctl(t, words(line)...)
		require.Equal(t, exitOK, got.code, line)
		require.Empty(t, got.stderr, line)
		require.True(t, strings.HasPrefix(got.stdout, first), "%s: %s", line, got.stdout)
	}
}

// Help names every flag of a command.
func TestHelpNamesEveryFlag(t *testing.T) {
	for _, c := range leaves(tree()) {
		words := wordsOf(c)
		text := jobctl(t, append(strings.Fields(words), "--help")...).stdout
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" {
				require.Contains(t, text, "--"+f.Name, words)
			}
		})
	}
}

// Flags of all commands may be anywhere, and the last value counts.
func TestSharedFlagsStandAnywhere(t *testing.T) {
	build(t, everyState)
	want := jobctl(t, "--db", "app.db", "-o", "json", "job", "show", id(1).String())
	require.Zero(t, want.code)
	for _, line := range []string{
		"job --db app.db -o json show ID",
		"job show --db=app.db -o=json ID",
		"job show ID --db app.db -o json",
		"--db app.db job show -ojson -- ID",
		"-o table --db nowhere.db job show ID --db app.db -o json",
	} {
		require.Equal(t, want, jobctl(t, words(strings.Replace(line, "ID", id(1).String(), 1))...), line)
	}
}

// A file that another queue has open gives exit code 4 with the remedy, for readers and writers.
func TestLockedFile(t *testing.T) {
	build(t, everyState)
	q, err := bolt.Open("app.db", &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	for _, line := range []string{"stats", "dead retry --all -y"} {
		got := jobctl(t, append(words("--db app.db"), words(line)...)...)
		require.Equal(t, exitLocked, got.code)
		require.Empty(t, got.stdout)
		require.Regexp(t, `^error: app\.db is locked( \([^)]+\))? and has no admin endpoint\n`+
			`  Enable one \(package admin\), stop the app, or read a backup made by the app\.\n$`, got.stderr)
	}
	_, err = q.Job(context.Background(), id(1))
	require.NoError(t, err)
}

// Output that cannot be written is an error, even if it is short.
func TestWriteError(t *testing.T) {
	build(t, everyState)
	var stderr bytes.Buffer
	code := run(words("--db app.db job list"), strings.NewReader(""), broken{}, &stderr)
	require.Equal(t, exitError, code)
	require.Equal(t, "error: write the output: no space\n", stderr.String())
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space") }

// Messages escape text from the command line and names from the file.
func TestMessagesAreEscaped(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Equal(t, `error: a\x1b[31m\u202eb: no such file`, strings.Split(jobctl(t, "--db", "a\x1b[31m\u202eb", "stats").stderr, "\n")[0])
	for _, args := range [][]string{{"\x1b"}, {"--\x1b"}, {"--db", "x", "job", "show", "\x1b"}, {"-o", "\x1b"}, {"job", "list", "-s", "\x1b"}} {
		require.NotContains(t, jobctl(t, args...).stderr, "\x1b")
	}
}

// The null device and a pipe are not terminals.
func TestNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.False(t, isTerminal(null))
	require.False(t, isTerminal(r))
	require.False(t, isTerminal(strings.NewReader("")))
}

// Version needs no file, and supports JSON too.
func TestVersion(t *testing.T) {
	got := jobctl(t, "version")
	require.Zero(t, got.code)
	require.Regexp(t, `^jobctl \S+ go\S+ \w+/\w+\n$`, got.stdout)
	var v versionView
	require.NoError(t, json.Unmarshal([]byte(jobctl(t, "version", "-o", "json").stdout), &v))
	require.NotEmpty(t, v.Go)
}

// tree returns the tree of commands, without an environment.
func tree() *cobra.Command {
	a := &app{env: func(string) string { return "" }, now: time.Now}
	return a.commands()
}
