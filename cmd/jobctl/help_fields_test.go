package main

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// printing lists command lines that print every field, with the file of everyState and a damaged
// one. They run in this order.
var printing = []string{
	"job list", "dead list", "dead summary", "job show JOB1", "job why JOB5", "job wait JOB1", "queue list", "queue show email", "stats", "throughput",
	"db info", "db check", "export --to jobs.jsonl", "import jobs.jsonl --dry-run",
	"db backup copy.db", "db compact small.db", "db salvage bad.db saved.db",
	"job enqueue greet", "job enqueue greet --dry-run", "job enqueue --batch @lines", "job enqueue --batch @lines --dry-run", "job enqueue --file lines",
	"queue pause email", "queue resume email", "db reap",
	"job edit JOB5 {}", "job cancel JOB6", "job run-now JOB5", "job retry JOB1", "dead retry JOB2", "dead retry JOB3", "job delete JOB6",
	"job cancel -q reports -y", "dead forward --all -y -n 1", "queue purge email --state ready -y", "dead delete --all -y",
	"sched next @daily", "version",
	"sched add nightly @daily greet", "sched pause nightly --note why", "sched resume nightly", "sched set nightly @hourly",
	"sched reset nightly", "sched trigger nightly", "sched list", "sched show nightly", "sched history nightly",
	"sched backfill nightly --from 2026-01-01 --to 2026-01-02", "sched remove nightly -y",
}

// Rule: the help of a command names the fields that it prints, and no others.
func TestHelpNamesWhatIsPrinted(t *testing.T) {
	fields := fieldsPrinted(t)
	for _, c := range leaves(tree()) {
		words, text := wordsOf(c), c.Annotations[jsonFields]
		require.Equal(t, text != "", fields[words] != nil, "%s: its help has fields, or it prints some", words)
		named := make(map[string]bool)
		for _, word := range fieldWord.FindAllString(text, -1) {
			named[word] = true
		}
		for name := range fields[words] {
			require.True(t, named[name], "%s prints %s, which its help does not name", words, name)
		}
		text = parenthesis.ReplaceAllString(parenthesis.ReplaceAllString(text, ""), "") // one in the other, too
		for _, name := range fieldWord.FindAllString(text, -1) {
			if strings.Contains(name, "_") { // any other may be prose
				require.True(t, fields[words][name], "the help of %s names %s, which it does not print", words, name)
			}
		}
	}
}

var (
	fieldWord   = regexp.MustCompile(`[a-z][a-z0-9_]*`)
	parenthesis = regexp.MustCompile(`\([^()]*\)`) // what a field means, in the text of a help
)

