package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	client "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/jobctl"
	"github.com/gopawl/pawl/internal/process"
	"github.com/gopawl/pawl/redis"
	"github.com/gopawl/pawl/worker"
)

// withPort starts a server with a password on a free port, and returns the URL of a queue on it.
func withPort(t testing.TB, name string) string {
	t.Helper()
	url(t)
	port := ""
	s, err := process.OnPort("", func(free string) (*server, error) {
		port = free
		return startServer(t.TempDir(), "--bind", "127.0.0.1", "--port", port)
	})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.NoError(t, connect(t, s.url).ConfigSet(t.Context(), "requirepass", "hunter2").Err())
	return fmt.Sprintf("redis://:hunter2@127.0.0.1:%s/0?name=%s", port, name)
}

// Rule: jobctl works on the queue of a Redis server while its apps run, and moves a backlog from a file
// to the server and back. It says what the engine lacks. No message has a password.
func TestJobctl(t *testing.T) {
	t.Parallel()
	place := withPort(t, "shop")
	run := jobctl.Build(t)
	env := []string{"JOBCTL_DB=" + place}
	ok := func(args ...string) string {
		t.Helper()
		out, messages, code := run(t, env, args...)
		require.Zero(t, code, "%s%s", out, messages)
		require.Empty(t, messages)
		require.NotContains(t, out, "hunter2")
		return out
	}

	_, messages, code := run(t, env, "stats")
	require.Equal(t, 1, code)
	require.Contains(t, messages, `the server has no queue of this name: "shop"`)

	q := open(t, place, redis.Options{Name: "shop"})
	dead, err := pawl.Define[int]("dead").Enqueue(t.Context(), q, 1)
	require.NoError(t, err)
	w := worker.New(q, nil)
	worker.Handle(w, pawl.Define[int]("dead"), func(context.Context, *pawl.Job[int]) error {
		return pawl.Permanent(errors.New("bad gateway 502"))
	})
	require.NoError(t, w.ProcessOnce(t.Context()))
	ready, err := pawl.Define[int]("ready").Enqueue(t.Context(), q, 1)
	require.NoError(t, err)

	out := ok("stats")
	require.Contains(t, out, "redis://127.0.0.1")
	require.Contains(t, out, "live, 1 client")
	require.Contains(t, ok("job", "list", "-o", "ids"), ready.ID.String())
	require.Contains(t, ok("job", "show", dead.ID.String()), "bad gateway 502")
	require.Contains(t, ok("dead", "summary"), "bad gateway")
	require.Contains(t, ok("dead", "retry", dead.ID.String()), "retried 1")
	ok("job", "enqueue", "added", `{"a":1}`)
	ok("queue", "pause", "default")
	require.Contains(t, ok("queue", "list"), "PAUSED")
	ok("db", "info")
	ok("db", "reap")
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"db", "check"}, "it is for files", 2},
		{[]string{"db", "backup", "out.db"}, "copy the server's files", 2},
		{[]string{"work", "--http"}, "it is for files", 2},
		{[]string{"watch"}, "a queue on a server has no events", 1},
		{[]string{"job", "show", pawl.ID{1}.String()}, "it never existed", 3},
		{[]string{"wf", "list"}, "does not support workflows", 1},
		{[]string{"sched", "list"}, "does not support schedules", 1},
	} {
		_, messages, code = run(t, env, c.args...)
		require.Equal(t, c.code, code, "%q: %s", c.args, messages)
		require.Contains(t, messages, c.want)
	}
	_, messages, code = run(t, nil, "--db", place, "stats")
	require.Zero(t, code)
	require.Contains(t, messages, "put it into JOBCTL_DB")
	require.NotContains(t, messages, "hunter2")

	// An expired lease that jobctl takes back does not make a job poison that its app would run again.
	patient, err := redis.Open(t.Context(), place[:len(place)-len("shop")]+"patient", &redis.Options{
		Lease: time.Second, MaxCrashes: redis.NoMaxCrashes, Logger: hclog.NewNullLogger(),
	})
	require.NoError(t, err)
	crashed := pawl.NewID(time.Now())
	require.NoError(t, patient.Restore(t.Context(), []*pawl.Envelope{{ID: crashed, Kind: "k", State: pawl.Ready, Crashes: 4}}, nil))
	_, err = patient.Fetch(t.Context(), pawl.Request{Max: 1})
	require.NoError(t, err)
	require.NoError(t, patient.Close())
	require.Eventually(t, func() bool {
		place := []string{"JOBCTL_DB=" + place[:len(place)-len("shop")] + "patient"}
		out, messages, code := run(t, place, "job", "list", "-o", "json")
		require.Zero(t, code, messages)
		require.NotContains(t, out, "poison")
		return strings.Contains(out, `"crashes": 5`) || strings.Contains(out, `"crashes":5`)
	}, time.Minute, time.Millisecond)

	file := filepath.Join(t.TempDir(), "jobs.db")
	export := filepath.Join(t.TempDir(), "jobs.jsonl")
	moved, messages, code := run(t, env, "export")
	require.Zero(t, code, messages)
	require.NoError(t, os.WriteFile(export, []byte(moved), 0o600))
	_, messages, code = run(t, nil, "--db", file, "import", "--create", "--keep-ids", export)
	require.Zero(t, code, messages)
	moved, messages, code = run(t, nil, "--db", file, "export")
	require.Zero(t, code, messages)
	require.NoError(t, os.WriteFile(export, []byte(moved), 0o600))
	env = []string{"JOBCTL_DB=" + place[:len(place)-len("shop")] + "other"}
	_, messages, code = run(t, env, "import", "--create", "--keep-ids", export)
	require.Zero(t, code, messages)
	for _, id := range []pawl.ID{ready.ID, dead.ID} {
		ok("job", "show", id.String())
	}
	_, messages, code = run(t, env, "import", "--create", export)
	require.Equal(t, 1, code)
	require.Contains(t, messages, "has a queue already")
}

