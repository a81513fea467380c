package dashboard

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/workflow"
)

// Rule: every page shows what it is about, and the command that does the same, for a live app and for the
// file of a stopped one.
func TestPages(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		k := newKit(t)
		if stopped {
			k.stopped()
		}
		dead, run := k.dead[0].String(), k.run.String()
		for path, want := range map[string][]string{
			"":                             {"Overview", "email", "connection refused by a", "jobctl --db " + k.path + " stats"},
			"queues":                       {"slash/queue", "Pause", "queue list"},
			"jobs?state=dead":              {dead, "exhausted", "connection refused by a 34", "job list -s dead", "Retry all"},
			"jobs?state=delayed":           {k.delayed.String(), "job list -s delayed"},
			"jobs?queue=slash/queue":       {k.ready.String(), "-q slash/queue"},
			"jobs?since=1h&newest=1":       {k.ready.String(), "--since 1h", "--newest"},
			"job?id=" + dead:               {"Its last retry failed.", "Attempt 3 failed", "goroutine 7 [running]", "bob", "job show " + dead},
			"job?id=" + dead[28:]:          {"Job " + dead},
			"job?id=" + k.delayed.String(): {"It waits for its time: in ", "Becomes ready"},
			"failures":                     {"connection refused by a", "<b>2</b>", "dead summary"},
			"runs":                         {"order", "2026/1042", "waiting", "wf list"},
			"run?id=" + run:                {"charge", "paid by ada", "It waits for the signal", "approved", "wf show " + run, `"(hidden)`},
			"schedules":                    {"nightly", "at 02:30", "sched list"},
			"schedule?name=nightly":        {"30 2 * * MON-FRI", "mail.send", "02:30:00", "sched show nightly"},
			"workers":                      {"job list -s leased"},
			"file":                         {k.path, "Free for reuse", "db backup", "Check the queue"},
			"pause-queue?name=email":       {"queue pause email", "Pause queue"},
			"retry?select=all&state=dead":  {"Retry 2 of 2 jobs", "job retry --all"},
			"retry?id=" + dead:             {"Retry job " + dead, "job retry " + dead},
			"signal?id=" + run:             {"The run waits for approved.", "wf signal " + run + " approved null"},
			"terminate-run?id=" + run:      {"nothing that it did is undone", "wf terminate " + run},
			"pause-schedule?name=nightly":  {"sched pause nightly"},
		} {
			page := strings.NewReplacer("&#34;", `"`, "&#39;", "'").Replace(k.page(path))
			for _, text := range want {
				require.Contains(t, page, text, path)
			}
		}
		live := strings.Contains(k.page(""), ">live</span>")
		require.Equal(t, !stopped, live)
		require.Equal(t, !stopped, strings.Contains(k.page(""), `id="live"`))
	}
}

// Rule: what does not exist, and what is misspelled, is an error that says so.
func TestMistakes(t *testing.T) {
	k := newKit(t)
	none := pawl.NewID(time.Now()).String()
	for path, status := range map[string]int{
		"nothing": 404, "job?id=" + none: 404, "run?id=" + none: 404, "schedule?name=x": 404, "pause-queue?name=x": 404, "job": 400,
		"job?id=ffff": 404, "jobs?state=x": 400, "jobs?since=soon": 400, "jobs?payload=%3D": 400, "retry": 400, "retry?select=all&state=ready": 400,
		"runs?status=x": 400, "job/x": 404, "/jobs": 404, "jobs/": 404, "../jobs": 404,
	} {
		require.Equal(t, status, k.get(path).Code, path)
	}
	require.Equal(t, 404, k.send("DELETE", "jobs", nil).Code)
	require.Equal(t, 404, k.send("POST", "jobs", nil).Code)
}

// Rule: a change does what its page said, and nothing else.
func TestChanges(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		k := newKit(t)
		if stopped {
			k.stopped()
		}
		a := k.d.admin
		require.Contains(t, k.post("retry", "id", k.dead[0].String()), "1 job retried.")
		require.Equal(t, pawl.Ready, stateIn(t, a, k.dead[0]))
		require.Equal(t, pawl.Dead, stateIn(t, a, k.dead[1]))
		require.Contains(t, k.post("run-now", "id", k.delayed.String()), "1 job made ready.")
		require.Equal(t, pawl.Ready, stateIn(t, a, k.delayed))
		require.Contains(t, k.post("cancel", "id", k.ready.String()), "1 job cancelled.")
		require.Equal(t, pawl.Dead, stateIn(t, a, k.ready))
		require.Contains(t, k.post("delete", "id", k.ready.String()), "1 job deleted.")
		_, err := a.Job(t.Context(), k.ready)
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.Contains(t, k.post("retry", "id", k.delayed.String()), "1 job were not retried: they are in another state")

		k.post("pause-queue", "name", "email")
		require.Contains(t, k.page("queues"), ">paused</span>")
		k.post("resume-queue", "name", "email")
		require.NotContains(t, k.page("queues"), ">paused</span>")

		k.post("pause-schedule", "name", "nightly", "note", "until Monday")
		require.Contains(t, k.page("schedule?name=nightly"), "until Monday")
		k.post("resume-schedule", "name", "nightly")
		require.Contains(t, k.post("trigger-schedule", "name", "nightly"), "It fired ")
		require.Contains(t, k.page("schedule?name=nightly"), "by an operator")

		run := k.run.String()
		k.post("pause-run", "id", run)
		k.post("resume-run", "id", run)
		require.Contains(t, k.post("signal", "id", run, "name", "approved", "value", "true"), "The signal was sent.")
		require.Contains(t, k.page("run?id="+run), "Unread signals")
		k.post("terminate-run", "id", run, "reason", "the customer called")
		require.Contains(t, k.post("check"), "The queue is sound.")
	}
}