// fieldsPrinted returns the names of the fields that each command prints.
func fieldsPrinted(t *testing.T) map[string]map[string]bool {
	all := make(map[string]map[string]bool)
	add := func(words string, text []byte) {
		if all[words] == nil {
			all[words] = make(map[string]bool)
		}
		var value any
		require.NoError(t, json.Unmarshal(text, &value), "%s: %s", words, text)
		collect(value, all[words])
	}
	build(t, everyState)
	require.NoError(t, os.WriteFile("lines", []byte(`{"kind":"greet"}`), 0o600))
	damaged(t, "bad.db")
	for _, served := range []bool{false, true} { // counts of runs, and the process, are those of an app that runs
		stop := func() {}
		if served {
			stop = serve(t, "app.db")
		}
		for _, line := range printing {
			if served && !slices.Contains([]string{"stats", "queue list", "queue show email", "db info"}, line) {
				continue
			}
			args := words(jobNumber.ReplaceAllString(line, "019caa00-0000-7000-8000-00000000000$1"))
			got := jobctl(t, append(args, "--db", "app.db", "-o", "json")...)
			require.NotEmpty(t, got.stdout, "%s: %s", line, got.stderr)
			add(commandOf(t, line), []byte(got.stdout))
		}
		stop()
	}
	buildAt(t, "runs.db", workflows)
	for _, line := range printingRuns {
		got := jobctl(t, append(words(line), "--db", "runs.db", "-o", "json")...)
		require.NotEmpty(t, got.stdout, "%s: %s", line, got.stderr)
		add(commandOf(t, line), []byte(got.stdout))
	}
	buildAt(t, "keys.db", keyed)
	for _, line := range []string{"key list sync", "key show sync a"} {
		add(commandOf(t, line), []byte(jobctl(t, append(words(line), "--db", "keys.db", "-o", "json")...).stdout))
	}
	buildAt(t, "held.db", heldKey)
	for _, line := range []string{"job enqueue k -q sync --key b --cost 2 --weight 2", "job list", "dead list", "job show JOB1", "job wait JOB1"} {
		args := words(jobNumber.ReplaceAllString(line, "019caa00-0000-7000-8000-00000000000$1"))
		add(commandOf(t, line), []byte(jobctl(t, append(args, "--db", "held.db", "-o", "json")...).stdout))
	}
	add("key release", []byte(jobctl(t, words("key release sync a --db held.db -o json")...).stdout))
	for _, line := range []string{"limit list", "limit set sync --running 1", "limit reset sync"} {
		add(commandOf(t, line), []byte(jobctl(t, append(words(line), "--db", "keys.db", "-o", "json")...).stdout))
	}
	buildAt(t, "notes.db", jobNotes)
	for _, verb := range []string{"logs", "show"} {
		add("job "+verb, []byte(jobctl(t, "job", verb, id(1).String(), "--db", "notes.db", "-o", "json").stdout))
	}
	buildAt(t, "groups.db", jobGroups)
	for _, line := range printingGroups {
		args := words(jobNumber.ReplaceAllString(line, "019caa00-0000-7000-8000-00000000000$1"))
		got := jobctl(t, append(args, "--db", "groups.db", "-o", "json")...)
		require.NotEmpty(t, got.stdout, "%s: %s", line, got.stderr)
		add(commandOf(t, line), []byte(got.stdout))
	}
	// These two print events until they are interrupted.
	event := viewOfEvent(&admin.Event{Event: pawl.Event{Job: &pawl.Envelope{}}})
	for words, v := range map[string]any{"watch": event, "work": workView{}} {
		text, err := encode(v)
		require.NoError(t, err)
		add(words, text)
	}
	return all
}

var jobNumber = regexp.MustCompile(`JOB(\d)`)

// collect adds the names of fields to names, except those that users define in headers and
// payloads.
func collect(value any, names map[string]bool) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			collect(one, names)
		}
	case map[string]any:
		for name, below := range value {
			if names[name] = true; name != "headers" && name != "value" {
				collect(below, names)
			}
		}
	}
}

// commandOf returns the command of a line.
func commandOf(t *testing.T, line string) string {
	t.Helper()
	for _, c := range leaves(tree()) {
		if strings.HasPrefix(line+" ", wordsOf(c)+" ") {
			return wordsOf(c)
		}
	}
	require.Fail(t, "no command: "+line)
	return ""
}

// serve runs an app that has a file, until stop.
func serve(t *testing.T, path string) (stop func()) {
	t.Helper()
	q, err := bolt.Open(path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	server, err := admin.Serve(q, &admin.Options{Name: "billing-api", Logger: hclog.NewNullLogger()})
	if errors.Is(err, errors.ErrUnsupported) {
		require.NoError(t, q.Close())
		t.Skip(err)
	}
	require.NoError(t, err)
	return func() { require.NoError(t, errors.Join(server.Close(), q.Close())) }
}

// damaged creates a file with a damaged page and a damaged row.
func damaged(t *testing.T, path string) {
	t.Helper()
	buildAt(t, path, large)
	spoil(t, path, id(1))
	page, size := rootPage(t, path, "ready")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	clear(b[page*size:][:size])
	require.NoError(t, os.WriteFile(path, b, 0o600))
}
