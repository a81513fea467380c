package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/driver"
)

// answers are the objects of `job enqueue --file -o jsonl`.
func answers(t *testing.T, printed string) (all []namedView) {
	t.Helper()
	for line := range strings.Lines(printed) {
		var v namedView
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		all = append(all, v)
	}
	return all
}

// Rule: the lines of a file wait for each other by name, in any order, and for stored jobs by ID. Each is answered in
// the order of the file, over a stopped file and through its app. Flags supply what a line omits.
func TestGraph(t *testing.T) {
	build(t, nil)
	first := idOf(t, piped(t, `{"kind":"first"}`, words("--db app.db job enqueue --batch")...).stdout, 0)
	lines := fmt.Sprintf(`{"kind":"publish","name":"publish","after":["build","test"],"after_any":["lint"]}
{"kind":"build","name":"build","args":{"n":1}}

{"kind":"test","name":"test","after":["build",%q]}
{"kind":"lint","name":"lint","after":[],"headers":{"of":"line"}}
`, first)
	for _, live := range []bool{false, true} {
		if live {
			stop := serve(t, "app.db")
			defer stop()
		}
		got := piped(t, lines, "--db", "app.db", "job", "enqueue", "--file", "-", "-o", "jsonl", "--after", first.String(), "--header", "all=yes")
		require.Equal(t, exitOK, got.code, got.stderr)
		all := answers(t, got.stdout)
		ids := make(map[string]pawl.ID)
		for i, name := range []string{"publish", "build", "test", "lint"} {
			require.Equal(t, name, *all[i].Name)
			id, err := pawl.ParseID(*all[i].ID)
			require.NoError(t, err)
			ids[name] = id
		}
		shown := func(name string) (e struct {
			After    []pawl.ID `json:"after"`
			AfterAny []pawl.ID `json:"after_any"`
		}) {
			got := jobctl(t, words("--db app.db job show -o json "+ids[name].String())...)
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &e), got.stderr)
			return e
		}
		require.ElementsMatch(t, []pawl.ID{ids["build"], ids["test"]}, shown("publish").After)
		require.Equal(t, []pawl.ID{ids["lint"]}, shown("publish").AfterAny)
		require.Equal(t, []pawl.ID{first}, shown("build").After, "from the flag")
		require.ElementsMatch(t, []pawl.ID{ids["build"], first}, shown("test").After)
		require.Empty(t, shown("lint").After)
	}
}

// Rule: the command takes the file that the guide shows.
func TestGraphOfTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/groups.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "```json\n")
	require.True(t, found)
	lines, _, _ := strings.Cut(after, "```")
	build(t, nil)
	got := piped(t, lines, words("--db app.db job enqueue --file -")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Equal(t, strings.Count(lines, "\n"), strings.Count(got.stdout, "\n"))
	require.Equal(t, pawl.DefaultQueue, look(t, idOf(t, got.stdout, 0)).Queue)
	require.Equal(t, []pawl.ID{idOf(t, got.stdout, 1)}, look(t, idOf(t, got.stdout, 3)).AfterAny)
}

