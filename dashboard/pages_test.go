package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/dlq"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// Rule: every page shows its subject, and the command that does the same, for a live app and for the file of a stopped
// one.
func TestPages(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		k := newKit(t)
		if stopped {
			k.stopped()
		}
		dead, run := k.dead[0].String(), k.run.String()
		for path, want := range map[string][]string{
			"":                                {"Overview", "email", "connection refused by a", "jobctl --db " + k.path + " stats"},
			"queues":                          {"slash/queue", "Pause", "queue list"},
			"throughput":                      {"<svg class=\"chart\"", "c-enqueued", "c-succeeded", "c-died", "New build", "Builds", "throughput --last 1h"},
			"throughput?queue=email&last=7d":  {"Throughput of queue email", "Periods of 1h 0m", "c-died", "throughput --queue email --last 7d"},
			"jobs?state=dead":                 {dead, "exhausted", "connection refused by a 34", "job list -s dead", "Retry all"},
			"jobs?state=delayed":              {k.delayed.String(), "job list -s delayed"},
			"jobs?queue=slash/queue":          {k.ready.String(), "-q slash/queue"},
			"jobs?since=1h&newest=1":          {k.ready.String(), "--since 1h", "--newest"},
			"job?id=" + dead:                  {"Its last retry failed.", "Attempt 3 failed", "goroutine 7 [running]", "bob", "job show " + dead},
			"job?id=" + dead[28:]:             {"Job " + dead},
			"job?id=" + k.delayed.String():    {"It waits for its time: in ", "Becomes ready"},
			"limits":                          {"sync", "1 running per key", "limit list"},
			"keys?queue=sync":                 {"tenant/42", "Only keys with blocked jobs", "key list sync"},
			"keys?queue=sync&blocked=1":       {"No key matches.", "key list sync --blocked"},
			"keys?queue=email":                {"The queue has no limits per key.", "Limits: none"},
			"key?queue=sync&name=tenant/42":   {"No job of the key runs.", "1, 0 of them blocked", "key show sync tenant/42"},
			"groups":                          {"import/7", ">open</span>", "group list"},
			"group?name=import/7":             {"0 of 1 members have ended", "When all members have ended: ", "not enqueued yet", "group show import/7", "job list --group import/7"},
			"jobs?members=import/7":           {k.member.String(), "job list --group import/7"},
			"job?id=" + k.member.String():     {`href="key?name=tenant%2F42&amp;queue=sync"`, `href="group?name=import%2F7"`},
			"close-group?name=import/7":       {"enqueues its callbacks", "group close import/7"},
			"cancel-group?name=import/7":      {"1 member of 1 pending.", "group cancel import/7"},
			"failures":                        {"connection refused by a", "<b>2</b>", "dead summary"},
			"runs":                            {"order", "2026/1042", "waiting", "wf list"},
			"run?id=" + run:                   {"charge", "paid by ada", "It waits for the signal", "approved", "wf show " + run, `"(hidden)`},
			"schedules":                       {"nightly", "at 02:30", "sched list"},
			"schedule?name=nightly":           {"30 2 * * MON-FRI", "mail.send", "02:30:00", "sched show nightly"},
			"workers":                         {"job list -s leased"},
			"file":                            {k.path, "Free for reuse", "db backup", "Check the queue"},
			"pause-queue?name=email":          {"queue pause email", "Pause queue"},
			"retry?select=all&state=dead":     {"Retry 2 of 2 jobs", "job retry --all"},
			"retry?id=" + dead:                {"Retry job " + dead, "job retry " + dead},
			"job?id=" + run:                   {"Its run waits for signal approved until ", " UTC (in ", "job why " + run},
			"signal?id=" + run:                {"The run waits for approved.", "wf signal " + run + " approved null"},
			"fork?id=" + run + "&from=charge": {"results of its steps before", "that no run of flow order has", "wf fork " + run + " --from charge --id NEW", `value="charge"`},
			"terminate-run?id=" + run:         {"nothing that it did is undone", "wf terminate " + run},
			"pause-schedule?name=nightly":     {"sched pause nightly"},
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

// Rule: the page of a run that has not begun says what it waits for: open runs, with links to them, or the rate of starts. The
// page of its job says the same, and not that it waits for its time.
func TestRunThatWaitsToBegin(t *testing.T) {
	k := newKit(t)
	e := workflow.Open(k.q, nil)
	held := workflow.Define("held", func(r *workflow.Run, _ int) (int, error) { return 1, workflow.Sleep(r, "long", time.Hour) }, workflow.MaxOpen(1))
	rated := workflow.Define("rated", func(*workflow.Run, int) (int, error) { return 1, nil }, workflow.StartRate(pawl.Rate{Starts: 1, Per: time.Hour}))
	require.NoError(t, e.Handle(t.Context(), k.w, held, rated))
	start := func(flow *workflow.Flow[int, int], id string) string {
		h, err := flow.Start(t.Context(), e, id, 1)
		require.NoError(t, err)
		k.drain()
		return h.Run().String()
	}
	first, second := start(held, "1"), start(held, "2")
	start(rated, "1")
	require.Contains(t, k.page("run?id="+second), `<b>flow held</b> has as many open runs as it may: <a class="mono" href="run?id=`+first+`">`)
	require.Contains(t, k.page("job?id="+second), "Its run waits for the end of another run, since flow held has as many open runs as it may; run "+first+" is open.")
	third := start(rated, "2")
	require.Contains(t, k.page("run?id="+third), "<b>flow rated</b> has as many starts as its rate permits.")
	require.Regexp(t, `Its run waits for its turn, at [0-9: -]+ UTC \(in (1h 0m|59m \d+s)\) or later, since flow rated`, k.page("job?id="+third))
	require.NotContains(t, k.page("job?id="+third), "It waits for its time")
}

// Rule: a request for something that does not exist, or is misspelled, gets an error that says so.
func TestMistakes(t *testing.T) {
	k := newKit(t)
	none := pawl.NewID(time.Now()).String()
	for path, status := range map[string]int{
		"nothing": 404, "job?id=" + none: 404, "run?id=" + none: 404, "schedule?name=x": 404, "pause-queue?name=x": 404, "job": 400,
		"keys?queue=x": 404, "key?queue=x&name=x": 404, "key?queue=sync&name=x": 404, "key?queue=email&name=x": 404, "group?name=x": 404, "close-group?name=x": 404,
		"job?id=ffff": 404, "jobs?state=x": 400, "jobs?since=soon": 400, "jobs?payload=%3D": 400, "retry": 400, "retry?select=all&state=ready": 400,
		"runs?status=x": 400, "job/x": 404, "/jobs": 404, "jobs/": 404, "../jobs": 404,
	} {
		require.Equal(t, status, k.get(path).Code, path)
	}
	k.send("POST", "terminate-run", url.Values{"id": {k.run.String()}})
	k.drain()
	for _, change := range []string{"cancel-run", "terminate-run", "pause-run", "resume-run"} {
		require.Equal(t, http.StatusConflict, k.get(change+"?id="+k.run.String()).Code, change) // the run has ended
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

		require.Contains(t, k.post("cancel-group", "name", "import/7"), "1 member cancelled.")
		require.Equal(t, pawl.Dead, stateIn(t, a, k.member))
		require.Contains(t, k.post("close-group", "name", "import/7"), "The group was closed.")
		require.Contains(t, k.page("group?name=import/7"), ">ended</span>")

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
		require.Equal(t, http.StatusBadRequest, k.send("POST", "fork", url.Values{"id": {run}, "from": {"no step"}, "to": {"1043"}}).Code)
		require.Equal(t, http.StatusBadRequest, k.send("POST", "fork", url.Values{"id": {run}, "from": {"charge"}, "to": {" "}}).Code)
		require.Equal(t, http.StatusConflict, k.send("POST", "fork", url.Values{"id": {run}, "from": {"charge"}, "to": {"2026/1042"}}).Code)
		_, made, _ := strings.Cut(k.post("fork", "id", run, "from", "charge", "to", "2026/1043"), `href="`)
		made, _, _ = strings.Cut(made[strings.Index(made, "run?id="):], `"`)
		page := k.page(made)
		require.Contains(t, page, "2026/1043")
		require.Contains(t, page, "Forked from")
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

// Rule: a change of all jobs that match changes only these, and at most as many as its page counted. A group of
// failures has only the jobs of its fingerprint.
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
	require.Contains(t, page, "may select more jobs")
	require.Contains(t, k.post("retry", "select", "all", "state", "dead", "group", group), "1 job retried.")
	require.Equal(t, pawl.Dead, k.state(odd))
	require.Equal(t, "connection refused by a", literalPart(group))
	require.Contains(t, k.post("delete", "select", "all", "queue", "email", "state", "dead"), "1 job deleted.")
	require.Equal(t, pawl.Ready, k.state(k.ready))
}

// endless finds nothing and never ends.
type endless struct{ admin.Admin }

func (endless) List(context.Context, admin.Query) (admin.Page, error) {
	return admin.Page{Next: "more"}, nil
}

// Rule: a page whose search has found nothing yet still leads to the change of all jobs that match.
func TestChangeAfterAnUnfinishedSearch(t *testing.T) {
	k := newKit(t)
	k.d.admin = endless{k.d.admin}
	page := k.page("jobs?error=quota")
	require.Contains(t, page, "The search has not ended.")
	require.Contains(t, page, "Retry all")
}

// Rule: a page before a change that had no time to find a job still leads to the change, which finds them itself, and to
// a page that counts them.
func TestChangeAfterAnUnfinishedCount(t *testing.T) {
	k := newKit(t)
	whole := k.d.admin
	k.d.admin = endless{whole}
	const path = "retry?select=all&state=dead&error=refused"
	page := k.page(path)
	require.Contains(t, page, "At least 0 match: the search has used its time.")
	require.Contains(t, page, ">Retry all that match</button>")
	require.NotContains(t, page, `name="most"`)
	require.Contains(t, page, `href="retry?error=refused&amp;select=all&amp;state=dead&amp;count=all"`)
	require.Contains(t, page, "job retry --error refused")
	k.d.admin = whole
	require.Contains(t, k.page(path+"&count=all"), "Retry 2 of 2 jobs")
	require.Contains(t, k.post("retry", "select", "all", "state", "dead", "error", "refused"), "2 jobs retried.")
	require.Equal(t, pawl.Ready, k.state(k.dead[0]))
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

// Rule: the page that compares runs with the code counts the runs that match, and names the runs that the code would
// block.
func TestVerify(t *testing.T) {
	k := newKit(t)
	page := k.page("verify")
	require.Contains(t, page, "1 match, <b>0</b> do not.")
	require.Contains(t, page, "wf verify")

	require.NoError(t, k.d.Close()) // and with a build whose flow has no charge
	require.NoError(t, k.q.Close())
	var err error
	k.q, err = bolt.Open(k.path, &bolt.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, err)
	k.Cleanup(func() { require.NoError(k, k.q.Close()) })
	k.restart()
	require.Contains(t, k.page("verify"), ">not in the code</span>")
	other := workflow.Define("order", func(r *workflow.Run, in mail) (string, error) {
		_, err := workflow.Step(r, "reserve", func(context.Context) (string, error) { return "", nil })
		return "", err
	})
	w := worker.New(k.q, &worker.Options{Logger: hclog.NewNullLogger()})
	require.NoError(t, workflow.Open(k.q, nil).Handle(t.Context(), w, other))
	page = k.page("verify")
	require.Contains(t, page, "0 match, <b>1</b> do not.")
	require.Contains(t, page, ">differs</span>")
	require.Contains(t, page, "reserve")

	k.stopped()
	require.Contains(t, k.page("verify"), "there is nothing to compare with")
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
	for _, path := range []string{"runs", "schedules", "groups"} {
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

// Rule: a value that a codec of the app has encoded is shown as such.
func TestEncodedValues(t *testing.T) {
	k := newKit(t)
	c, err := workflow.NewCipher("a", map[string][]byte{"a": make([]byte, workflow.CipherKeyBytes)})
	require.NoError(t, err)
	h, err := order.Start(t.Context(), workflow.Open(k.q, &workflow.Options{Codec: c, Logger: hclog.NewNullLogger()}), "hidden", mail{To: "ada"})
	require.NoError(t, err)
	page := k.page("run?id=" + h.Run().String())
	require.Contains(t, page, "the codec of the app has encoded it")
	require.NotContains(t, page, "not MessagePack")
}
