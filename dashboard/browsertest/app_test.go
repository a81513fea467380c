package browsertest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/bolt/offline"
	"github.com/gopawl/pawl/dashboard"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/group"
	"github.com/gopawl/pawl/internal/busy"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/worker"
	"github.com/gopawl/pawl/workflow"
)

// mail is the arguments of the jobs of these tests.
type mail struct {
	To       string
	Password string
}

var (
	sendMail = pawl.Define[mail]("mail.send", pawl.MaxRetries(2), pawl.Retain(time.Hour))
	approved = workflow.DefineSignal[bool]("approved")
	order    = workflow.Define("order", func(r *workflow.Run, in mail) (string, error) {
		if _, err := workflow.Step(r, "charge", func(context.Context) (string, error) { return "paid by " + in.To, nil }); err != nil {
			return "", err
		}
		_, err := approved.Wait(r, time.Hour)
		return "done", err
	})
	failing = workflow.Define("failing", func(*workflow.Run, mail) (string, error) {
		return "", pawl.Permanent(errors.New("the address is unknown"))
	})
)

// app is an app with the dashboard below a prefix.
type app struct {
	*testing.T
	q      *bolt.Queue
	engine *workflow.Engine
	worker *worker.Worker
	origin string // of the dashboard, without the slash at the end

	mu     sync.Mutex
	shown  *dashboard.Dashboard
	mode   string
	served map[string]map[string]bool // the modes in which a change was asked for, by its path
}

func start(t *testing.T) *app {
	t.Helper()
	a := &app{T: t, served: make(map[string]map[string]bool)}
	var err error
	a.q, err = bolt.Open(filepath.Join(t.TempDir(), "app.db"), &bolt.Options{Logger: hclog.NewNullLogger(), Lease: busy.Lease(), Limits: map[string]pawl.Limits{"sync": {RunningPerKey: 1}, "line": {InOrder: pawl.OrderHold}}})
	require.NoError(t, err)
	a.engine = workflow.Open(a.q, &workflow.Options{Logger: hclog.NewNullLogger()})
	a.worker = worker.New(a.q, &worker.Options{Logger: hclog.NewNullLogger(), Queues: []string{"default", "work"}})
	require.NoError(t, a.engine.Handle(t.Context(), a.worker, order, failing))
	worker.Handle(a.worker, sendMail, func(ctx context.Context, job *pawl.Job[mail]) error {
		job.Progress(1, 2, "half")
		pawl.Log(ctx).Info("sent", "to", job.Args.To)
		return nil
	})

	a.show(admin.Of(a.q))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			a.note(strings.TrimPrefix(r.URL.Path, "/a/b/"))
		}
		http.StripPrefix("/a/b", a.dashboard()).ServeHTTP(w, r)
	}))
	a.origin = server.URL + "/a/b"
	t.Cleanup(func() {
		require.NoError(t, a.dashboard().Close())
		server.Close()
		require.NoError(t, a.q.Close())
	})
	return a
}

