// Package dashboard shows a queue in a browser: queues, jobs, keys, groups, failures, workflow runs,
// schedules, and the file. An app mounts it where its users log in:
//
//	d, err := dashboard.New(admin.Of(q), &dashboard.Options{
//		Authorize: func(r *http.Request, a dashboard.Action) bool { return userOf(r).IsAdmin },
//		Hosts:     []string{"app.example.com"},
//	})
//	mux.Handle("/ops/", http.StripPrefix("/ops", d))
//
// It shows any [admin.Admin], so it also shows the file of a stopped app. The command jobctl ui
// shows it on your own machine.
//
// Every page works without JavaScript, and loads nothing from another site. Links are relative, so
// the pages work below any prefix and behind a proxy that changes the prefix. Each page names the
// jobctl command that prints or does the same.
//
// # Who may do what
//
// Without [Options.Authorize] the dashboard refuses everything. With it, the function decides for each request and
// [Action]. A change is a POST request from a page of the same origin, after a page that says what will change. The log
// has a line for each change, with the user who asked for it.
//
// Arguments, results, headers, keys of jobs and runs, progress, logs, and values of workflows need the action
// [ViewPayload], and fields with names such as password are hidden from everybody; see [Options.Hide]. Progress
// and logs are not searched for such fields. Errors, stacks, and everything by which people find jobs and runs
// are part of [View]: the names of queues, kinds, and groups, and the IDs and attributes of runs. So these must
// not contain a secret.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/workflow"
)

// Action is what a request asks for.
type Action string

// The actions. [Actions] lists them.
const (
	View        Action = "view"         // everything except what ViewPayload shows
	ViewPayload Action = "view-payload" // arguments, results, headers, keys of jobs and runs, progress, logs, and values of workflows
	Retry       Action = "retry"        // make dead jobs ready, and release keys that dead jobs hold
	Cancel      Action = "cancel"       // end waiting jobs and pending members of groups, and ask running jobs and workflow runs to end
	Delete      Action = "delete"       // remove dead jobs and records of completed ones
	RunNow      Action = "run-now"      // make delayed jobs ready
	Edit        Action = "edit"         // replace the arguments of a waiting or dead job, and retry a dead one
	Queue       Action = "queue"        // pause and resume queues, which also ends their rests
	Group       Action = "group"        // close groups of jobs
	Run         Action = "run"          // pause and resume workflow runs
	Signal      Action = "signal"       // send signals to workflow runs
	Fork        Action = "fork"         // start workflow runs from a step of others
	Terminate   Action = "terminate"    // end workflow runs without undoing their steps
	Schedule    Action = "schedule"     // pause, resume, and trigger schedules
	Check       Action = "check"        // check the file, which reads all of it, and compare runs with the code
	Backup      Action = "backup"       // download the file, with every payload in it
)

// Actions returns all actions.
func Actions() []Action {
	return []Action{View, ViewPayload, Retry, Cancel, Delete, RunNow, Edit, Queue, Group, Run, Signal, Fork, Terminate, Schedule, Check, Backup}
}

// Changes reports whether an action changes the queue.
func (a Action) Changes() bool {
	switch a {
	case View, ViewPayload, Check, Backup:
		return false
	}
	return true
}

// Options configures a dashboard. Set Authorize; every other zero field means its default.
type Options struct {
	// Authorize decides whether a request may do an action. It is called several times for one request, since a
	// page omits what the user may not do. Nil refuses everything.
	Authorize func(r *http.Request, a Action) bool

	// User returns who sends a request, for the log. The default is the address of the client.
	User func(r *http.Request) string

	// ReadOnly refuses every change, whatever Authorize says.
	ReadOnly bool

	// Hosts lists the host names that requests may use, without a port. Other names are refused.
	// Otherwise a page of another site could reach the dashboard through a host name that resolves
	// to this machine. The default is localhost, 127.0.0.1, and ::1.
	Hosts []string

	// Hide reports whether the values of a field are hidden in arguments, results, headers, and
	// values of workflows. The name is in lower case. The default is [SecretField].
	Hide func(name string) bool

	// Name is the name of the queue that users see. The default is that of the file or the program.
	Name string

	// Target is how jobctl reaches the queue, for the commands on the pages: "--db app.db". The
	// default is --db with the path of the file.
	Target string

	// Logger receives a line for each change, each refused change, and each failed page. The default is
	// hclog.Default().
	Logger pawl.Logger

	// Now returns the time. The default is time.Now.
	Now func() time.Time
}

