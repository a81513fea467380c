package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/jobctl"
	"github.com/gopawl/pawl/internal/runnotes"
)

// TestJobctl builds the command once, which takes longer than the rest.
func TestJobctl(t *testing.T) {
	t.Parallel()
	run := jobctl.Build(t)
	t.Run("keeps the password", func(t *testing.T) { keepsThePassword(t, run) })
	t.Run("works", func(t *testing.T) { worksOnAServer(t, run) })
}

// Rule: jobctl works on the queue of a server while its apps run, as it does on a file, and moves a
// backlog from a file to the server and back. No message has a password.
func worksOnAServer(t *testing.T, run jobctl.Run) {
	schema := newSchema(t)
	db := "JOBCTL_DB=" + urlOf("postgres", schema)
	ok := func(args ...string) string {
		t.Helper()
		out, messages, code := run(t, []string{db}, args...)
		require.Zero(t, code, "%s%s", out, messages)
		require.Empty(t, messages)
		return out
	}

	_, messages, code := run(t, []string{db}, "stats")
	require.Equal(t, 1, code)
	require.Contains(t, messages, "there is no queue in the schema")
	require.Zero(t, count(t, "SELECT count(*) FROM pg_namespace WHERE nspname = '"+schema+"'"), "jobctl creates none")

	q := open(t, schema)
	ids := everyState(t, q)
	out := ok("stats")
	require.Contains(t, out, "postgres:///postgres")
	require.Contains(t, out, "live, 1 client")
	require.Contains(t, ok("job", "list", "-o", "ids"), ids["ready"].String())
	require.Contains(t, ok("job", "show", ids["dead"].String()), "bad gateway 502")
	require.Contains(t, ok("dead", "summary"), "bad gateway")
	_, err := q.StoreNotes(t.Context(), []runnotes.Notes{{
		ID: ids["leased"], Began: time.Now(), Attempt: 1,
		Progress: &runnotes.Progress{Done: 412, Total: 10_000, Text: "page", At: time.Now()}, Log: &runnotes.Log{Head: []byte("msg=begun\n")},
	}}, nil)
	require.NoError(t, err)
	require.Contains(t, ok("job", "logs", ids["leased"].String()), "msg=begun")
	require.Contains(t, ok("job", "show", ids["leased"].String()), "412/10000 4% page")
	require.Contains(t, ok("dead", "retry", ids["dead"].String()), "retried 1")
	require.Contains(t, ok("job", "enqueue", "added", `{"a":1}`), "-")
	ok("queue", "pause", "other")
	require.Contains(t, ok("queue", "list"), "PAUSED")
	ok("limit", "set", "other", "--running", "5", "--max-waiting", "70")
	require.Contains(t, ok("limit", "list"), "5 (-)")
	require.Contains(t, ok("limit", "list"), "70 (-)")
	ok("limit", "reset", "other")
	_, messages, code = run(t, []string{db}, "job", "edit", ids["delayed"].String(), `{"user": "edited"}`)
	require.Zero(t, code, messages)
	require.Contains(t, ok("job", "show", ids["delayed"].String()), "edited")
	_, messages, code = run(t, []string{db}, "wf", "list")
	require.Zero(t, code, messages)
	ok("db", "info")
	ok("db", "reap")
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"db", "compact", "--replace"}, "it is for files", 2},
		{[]string{"db", "check"}, "it is for files", 2},
		{[]string{"db", "backup", "out.db"}, "use pg_dump", 2},
		{[]string{"work", "--http"}, "it is for files", 2},
		{[]string{"watch"}, "a queue on a server has no events", 1},
		{[]string{"job", "show", pawl.ID{1}.String()}, "it never existed", 3},
		{[]string{"wf", "verify"}, "were read but not compared with code", 4},
		{[]string{"dead", "forward", "--all", "-y", "--to-db", strings.TrimPrefix(db, "JOBCTL_DB=")}, "is the queue that the jobs are already in", 2},
	} {
		_, messages, code := run(t, []string{db}, c.args...)
		require.Equal(t, c.code, code, "%q: %s", c.args, messages)
		require.Contains(t, messages, c.want)
	}

	file := filepath.Join(t.TempDir(), "jobs.db")
	export := filepath.Join(t.TempDir(), "jobs.jsonl")
	exportTo := func(env []string, args ...string) {
		out, messages, code := run(t, env, append(args, "export")...)
		require.Zero(t, code, messages)
		require.NoError(t, os.WriteFile(export, []byte(out), 0o600))
	}
	exportTo([]string{db})
	_, messages, code = run(t, nil, "--db", file, "import", "--create", "--keep-ids", export)
	require.Zero(t, code, messages)
	exportTo(nil, "--db", file)
	other := newSchema(t)
	_, messages, code = run(t, []string{"JOBCTL_DB=" + urlOf("postgresql", other)}, "import", "--create", "--keep-ids", export)
	require.Zero(t, code, messages)
	for _, more := range []string{"--create", "--create --dry-run", "--create --keep-ids --skip-existing"} {
		args := append([]string{"import", export}, strings.Fields(more)...)
		_, messages, code = run(t, []string{"JOBCTL_DB=" + urlOf("postgres", other)}, args...)
		require.Equal(t, 1, code, "%s: %s", more, messages)
		require.Contains(t, messages, "has a queue already", more)
	}
	want := jobsOf(t, q)
	got := jobsOf(t, open(t, other))
	require.Len(t, got, len(want))
	for i, e := range want {
		require.Equal(t, e.ID, got[i].ID)
		require.Equal(t, e.Payload, got[i].Payload)
	}
}

// Rule: jobctl shows no password, and says where to put one.
func keepsThePassword(t *testing.T, run jobctl.Run) {
	for _, db := range []string{
		"postgres://app:hunter2@localhost:1/db", "postgres://app:hunter2@localhost:x/db", "postgresql://app@localhost:1/db?password=hunter2",
		"postgres://app:hun%zzhunter2@localhost/db", "POSTGRES://app:hunter2@localhost:1/db", "postgres://app:12/hunter2@localhost:1/db",
		"host=localhost port=1 user=app password=hunter2",
	} {
		for _, args := range [][]string{{"stats", "-v"}, {"db", "compact", "--replace"}, {"export"}, {"job", "list", "-o", "json"}} {
			out, messages, code := run(t, nil, append([]string{"--db", db}, args...)...)
			require.NotZero(t, code)
			require.NotContains(t, out+messages, "hunter2")
			require.Contains(t, messages, "PGPASSWORD")
			out, messages, code = run(t, []string{"JOBCTL_DB=" + db}, args...)
			require.NotZero(t, code)
			require.NotContains(t, out+messages, "hunter2")
			require.NotContains(t, messages, "list of processes")
		}
	}
}