// show makes a dashboard of what an operator sees.
func (a *app) show(of admin.Admin) {
	a.Helper()
	d, err := dashboard.New(of, &dashboard.Options{Authorize: func(*http.Request, dashboard.Action) bool { return true }, Logger: hclog.NewNullLogger()})
	require.NoError(a, err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shown = d
}

func (a *app) dashboard() *dashboard.Dashboard {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shown
}

// stop ends the app, and shows its file.
func (a *app) stop() {
	a.Helper()
	require.NoError(a, a.dashboard().Close())
	require.NoError(a, a.q.Close())
	file := admin.Offline(offline.New(a.q.Path(), &offline.Options{Logger: hclog.NewNullLogger()}))
	a.Cleanup(func() { require.NoError(a, file.Close()) })
	a.show(file)
}

// note keeps that a change was asked for.
func (a *app) note(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.served[path] == nil {
		a.served[path] = make(map[string]bool)
	}
	a.served[path][a.mode] = true
}

// runs starts runs that wait for a signal.
func (a *app) runs(ids ...string) (runs []pawl.ID) {
	a.Helper()
	for _, id := range ids {
		h, err := order.Start(a.Context(), a.engine, id, mail{To: "ada", Password: "hunter2"})
		require.NoError(a, err)
		runs = append(runs, h.Run())
	}
	require.NoError(a, a.worker.Drain(a.Context(), pawl.WaitDrained))
	return runs
}

// enqueue stores a job.
func (a *app) enqueue(queue string, opts ...pawl.Option) string {
	a.Helper()
	done, err := sendMail.Enqueue(a.Context(), a.q, mail{To: "ada", Password: "hunter2"}, append(opts, pawl.OnQueue(queue), pawl.Header("trace", "abc"))...)
	require.NoError(a, err)
	return done.ID.String()
}

// dead stores dead jobs of one queue, whose errors form one new group.
func (a *app) dead(queue, text string, n int) (ids []string) {
	a.Helper()
	for i := range n {
		e := deadMail(queue, text+" "+strings.Repeat("9", i+1))
		require.NoError(a, a.q.Restore(a.Context(), []*pawl.Envelope{e}, nil))
		ids = append(ids, e.ID.String())
	}
	return ids
}

// heldKey makes a dead job hold a key.
func (a *app) heldKey(name string) (dead string) {
	a.Helper()
	dead = a.enqueue("line", pawl.Key(name))
	leases, err := a.q.Fetch(a.Context(), pawl.Request{Queues: []string{"line"}, Max: 1})
	require.NoError(a, err)
	require.NoError(a, a.q.Settle(a.Context(), leases[0].Abandon(pawl.ReasonPermanent, errors.New("boom"))))
	return dead
}

// deadMail returns a dead job.
func deadMail(queue, text string) *pawl.Envelope {
	payload, err := driver.EncodePayload(mail{To: "bob"})
	if err != nil {
		panic(err)
	}
	now := time.Now()
	return &pawl.Envelope{ID: pawl.NewID(now), Queue: queue, Origin: queue, Kind: "mail.send", Payload: payload, State: pawl.Dead, Attempts: 3, MaxRetries: 2, Failures: 1,
		Created: now, NotBefore: now, Death: &pawl.Death{Reason: pawl.ReasonExhausted, At: now}, Headers: map[string]string{"trace": "abc"},
		History: []pawl.Failure{{Attempt: 3, At: now, Error: text, Stack: "goroutine 7 [running]:\nmain.send()"}}}
}

// members makes a group with members that have a key.
func (a *app) members(name string, n int) (ids []string) {
	a.Helper()
	callback, err := sendMail.Envelope(mail{To: "done"})
	require.NoError(a, err)
	require.NoError(a, group.Make(a.Context(), a.q, group.Group{Name: name, Done: callback}))
	for range n {
		ids = append(ids, a.enqueue("sync", pawl.Key("tenant/42"), pawl.InGroup(name)))
	}
	return ids
}

// schedule stores a schedule.
func (a *app) schedule(name string) {
	a.Helper()
	require.NoError(a, schedule.Manage(a.q, nil).Put(a.Context(), schedule.Job(name, "30 2 * * MON-FRI", sendMail, mail{To: "all"})))
}

// state requires the state of a job.
func (a *app) state(id string, want pawl.State) {
	a.Helper()
	parsed, err := pawl.ParseID(id)
	require.NoError(a, err)
	e, err := a.q.Job(a.Context(), parsed)
	if want == "" {
		require.ErrorIs(a, err, pawl.ErrNotFound)
		return
	}
	require.NoError(a, err)
	require.Equal(a, want, e.State)
}

// logs returns the logs of a job.
func (a *app) logs(id string) []pawl.RunLog {
	a.Helper()
	parsed, err := pawl.ParseID(id)
	require.NoError(a, err)
	logs, err := admin.Of(a.q).Logs(a.Context(), parsed)
	require.NoError(a, err)
	return logs
}
