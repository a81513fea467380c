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
// answer is another object. An error is {"error":{"code":…,"message":…}}. A change in the
// meaning of a field changes the version and the paths.
const (
	apiVersion    = "1"
	versionHeader = "Pawl-Admin"
	payloadHeader = "Pawl-Payload" // of a request: "base64" asks for exact payloads in place of JSON
)

// HandlerOptions configures a [Handler]. Set Token or NoAuth; every other zero field means its
// default.
type HandlerOptions struct {
	// Token is the secret that clients send as "Authorization: Bearer <token>". It has no
	// default: an empty token, for example from an unset variable, is an error.
	Token string

	// NoAuth serves every client without a token. Set it only where the app authenticates
	// clients before their requests reach the handler.
	NoAuth bool

	// Hosts lists the host names that requests may use, without a port. Other names are refused,
	// so that a web page in a browser cannot reach the handler through a name of its own that
	// resolves to this machine. The default is localhost, 127.0.0.1 and ::1.
	Hosts []string

	// MaxBody is the limit on the bytes of a request's body. The default is 1 MiB.
	MaxBody int64

	// ReadOnly refuses every change with ErrDenied.
	ReadOnly bool

	// Logger receives a line for each request that panicked and each stream that broke. The
	// default is hclog.Default().
	Logger pawl.Logger
}

// Limits on concurrent requests; others wait, or get [ErrBusy].
const (
	defaultMaxBody = 1 << 20
	smallBody      = 64 << 10 // bodies up to this size are not limited in number
	largeBodies    = 4        // larger bodies and answers at a time
	maxStreams     = 8        // of events
	queueTimeout   = 10 * time.Second
	stall          = 10 * time.Second // a client that reads or sends nothing for this long is dropped
	slowest        = 256 << 10        // the minimum in bytes per second for a large body, an answer or a backup
)

// Handler serves an Admin over HTTP and JSON, below /v1/. An app mounts it anywhere, wrapped in
// http.StripPrefix, behind its own authentication or with a Token. [Dial] is its client. The
// app's server sets the timeouts for headers and idle connections, and should set both.
//
//	h, err := admin.Handler(admin.Of(q), &admin.HandlerOptions{Token: token, Hosts: []string{"app.example.com"}})
//	if err != nil { … }
//	mux.Handle("/ops/", http.StripPrefix("/ops", h))
//
// is reached by jobctl --addr https://app.example.com/ops with JOBCTL_TOKEN set.
//
// Options that leave open who may call are an error that matches pawl.ErrInvalid: neither Token
// nor NoAuth is set, both are set, or a name in Hosts is empty. Anyone who reaches the handler
// can read every job, download the file, and change the queue.
//
// It uses a bounded share of the process, whatever the number of clients. A list or a large
// answer waits for others. One check and one backup run at a time. The handler drops a client
// that reads nothing for 10 s, and a backup slower than 256 KiB/s, since a backup keeps pages of
// the file from being reused. A request that changes something must have the type
// application/json, which no form in a browser sends.
func Handler(a Admin, opts *HandlerOptions) (http.Handler, error) {
	if opts == nil {
		opts = &HandlerOptions{}
	}
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("make a handler: %w", err)
	}
	return newHandler(a, opts, context.Background()), nil
}

// check rejects options that leave open who may call.
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

// handler is the result of Handler. Its streams end when closing ends.
type handler struct {
	admin   Admin
	opts    HandlerOptions
	token   [sha256.Size]byte
	log     pawl.Logger
	closing context.Context

	// lists limits lists to half of the processors, and to part of that while others wait. large
	// limits requests with a large body or answer.
	lists, large, streams, checks, backups, waits, candidates *gate

	candidate func(context.Context) // of the server's options, or nil
}

func newHandler(a Admin, opts *HandlerOptions, closing context.Context) *handler {
	h := &handler{
		admin: a, opts: *opts, closing: closing,
		waits:   newGate("calls that wait for a job", maxWaits),
		lists:   newGate("lists", max(1, runtime.GOMAXPROCS(0)/2)).withQueue(maxConns, queueTimeout),
		large:   newGate("large bodies or answers", largeBodies).withQueue(8*largeBodies, queueTimeout),
		streams: newGate("streams of events", maxStreams),
		checks:  newGate("check", 1),
		backups: newGate("backup", 1),

		candidates: newGate("processes that wait for the file", maxWaits),
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
	if r.ContentLength != 0 { // the deadline also holds for a body that nothing reads
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
	if !begins(r.Context()) { // the connection is being closed
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
	if large { // before there is an answer, so that no answer waits in memory
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

// find returns the operation that a request names. A client may use GET for an operation that
// changes nothing, with the zero value of its request.
func (h *handler) find(r *http.Request) (*endpoint, error) {
	to := endpoints[r.URL.Path]
	get := r.Method == http.MethodGet
	switch {
	case to == nil:
		return nil, &refusal{http.StatusNotFound, codePath, fmt.Sprintf("there is no %q; this app has version %s of the API, below /v1/", truncate(r.URL.Path), apiVersion)}
	case !get && r.Method != http.MethodPost, get && to.changes:
		return nil, &refusal{http.StatusMethodNotAllowed, codeMethod, fmt.Sprintf("%s does not take %s; use POST", r.URL.Path, truncate(r.Method))}
	case to.changes && h.opts.ReadOnly:
		return nil, fmt.Errorf("%w: it is read only and takes no changes", ErrDenied)
	case r.URL.RawQuery != "":
		return nil, invalid("parameter", "%q: an operation has none; send a JSON object by POST", truncate(r.URL.RawQuery))
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

// work carries out an operation at its gate. It also encodes the answer there, which costs as
// much.
func (h *handler) work(r *http.Request, to *endpoint, request any) ([]byte, error) {
	if to.work != nil {
		leave, err := to.work(h).enter(r.Context())
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	ctx := r.Context()
	if to.waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.closing, cancel)()
	}
	answer, err := to.answer(ctx, h.admin, request)
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
		err = to.broken(errors.New("the answer has no JSON form; the app's log says more"))
	}
	return b, err
}

// broken returns the error of a request that broke off: a change may have happened before.
func (e *endpoint) broken(err error) error {
	if e != nil && e.changes {
		return fmt.Errorf("%w: %w", pawl.ErrUnknownOutcome, err)
	}
	return err
}

// explain returns why this side ended a request.
func (h *handler) explain(err error) error {
	if h.closing.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return fmt.Errorf("%w: %w", errStopping, err)
	}
	return err
}

var errPanicked = errors.New("the app panicked over this request; its log says more")

// survive turns a panic into an answer, so that the server continues.
func (h *handler) survive(out *sink, r *http.Request) {
	p := recover()
	switch {
	case p == nil:
		return
	case p == http.ErrAbortHandler:
		panic(p) // this cuts only the connection
	}
	h.log.Error("operator request panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	if out.began {
		panic(http.ErrAbortHandler)
	}
	h.refuse(out, endpoints[r.URL.Path].broken(errPanicked))
}