// Rule: the name of a queue stands in its URL or in its options, and not a different one in each. Open
// with Existing creates nothing.
func TestNameInTheURL(t *testing.T) {
	name := newName()
	place := url(t) + "?name=" + name
	_, err := redis.Open(t.Context(), place, &redis.Options{Existing: true})
	require.ErrorIs(t, err, redis.ErrNotQueue)
	_, err = redis.Open(t.Context(), place, &redis.Options{Existing: true})
	require.ErrorIs(t, err, redis.ErrNotQueue, "the first one created none")
	_, err = redis.Open(t.Context(), place, &redis.Options{Name: "other"})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, `"other" is not "`+name+`"`)

	added, err := pawl.Define[int]("kind").Enqueue(t.Context(), open(t, url(t), redis.Options{Name: name}), 1)
	require.NoError(t, err)
	_, err = open(t, place, redis.Options{Name: name, Existing: true}).Job(t.Context(), added.ID)
	require.NoError(t, err)
}

// Rule: a queue that the user of a URL must not read is not called corrupt, as one with a format that is no number is.
func TestQueueOfSomebodyElse(t *testing.T) {
	place, name := url(t), newName()
	admin := connect(t, place)
	require.NoError(t, admin.HSet(t.Context(), "{pawl:"+name+"}:v", "format", "new").Err())
	_, err := redis.Open(t.Context(), place, &redis.Options{Name: name, Existing: true})
	require.ErrorIs(t, err, pawl.ErrCorrupt)

	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "guest", "on", ">guest", "+@all", "~{pawl:other}:*").Err())
	defer admin.Do(context.WithoutCancel(t.Context()), "ACL", "DELUSER", "guest")
	_, err = redis.Open(t.Context(), place, &redis.Options{Name: name, Existing: true, Configure: func(o *client.Options) {
		o.Username, o.Password = "guest", "guest"
	}})
	require.ErrorContains(t, err, "NOPERM")
	require.NotErrorIs(t, err, pawl.ErrCorrupt)
}
