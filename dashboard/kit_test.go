package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// mail is the arguments of the jobs of these tests.
type mail struct {
	To       string `json:"to"`
	Number   uint64 `json:"number"`
	Password string `json:"password"`
}

var (
	sendMail = pawl.Define[mail]("mail.send", pawl.MaxRetries(2))
	approved = workflow.DefineSignal[bool]("approved")
	order    = workflow.Define("order", func(r *workflow.Run, in mail) (string, error) {
		if _, err := workflow.Step(r, "charge", func(context.Context) (string, error) { return "paid by " + in.To, nil }); err != nil {
			return "", err
		}
		_, err := approved.Wait(r, time.Hour)
		return "done", err
	})
)

// kit is a queue with data of every sort, and its dashboard.
type kit struct {
	*testing.T
	q       *bolt.Queue
	w       *worker.Worker // of workflow runs
	path    string
	opts    Options
	d       *Dashboard
	dead    []pawl.ID // two of one group
	delayed pawl.ID
	ready   pawl.ID
	run     pawl.ID
	member  pawl.ID // of group import/7, with key tenant/42 on queue sync
}

// everything allows all actions.
func everything(*http.Request, Action) bool { return true }

func newKit(t *testing.T) *kit {
	t.Helper()
	k := &kit{T: t, path: filepath.Join(t.TempDir(), "app.db"), opts: Options{Authorize: everything, Logger: hclog.NewNullLogger()}}
	ctx := t.Context()
	var err error
	k.q, err = bolt.Open(k.path, &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease(), Limits: map[string]pawl.Limits{"sync": {RunningPerKey: 1}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, k.q.Close()) })

	e := workflow.Open(k.q, nil)
	k.w = worker.New(k.q, &worker.Options{Logger: hclog.NewNullLogger(), Queues: []string{"default"}})
	require.NoError(t, e.Handle(ctx, k.w, order))
	h, err := order.Start(ctx, e, "2026/1042", mail{To: "ada", Password: "hunter2"})
	require.NoError(t, err)
	k.run = h.Run()
	k.drain()

	s := schedule.Manage(k.q, nil)
	require.NoError(t, s.Put(ctx, schedule.Job("nightly", "30 2 * * MON-FRI", sendMail, mail{To: "all"})))

	k.dead = []pawl.ID{k.store("a 12"), k.store("a 34")}
	k.delayed = k.enqueue("later", pawl.Delay(time.Hour))
	k.ready = k.enqueue("slash/queue")
	callback, err := sendMail.Envelope(mail{To: "done"})
	require.NoError(t, err)
	require.NoError(t, group.Make(ctx, k.q, group.Group{Name: "import/7", Done: callback}))
	k.member = k.enqueue("sync", pawl.Key("tenant/42"), pawl.InGroup("import/7"))
	k.restart()
	return k
}

// drain does what the runs can do now.
func (k *kit) drain() {
	k.Helper()
	require.NoError(k, k.w.Drain(k.Context(), pawl.WaitDrained))
}

// restart makes a new dashboard with the options of the kit.
func (k *kit) restart() {
	k.Helper()
	var err error
	k.d, err = New(admin.Of(k.q), &k.opts)
	require.NoError(k, err)
	k.Cleanup(func() { _ = k.d.Close() })
}

// enqueue stores a job.
func (k *kit) enqueue(queue string, opts ...pawl.Option) pawl.ID {
	k.Helper()
	done, err := sendMail.Enqueue(k.Context(), k.q, mail{To: "ada", Number: 9007199254740993, Password: "hunter2"}, append(opts, pawl.OnQueue(queue), pawl.Header("authorization", "Bearer hunter2"), pawl.Header("trace", "abc"))...)
	require.NoError(k, err)
	return done.ID
}

