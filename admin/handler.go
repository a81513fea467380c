package admin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl"
)

// HandlerOptions are the settings of a [Handler]. Set Token or NoAuth; every other zero
// field means its default.
type HandlerOptions struct {
	// Token is the secret that clients send as "Authorization: Bearer <token>". It has no
	// default: an empty token, as from a variable that is not set, is an error.
	Token string

	// NoAuth serves every client without a token. Set it only where the app authenticates
	// clients before their requests reach the handler.
	NoAuth bool

	// Hosts are the names under which the handler may be asked, without a port. Others are
	// refused, so that a page in somebody's browser cannot reach the handler under a name of
	// its own that it has lead to this machine. The default is localhost, 127.0.0.1 and ::1.
	Hosts []string

	// MaxBody is the most bytes of a request's body. The default is 1 MiB.
	MaxBody int64

	// ReadOnly refuses every change with ErrDenied.
	ReadOnly bool

	// Logger gets a line for each request that panicked and each stream that broke. The
	// default is hclog.Default().
	Logger pawl.Logger
}

// Limits of what operators can ask at a time; the rest waits, or gets [ErrBusy].
const (
	defaultMaxBody = 1 << 20
	smallBody      = 64 << 10 // of which any number may be on their way
	largeBodies    = 4        // bodies and answers above it at a time
	maxStreams     = 8        // of events
	patience       = 10 * time.Second
	stall          = 10 * time.Second // a client that takes or sends nothing for so long is dropped
	slowest        = 256 << 10        // bytes a second that a large body, answer or backup must reach
)

// Handler answers for an Admin by HTTP and JSON, below /v1/. An app mounts it where it
// likes, http.StripPrefix around it, behind its own authentication or with a Token; [Dial]
// is its client. Timeouts for headers and idle connections are those of the app's server,
// which should have both.
//
//	h, err := admin.Handler(admin.Of(q), &admin.HandlerOptions{Token: token, Hosts: []string{"app.example.com"}})
//	if err != nil { … }
//	mux.Handle("/ops/", http.StripPrefix("/ops", h))
//
// is reached by jobctl --addr https://app.example.com/ops with JOBCTL_TOKEN set.
//
// Options that leave open who may call are an error that matches pawl.ErrInvalid: neither
// Token nor NoAuth is set, or both are, or a name in Hosts is empty. Whoever reaches the
// handler can read every job, download the file, and change the queue.
//
// It takes no more of the process than a bounded share, whatever the number of clients: a
// list or a large answer waits for others, one check and one backup run at a time, and a
// client that reads nothing for 10 s is dropped, as is a backup that gets on with less than
// 256 KiB/s, since it keeps pages of the file from being used again. Requests that change
// something have to be of type application/json, which no form in a browser is.
func Handler(a Admin, opts *HandlerOptions) (http.Handler, error) {
	if opts == nil {
		opts = &HandlerOptions{}
	}
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("make a handler: %w", err)
	}
	return newHandler(a, opts, context.Background()), nil
}

// check refuses options that leave open who may call.
func (o *HandlerOptions) check() error {
	switch {
	case o.NoAuth && o.Token != "":
		return invalid("HandlerOptions", "Token and NoAuth are both set; set one")
	case !o.NoAuth && o.Token == "":
		return invalid("Token", "it is empty, so everybody could read and change the queue; set it, or set NoAuth if the app authenticates clients itself")
	case !o.NoAuth:
		if err := checkToken(o.Token); err != nil {
			return err
		}
	}
	for _, host := range o.Hosts {
		if strings.TrimSpace(host) == "" {
			return invalid("Hosts", "a name in it is empty; leave Hosts nil for localhost")
		}
	}
	return nil
}

// handler is a Handler. Its streams end when closing does.
type handler struct {
	admin   Admin
	opts    HandlerOptions
	token   [sha256.Size]byte
	log     pawl.Logger
	closing context.Context
	routes  map[string]map[string]route // by path and method

	// lists lets lists at work on half of the processors, and when others wait on a part of
	// that. Large has those whose body or answer is large.
	lists, large, streams, checks, backups *gate
}

// route is one endpoint: either answer or stream.
type route struct {
	gate   *gate // or nil
	change bool
	params bool                       // it may have a query
	large  func(r *http.Request) bool // whether the answer will be large; nil says no
	answer func(r *http.Request, body []byte) (any, error)
	stream func(out *sink, r *http.Request)
}

