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

// The API is version 1. A request is a POST of one JSON object to the path of an operation; the
// answer is another object. An error is {"error":{"code":…,"message":…}}. A change of what a
// field means raises the version and the paths.
const (
	apiVersion    = "1"
	versionHeader = "Pawl-Admin"
	payloadHeader = "Pawl-Payload" // of a request: "base64" asks for exact payloads in place of JSON
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

	// lists lets lists at work on half of the processors, and when others wait on a part of
	// that. Large has those whose body or answer is large.
	lists, large, streams, checks, backups *gate
}

func newHandler(a Admin, opts *HandlerOptions, closing context.Context) *handler {
	h := &handler{
		admin: a, opts: *opts, closing: closing,
		lists:   newGate("lists", max(1, runtime.GOMAXPROCS(0)/2)).withQueue(maxConns, patience),
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
	if r.ContentLength != 0 { // the deadline also holds for a body that nobody reads
		out.readWithin(h.opts.MaxBody)
	}
	if err := h.admit(r); err != nil {
		if errors.Is(err, errToken) {
			header.Set("WWW-Authenticate", "Bearer")
		}
		h.refuse(out, err)
		return
	}
	if err := h.serve(out, r); err != nil {
		h.refuse(out, h.explain(err))
	}
}

// serve finds the operation, reads the body, waits at the gates and answers.
func (h *handler) serve(out *sink, r *http.Request) error {
	to, err := h.find(r)
	if err != nil {
		return err
	}
	body, leave, err := h.body(out, r)
	held := leave != nil // a place among the large, which serves for the answer too
	if held {
		defer leave()
	}
	if err != nil {
		return err
	}
	if !begins(r.Context()) { // its connection is being closed
		if h.closing.Err() != nil {
			return errStopping
		}
		return errTooMany
	}
	request, err := to.decode(body)
	if err != nil {
		return err
	}
	if to.stream != nil {
		return h.serveStream(out, r, to)
	}
	large := !held && to.large(request)
	if large { // before there is an answer, so that none waits in memory
		leave, err := h.large.enter(r.Context())
		if err != nil {
			return err
		}
		defer leave()
	}
	answer, err := h.work(r, to, request)
	switch {
	case err != nil:
		return err
	case held, large, to.changes: // a change is done, so nothing may delay its answer
		h.send(out, http.StatusOK, answer)
	default:
		h.reply(out, answer)
	}
	return nil
}

// find is the operation that a request asks for. An operation that changes nothing may be
// asked for by GET, with the zero value of its request.
func (h *handler) find(r *http.Request) (*endpoint, error) {
	to := endpoints[r.URL.Path]
	get := r.Method == http.MethodGet
	switch {
	case to == nil:
		return nil, &refusal{http.StatusNotFound, codePath, fmt.Sprintf("there is no %q; this app has version %s of the API, below /v1/", clip(r.URL.Path), apiVersion)}
	case !get && r.Method != http.MethodPost, get && to.changes:
		return nil, &refusal{http.StatusMethodNotAllowed, codeMethod, fmt.Sprintf("%s does not take %s; use POST", r.URL.Path, clip(r.Method))}
	case to.changes && h.opts.ReadOnly:
		return nil, fmt.Errorf("%w: it is read only and takes no changes", ErrDenied)
	case r.URL.RawQuery != "":
		return nil, invalid("parameter", "%q: an operation has none; send a JSON object by POST", clip(r.URL.RawQuery))
	}
	return to, nil
}

func (h *handler) serveStream(out *sink, r *http.Request, to *endpoint) error {
	leave, err := to.work(h).enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	to.stream(h, out, r)
	return nil
}

// work carries out an operation at its gate. Encoding the answer costs as much, so that is
// done there too.
func (h *handler) work(r *http.Request, to *endpoint, request any) ([]byte, error) {
	if to.work != nil {
		leave, err := to.work(h).enter(r.Context())
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	answer, err := to.answer(r.Context(), h.admin, request)
	if err != nil {
		return nil, err
	}
	form := PayloadAuto // for people
	if r.Header.Get(payloadHeader) == "base64" {
		form = PayloadBase64
	}
	b, err := encode(answer, form)
	if err != nil {
		h.log.Error("answer has no JSON form", "path", r.URL.Path, "error", err)
		err = errors.New("the answer has no JSON form; the app's log says more")
	}
	return b, err
}

// explain says why a request ended that was ended from here.
func (h *handler) explain(err error) error {
	if h.closing.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("%w: %w", errStopping, err)
	}
	return err
}

var errPanicked = errors.New("the app panicked over this request; its log says more")

// survive turns a panic into an answer. The server goes on.
func (h *handler) survive(out *sink, r *http.Request) {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler:
		panic(p) // which cuts the connection, and nothing else
	}
	h.log.Error("operator request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if out.began {
		panic(http.ErrAbortHandler)
	}
	h.refuse(out, errPanicked)
}