// store stores a dead job with the given error.
func (k *kit) store(text string) pawl.ID {
	k.Helper()
	payload, err := driver.EncodePayload(mail{To: "bob", Number: 1})
	require.NoError(k, err)
	now := time.Now()
	return k.restore(&pawl.Envelope{ID: pawl.NewID(now), Queue: "email", Kind: "mail.send", Payload: payload, Attempts: 3, MaxRetries: 2, Failures: 1,
		History: []pawl.Failure{{Attempt: 3, At: now, Error: "connection refused by " + text, Stack: "goroutine 7 [running]:\nmain.send()"}}})
}

func (k *kit) restore(e *pawl.Envelope) pawl.ID {
	k.Helper()
	now := time.Now()
	e.Origin, e.Created, e.NotBefore, e.State = e.Queue, now, now, pawl.Dead
	e.Death = &pawl.Death{Reason: pawl.ReasonExhausted, At: now}
	require.NoError(k, k.q.Restore(k.Context(), []*pawl.Envelope{e}, nil))
	return e.ID
}

// get asks for a page as a browser does.
func (k *kit) get(path string) *httptest.ResponseRecorder { return k.send("GET", path, nil) }

// page returns the text of a page.
func (k *kit) page(path string) string {
	k.Helper()
	w := k.get(path)
	require.Equal(k, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	return w.Body.String()
}

// send sends a form from a page of the dashboard.
func (k *kit) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost/"+path, strings.NewReader(form.Encode()))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	w := httptest.NewRecorder()
	k.d.ServeHTTP(w, r.WithContext(k.Context()))
	return w
}

// post carries out a change.
func (k *kit) post(path string, pairs ...string) string {
	k.Helper()
	form := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	w := k.send("POST", path, form)
	require.Equal(k, http.StatusOK, w.Code, "%s: %s", path, w.Body)
	return w.Body.String()
}

// state returns the state of a job, or "" if there is none.
func (k *kit) state(id pawl.ID) pawl.State {
	k.Helper()
	e, err := k.q.Job(k.Context(), id)
	if errors.Is(err, pawl.ErrNotFound) {
		return ""
	}
	require.NoError(k, err)
	return e.State
}

// stopped ends the app and shows its file.
func (k *kit) stopped() {
	k.Helper()
	require.NoError(k, k.d.Close())
	require.NoError(k, k.q.Close())
	a := admin.Offline(offline.New(k.path, &offline.Options{Logger: hclog.NewNullLogger()}))
	k.Cleanup(func() { require.NoError(k, a.Close()) })
	var err error
	k.d, err = New(a, &k.opts)
	require.NoError(k, err)
}

// pages are the addresses of all pages that show data.
func (k *kit) pages() []string {
	return []string{
		"", "queues", "throughput", "throughput?queue=email&last=7d", "jobs", "jobs?state=dead&newest=1", "jobs?queue=slash%2Fqueue&error=x&reason=poison&since=2h&until=2030-01-01&older=1m&died-since=7d&sort=died",
		"job?id=" + k.dead[0].String(), "job?id=" + k.delayed.String(), "job?id=" + k.ready.String(), "failures", "failures?queue=email",
		"limits", "keys?queue=sync", "keys?queue=sync&blocked=1", "keys?queue=email", "key?queue=sync&name=tenant%2F42", "job?id=" + k.member.String(),
		"groups", "group?name=import%2F7", "jobs?members=import%2F7", "close-group?name=import%2F7", "cancel-group?name=import%2F7",
		"runs", "verify", "runs?flow=order&status=waiting", "run?id=" + k.run.String(), "schedules", "schedule?name=nightly", "workers", "file",
		"retry?id=" + k.dead[0].String(), "retry?select=all&state=dead", "delete?id=" + k.dead[0].String(), "cancel?id=" + k.ready.String(),
		"run-now?id=" + k.delayed.String(), "pause-queue?name=email", "resume-queue?name=email", "signal?id=" + k.run.String(), "fork?id=" + k.run.String(), "fork?from=charge&id=" + k.run.String(),
		"cancel-run?id=" + k.run.String(), "terminate-run?id=" + k.run.String(), "pause-run?id=" + k.run.String(), "resume-run?id=" + k.run.String(),
		"pause-schedule?name=nightly", "resume-schedule?name=nightly", "trigger-schedule?name=nightly",
	}
}
