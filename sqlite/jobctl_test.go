package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/internal/jobctl"
	"github.com/gopawl/pawl/sqlite"
)

// Rule: jobctl reaches the queue of a running app by the path of its file. It refuses the file of a stopped
// app, and leaves it unchanged.
func TestJobctl(t *testing.T) {
	run := jobctl.Build(t)
	db := []string{"JOBCTL_DB=" + filepath.Join(t.TempDir(), "app.sqlite")}
	q, err := sqlite.Open(t.Context(), db[0][len("JOBCTL_DB="):], &sqlite.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	s, err := admin.Serve(q, &admin.Options{Name: "shop", Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	added, err := pawl.Define[int]("kind").Enqueue(t.Context(), q, 1)
	require.NoError(t, err)
	id := added.ID.String()

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"stats"}, "(shop)"},
		{[]string{"job", "list", "-o", "ids"}, id},
		{[]string{"job", "cancel", id}, "cancelled 1"},
		{[]string{"job", "show", id}, "cancelled"},
		{[]string{"dead", "retry", id}, "retried 1"},
		{[]string{"wf", "list", "-o", "jsonl"}, ""},
		{[]string{"sched", "list", "-o", "jsonl"}, ""},
		{[]string{"export", "--to", filepath.Join(t.TempDir(), "jobs.jsonl")}, ""},
	} {
		out, messages, code := run(t, db, c.args...)
		require.Zero(t, code, "%q: %s%s", c.args, out, messages)
		require.Contains(t, out, c.want)
	}

	require.NoError(t, s.Close())
	require.NoError(t, q.Close())
	before, err := os.ReadFile(q.Path())
	require.NoError(t, err)
	_, messages, code := run(t, db, "stats")
	require.Equal(t, 1, code)
	require.Contains(t, messages, "the SQLite database of an app, start the app")
	after, err := os.ReadFile(q.Path())
	require.NoError(t, err)
	require.Equal(t, before, after)
}