// Limits of a dashboard.
const (
	maxBody     = 1 << 20          // bytes of a request's body
	maxWait     = 10 * time.Second // for other pages
	maxWork     = 30 * time.Second // of one page or change
	reserve     = 5 * time.Second  // of it, for the last portion of a change
	maxStreams  = 256              // of pages that update themselves
	maxSelected = 10_000           // jobs that one action changes
)

// Dashboard is an [http.Handler]. Its methods are safe for concurrent use.
type Dashboard struct {
	admin   admin.Admin
	opts    Options
	log     pawl.Logger
	cross   *http.CrossOriginProtection
	working chan struct{} // pages at a time
	streams chan struct{}
	watch   *watcher
	closing context.Context
	close   context.CancelFunc
}

// New returns a dashboard over a queue. It rejects an empty name in Options.Hosts with a
// *pawl.InvalidError. Options may be nil: the dashboard then refuses every request with a page that
// says what to do.
func New(a admin.Admin, opts *Options) (*Dashboard, error) {
	if opts == nil {
		opts = new(Options)
	}
	d := &Dashboard{admin: a, opts: *opts, log: opts.Logger, cross: http.NewCrossOriginProtection()}
	for _, host := range d.opts.Hosts {
		if strings.TrimSpace(host) == "" {
			return nil, fmt.Errorf("make a dashboard: %w", &pawl.InvalidError{Field: "Hosts", Reason: "a name in it is empty; leave Hosts nil for localhost"})
		}
	}
	if len(d.opts.Hosts) == 0 {
		d.opts.Hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	if d.log == nil {
		d.log = hclog.Default()
	}
	if d.opts.Hide == nil {
		d.opts.Hide = SecretField
	}
	if d.opts.Now == nil {
		d.opts.Now = time.Now
	}
	if d.opts.User == nil {
		d.opts.User = func(r *http.Request) string { return r.RemoteAddr }
	}
	d.working = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))
	d.streams = make(chan struct{}, maxStreams)
	d.closing, d.close = context.WithCancel(context.Background())
	d.watch = &watcher{admin: a}
	return d, nil
}

// Close ends the streams of pages that update themselves, so that a server can shut down. It does not
// close the queue.
func (d *Dashboard) Close() error {
	d.close()
	return nil
}

// policy is the Content-Security-Policy of every answer.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	q := &request{Request: r, d: d, w: w}
	defer q.survive()
	if err := q.serve(); err != nil {
		q.fail(err)
	}
}

// refusal is an error with its HTTP status and what its reader can do.
type refusal struct {
	status int
	text   string
	help   string
}

func (e *refusal) Error() string { return e.text }

// admit rejects requests under other names and from other sites.
func (d *Dashboard) admit(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if !slices.ContainsFunc(d.opts.Hosts, func(own string) bool { return strings.EqualFold(own, host) }) {
		return &refusal{http.StatusMisdirectedRequest, fmt.Sprintf("This dashboard does not answer under the name %q.", clipped(host)),
			"The app lists the names in Options.Hosts of its dashboard."}
	}
	if err := d.cross.Check(r); err != nil {
		return &refusal{http.StatusForbidden, "This request comes from another site.",
			"Open the dashboard itself. A proxy in front of it must pass the header Host unchanged."}
	}
	return nil
}

// authorize rejects what the user may not do.
func (q *request) authorize(a Action) error {
	switch {
	case q.d.opts.Authorize == nil:
		return &refusal{http.StatusForbidden, "This dashboard is closed, because the app has not said who may use it.",
			"Set Authorize in dashboard.Options to a function that decides for each request and action."}
	case a.Changes() && q.d.opts.ReadOnly:
		return &refusal{http.StatusForbidden, "This dashboard is read-only.", "Use jobctl, or a dashboard without Options.ReadOnly."}
	case !q.d.opts.Authorize(q.Request, a):
		return &refusal{http.StatusForbidden, fmt.Sprintf("You may not do this: it needs the action %q.", a),
			"Options.Authorize of the app's dashboard decides about it."}
	}
	return nil
}

// Can reports whether the user may do an action.
func (q *request) Can(a Action) bool { return q.authorize(a) == nil }

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return refused.status
	case errors.Is(err, pawl.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, pawl.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, admin.ErrDenied):
		return http.StatusForbidden
	case errors.Is(err, pawl.ErrConflict), errors.Is(err, pawl.ErrNotEligible), errors.Is(err, admin.ErrNotLive), errors.Is(err, admin.ErrWorkflowJob), errors.Is(err, workflow.ErrNotRunning):
		return http.StatusConflict
	case errors.Is(err, errors.ErrUnsupported):
		return http.StatusNotImplemented
	case errors.Is(err, admin.ErrUnreachable):
		return http.StatusBadGateway
	case errors.Is(err, admin.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