func newHandler(a Admin, opts *HandlerOptions, closing context.Context) *handler {
	h := &handler{
		admin: a, opts: *opts, closing: closing,
		lists:   newGate("lists", max(1, runtime.GOMAXPROCS(0)/2)).withQueue(maxSeats, patience),
		large:   newGate("large bodies or answers", largeBodies).withQueue(8*largeBodies, patience),
		streams: newGate("streams of events", maxStreams),
		checks:  newGate("check", 1),
		backups: newGate("backup", 1),
	}
	h.lists.rest = 3
	if h.opts.MaxBody <= 0 {
		h.opts.MaxBody = defaultMaxBody
	}
	if len(h.opts.Hosts) == 0 {
		h.opts.Hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	if h.log = h.opts.Logger; h.log == nil {
		h.log = hclog.Default()
	}
	h.token = sha256.Sum256([]byte(h.opts.Token))
	h.routes = h.table()
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := newSink(w)
	defer h.survive(out, r)

	header := w.Header()
	header.Set(versionHeader, apiVersion)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 { // it is sent in time, also where nobody reads it
		out.readWithin(h.opts.MaxBody)
	}
	if err := h.admit(r); err != nil {
		if errors.Is(err, errToken) {
			header.Set("WWW-Authenticate", "Bearer")
		}
		h.refuse(out, err)
		return
	}
	path, id := r.URL.Path, ""
	if rest, ok := strings.CutPrefix(path, pathJobs+"/"); ok && path != pathDo {
		path, id = pathJobs+"/{id}", rest
	}
	r.SetPathValue("id", id)
	methods, ok := h.routes[path]
	if !ok {
		h.reply(out, http.StatusNotFound, failure{&problem{Code: codePath, Message: fmt.Sprintf("there is no %q; this app speaks version %s of the API, below /v1/", clip(r.URL.Path), apiVersion)}})
		return
	}
	to, ok := methods[r.Method]
	if !ok {
		for method := range methods {
			header.Add("Allow", method)
		}
		h.reply(out, http.StatusMethodNotAllowed, failure{&problem{Code: codeMethod, Message: fmt.Sprintf("%s cannot be asked by %s", path, clip(r.Method))}})
		return
	}
	if to.change && h.opts.ReadOnly {
		h.refuse(out, fmt.Errorf("%w: it serves operators who look, and takes no changes", ErrDenied))
		return
	}
	if err := checkParams(r.URL.RawQuery, to.params); err != nil {
		h.refuse(out, err)
		return
	}
	h.serve(out, r, to)
}

// serve reads the body, waits at the gates and answers.
func (h *handler) serve(out *sink, r *http.Request, to route) {
	body, leave, err := h.body(out, r)
	defer leave()
	if err != nil {
		h.refuse(out, err)
		return
	}
	if !begins(r.Context()) { // its connection is being closed, where this may come first
		err := errCrowded
		if h.closing.Err() != nil {
			err = errStopping
		}
		h.refuse(out, err)
		return
	}
	if to.stream != nil {
		if err := empty(body); err != nil {
			h.refuse(out, err)
			return
		}
		leave, err := to.gate.enter(r.Context())
		if err != nil {
			h.refuse(out, h.explain(err))
			return
		}
		defer leave()
		to.stream(out, r)
		return
	}
	reserved := to.large != nil && to.large(r)
	if reserved { // before there is an answer, so that none waits in memory
		leave, err := h.large.enter(r.Context())
		if err != nil {
			h.refuse(out, h.explain(err))
			return
		}
		defer leave()
	}
	answer, err := h.work(r, to, body)
	switch {
	case err != nil:
		h.refuse(out, h.explain(err))
	case reserved, to.change: // a change is done, so nothing may keep the answer back
		h.send(out, http.StatusOK, answer)
	default:
		h.reply(out, http.StatusOK, answer)
	}
}

// work does what was asked, at its gate, and makes the JSON of the answer there too, which
// costs as much.
func (h *handler) work(r *http.Request, to route, body []byte) (any, error) {
	if to.gate == nil {
		return to.answer(r, body)
	}
	leave, err := to.gate.enter(r.Context())
	if err != nil {
		return nil, err
	}
	defer leave()
	answer, err := to.answer(r, body)
	if err != nil {
		return nil, err
	}
	return marshal(answer)
}

// explain says why a request ended that was ended from here.
func (h *handler) explain(err error) error {
	if h.closing.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("%w: %w", errStopping, err)
	}
	return err
}

// survive turns a panic into an answer. The server goes on.
func (h *handler) survive(out *sink, r *http.Request) {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler:
		panic(p) // which cuts the connection, and nothing else
	}
	h.log.Error("a request of an operator panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if out.began {
		panic(http.ErrAbortHandler)
	}
	h.reply(out, http.StatusInternalServerError, failure{&problem{Code: codeInternal, Message: "the app panicked over this request; its log says more"}})
}