func stateIn(t *testing.T, a admin.Admin, id pawl.ID) pawl.State {
	t.Helper()
	e, err := a.Job(t.Context(), id)
	require.NoError(t, err)
	return e.State
}

// Rule: a change of all jobs that match changes those, at most as many as its page counted, and a group of failures has only
// the jobs of its fingerprint.
func TestChangesOfManyJobs(t *testing.T) {
	k := newKit(t)
	other := k.store("a 5")
	e, err := k.q.Job(t.Context(), other)
	require.NoError(t, err)
	group := dlq.Fingerprint(e.LastError())
	odd := k.restore(&pawl.Envelope{ID: pawl.NewID(time.Now()), Queue: "email", Kind: "mail.send", Failures: 1,
		History: []pawl.Failure{{Attempt: 1, At: time.Now(), Error: "connection refused by a bouncer"}}})
	require.Contains(t, k.page("retry?select=all&state=dead&group="+strings.ReplaceAll(group, " ", "+")), "Retry 3 of 3 jobs")
	require.Contains(t, k.page("retry?select=all&state=dead"), "Retry 4 of 4 jobs")
	page := k.post("retry", "select", "all", "state", "dead", "group", group, "most", "2")
	require.Contains(t, page, "2 jobs retried.")
	require.Contains(t, page, "selects more jobs")
	require.Contains(t, k.post("retry", "select", "all", "state", "dead", "group", group), "1 job retried.")
	require.Equal(t, pawl.Dead, k.state(odd))
	require.Equal(t, "connection refused by a", literalPart(group))
	require.Contains(t, k.post("delete", "select", "all", "queue", "email", "state", "dead"), "1 job deleted.")
	require.Equal(t, pawl.Ready, k.state(k.ready))
}

// Rule: a list has pages, which together have each job once.
func TestListsHavePages(t *testing.T) {
	k := newKit(t)
	for range 2*pageSize + 3 {
		k.enqueue("many")
	}
	seen := make(map[string]bool)
	path, n := "jobs?queue=many", 0
	for ; path != ""; n++ {
		page := k.page(path)
		for _, part := range strings.Split(page, `name="id" value="`)[1:] {
			id := part[:36]
			require.False(t, seen[id])
			seen[id] = true
		}
		_, rest, more := strings.Cut(page, `<a class="button" href="`)
		if path = ""; more {
			path, _, _ = strings.Cut(rest, `"`)
			path = strings.ReplaceAll(path, "&amp;", "&")
		}
	}
	require.Len(t, seen, 2*pageSize+3)
	require.GreaterOrEqual(t, n, 3)
}

// Rule: a backup is a file that opens, with every job.
func TestBackup(t *testing.T) {
	k := newKit(t)
	w := k.send("POST", "backup", nil)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Header().Get("Content-Disposition"), `attachment; filename="app-`)
	path := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(path, w.Body.Bytes(), 0o600))
	a := admin.Offline(offline.New(path, &offline.Options{Logger: hclog.NewNullLogger()}))
	require.NoError(t, a.Check(t.Context()))
	require.Equal(t, pawl.Dead, stateIn(t, a, k.dead[0]))
	require.NoError(t, a.Close())
}

// Rule: over an engine that lacks an operation, its page says so, and the others work.
func TestOtherEngines(t *testing.T) {
	k := newKit(t)
	var err error
	k.d, err = New(admin.Of(struct{ admin.Store }{k.q}), &Options{Authorize: everything, Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	defer k.d.Close()
	for _, path := range []string{"", "queues", "jobs", "failures", "workers", "file"} {
		k.page(path)
	}
	for _, path := range []string{"runs", "schedules"} {
		w := k.get(path)
		require.Equal(t, http.StatusNotImplemented, w.Code)
		require.Contains(t, w.Body.String(), "the engine of this queue does not support "+strings.Replace(path, "runs", "workflows", 1))
	}
	require.Equal(t, http.StatusNotImplemented, k.send("POST", "backup", nil).Code)
	require.Equal(t, http.StatusNotImplemented, k.send("POST", "check", nil).Code)
}

// Rule: the theme is a cookie for the folder of the dashboard.
func TestTheme(t *testing.T) {
	k := newKit(t)
	w := k.send("POST", "theme", map[string][]string{"theme": {"dark"}})
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Contains(t, w.Header().Get("Set-Cookie"), "pawl_theme=dark")
	require.NotContains(t, w.Header().Get("Set-Cookie"), "Path")
	require.Equal(t, http.StatusBadRequest, k.send("POST", "theme", map[string][]string{"theme": {"x"}}).Code)
}

// Rule: a run's timeline stays within its line, also for clocks that went back.
func TestTimelineStaysInside(t *testing.T) {
	k := newKit(t)
	q := &request{d: k.d}
	begin := time.Now()
	k.opts.Authorize = nil
	for _, at := range [][2]time.Duration{{0, 0}, {-time.Hour, time.Hour}, {time.Hour, -time.Hour}, {time.Minute, 2 * time.Minute}} {
		e := q.entry(workflow.Entry{Started: begin.Add(at[0]), Finished: begin.Add(at[1])}, begin, begin.Add(time.Minute))
		require.GreaterOrEqual(t, e.Left, 0)
		require.Positive(t, e.Width)
		require.LessOrEqual(t, e.Left+e.Width, 1000)
	}
}