// Rule: a file with a wrong line stores nothing, and the message has the number of the line and the reason.
func TestGraphRefused(t *testing.T) {
	build(t, nil)
	nobody := pawl.ID{15: 1}.String()
	ring := ""
	for n := range 20 {
		ring += fmt.Sprintf(`{"kind":"k","name":"n%d","after":["n%d"]}`+"\n", n, (n+1)%20)
	}
	for _, c := range []struct {
		lines string
		code  int
		want  string
	}{
		{`{"kind":"k","name":"a","after":["b"]}` + "\n" + `{"kind":"k","name":"b","after_any":["a"]}`, exitError, `line 1: the jobs wait for each other: "a" after "b" after "a"`},
		{`{"kind":"k"}` + "\n" + `{"kind":"k","name":"a","after":["a"]}`, exitError, `line 2: the jobs wait for each other: "a" after "a"`},
		{ring, exitError, `line 1: the jobs wait for each other: "n0" after "n1" after "n2" after "n3" after "n4" after "n5" after "n6" after … after "n0"`},
		{`{"kind":"k"}` + "\n\n" + `{"kind":"k","after":["nobody"]}`, exitError, `line 3: after: no line has the name "nobody", and it is not the ID of a job`},
		{`{"kind":"k","after_any":[""]}`, exitError, `line 1: after_any: no line has the name ""`},
		{`{"kind":"k","name":"a"}` + "\n" + `{"kind":"k","name":"a"}`, exitError, `line 2: line 1 has the name "a" too`},
		{`{"kind":"k","name":"` + nobody + `"}`, exitError, "line 1: the name " + nobody + " is an ID; choose another"},
		{`{"kind":"k"}` + "\n" + `{"kind":"k","afters":["a"]}`, exitError, `line 2: json: unknown field "afters"`},
		{`{"kind":"k"}` + "\n" + `{"kind":"k","after":"a"}`, exitError, "line 2: json: cannot unmarshal string"},
		{`{"kind":"k"}` + "\n" + `{"kind":"k"} {}`, exitError, "line 2: text follows the object"},
		{`{"kind":"k"}` + "\n" + `{"kind":`, exitError, "line 2: unexpected EOF"},
		{`{"kind":"k"}` + "\n" + `{"kind":"k","priority":1000}`, exitError, "line 2: priority 1000"},
		{`{"kind":"k","name":"a","unique":"u"}` + "\n" + `{"kind":"k","after":["a"]}`, exitError, `line 2: it waits for line 1, whose unique key another job may have; add "on_conflict":"reject" there`},
		{strings.Repeat(`{"kind":"k"}`+"\n", pawl.MaxBatchJobs+1), exitError, "line 10001: a file has at most 10000 jobs"},
		{`{"kind":"k"}` + "\n" + `{"kind":"k","after":["` + nobody + `"]}`, exitNoMatch, "line 2: job " + nobody},
		{`{"kind":"k"}` + "\n" + `{"kind":"k","group":"nobody"}`, exitNoMatch, `line 2: group "nobody"`},
		{" \n\n", exitNoMatch, "there are no lines to enqueue"},
		{"", exitNoMatch, "there are no lines to enqueue"},
	} {
		got := piped(t, c.lines, words("--db app.db job enqueue --file -")...)
		require.Contains(t, got.stderr, c.want)
		require.Equal(t, c.code, got.code, got.stderr)
		require.Empty(t, got.stdout)
		if strings.Contains(c.want, "line ") && c.code == exitError {
			require.Contains(t, got.stderr, "Nothing was stored.")
		}
	}
	require.Contains(t, jobctl(t, words("--db app.db stats -o json")...).stdout, `"queues": []`)
	for _, args := range []string{"k --file -", "--batch --file -", "--file - --wait", "--file - --exec -- true"} {
		require.Equal(t, exitUsage, jobctl(t, words("--db app.db job enqueue "+args)...).code, args)
	}
	got := jobctl(t, words("--db app.db job enqueue --file none.jsonl")...)
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "none.jsonl: no such file\n  Name a file of JSON lines")
}

// endlessLine is a line that is longer than any job.
type endlessLine struct{}

func (endlessLine) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	b[0] = '['
	return len(b), nil
}

// Rule: the error about a line that is too long has its number.
func TestGraphOfALongLine(t *testing.T) {
	err := eachText(endlessLine{}, func(int, []byte) error { return nil })
	require.ErrorContains(t, err, "line 1: it has ")
}

// Rule: a dry run of a file checks it, and prints a line for each without an ID.
func TestGraphDryRun(t *testing.T) {
	build(t, nil)
	lines := `{"kind":"k","name":"a"}` + "\n" + `{"kind":"k","after":["a"]}`
	got := piped(t, lines, words("--db app.db job enqueue --file - --dry-run -o jsonl")...)
	require.Equal(t, outcomeOf{exitOK, `{"name":"a","id":null,"existing":false,"dry_run":true}` + "\n" + `{"name":null,"id":null,"existing":false,"dry_run":true}` + "\n", ""}, got)
	got = piped(t, lines, words("--db app.db job enqueue --file - --dry-run")...)
	require.Equal(t, outcomeOf{exitOK, "", "2 jobs would be added; nothing was changed\n"}, got)
}

// graphless is a queue without prerequisites.
type graphless struct{ *bolt.Queue }

func (q graphless) Enqueue(ctx context.Context, jobs ...*pawl.Envelope) ([]pawl.Enqueued, error) {
	if err := driver.SupportsJobs(q.Abilities()&^pawl.Prerequisites, jobs...); err != nil {
		return nil, err
	}
	return q.Queue.Enqueue(ctx, jobs...)
}

// Rule: a queue without prerequisites refuses a file of jobs that wait, by the name of the ability.
func TestGraphOfAnotherQueue(t *testing.T) {
	q, err := bolt.Open(filepath.Join(t.TempDir(), "jobs.db"), &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer q.Close()
	h, err := admin.Handler(admin.Of(graphless{q}), &admin.HandlerOptions{NoAuth: true})
	require.NoError(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	enqueue := func(line string) outcomeOf {
		return piped(t, `{"kind":"k","name":"a"}`+"\n"+line, "--addr", server.URL, "job", "enqueue", "--file", "-")
	}
	got := enqueue(`{"kind":"k","after":["a"]}`)
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "prerequisites")
	require.Contains(t, got.stderr, "; nothing was stored\n")
	require.Empty(t, got.stdout)
	require.Equal(t, exitOK, enqueue(`{"kind":"k"}`).code)
}
