package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/schedule"
	"github.com/gopawl/pawl/workflow"
)

// ErrBusy means that the app already does as much for operators as it allows at a time: one
// check, one backup, a few lists. Nothing was done; try again later.
var ErrBusy = errors.New("app is busy with other requests of operators")

// code is a sentinel and its form in HTTP.
type code struct {
	name   string
	status int
	is     error
}

// codes is the table of errors that exist for every engine. The server reads it from left to
// right, and the client from right to left. An error that matches several codes has the first as
// its code and the rest in Also, so errors.Is gives the same result on both sides. The errors of
// one engine follow: each [driver.Sentinel] has its own code.
var codes = []code{
	{"no_run", http.StatusNotFound, workflow.ErrNotFound},
	{"no_schedule", http.StatusNotFound, schedule.ErrNotFound},
	{"not_found", http.StatusNotFound, pawl.ErrNotFound},
	{"run_conflict", http.StatusConflict, workflow.ErrConflict},
	{"conflict", http.StatusConflict, pawl.ErrConflict},
	{"not_eligible", http.StatusConflict, pawl.ErrNotEligible},
	{"payload_too_large", http.StatusRequestEntityTooLarge, pawl.ErrPayloadTooLarge},
	{"batch_too_large", http.StatusRequestEntityTooLarge, pawl.ErrBatchTooLarge},
	{"payload_encoding", http.StatusBadRequest, pawl.ErrPayloadEncoding},
	{"queue_full", http.StatusInsufficientStorage, pawl.ErrQueueFull},
	{"invalid", http.StatusBadRequest, pawl.ErrInvalid},
	{"busy", http.StatusServiceUnavailable, ErrBusy},
	{"unreachable", http.StatusServiceUnavailable, ErrUnreachable},
	{"denied", http.StatusForbidden, ErrDenied},
	{"not_live", http.StatusConflict, ErrNotLive},
	{"cancel_requested", http.StatusConflict, ErrCancelRequested},
	{"workflow_job", http.StatusConflict, ErrWorkflowJob},
	{"unknown_outcome", http.StatusInternalServerError, pawl.ErrUnknownOutcome},
	{"poisoned", http.StatusInternalServerError, pawl.ErrPoisoned},
	{"closed", http.StatusServiceUnavailable, pawl.ErrClosed},
	{"not_accepted", http.StatusServiceUnavailable, pawl.ErrNotAccepted},
	{"corrupt", http.StatusInternalServerError, pawl.ErrCorrupt},
	{"signature", http.StatusBadRequest, pawl.ErrSignature},
	{"lease_lost", http.StatusConflict, pawl.ErrLeaseLost},
	{"newer_format", http.StatusInternalServerError, pawl.ErrNewerFormat},
	{"unsupported", http.StatusNotImplemented, errors.ErrUnsupported},
	{"run_ended", http.StatusConflict, workflow.ErrNotRunning},
	{"undeclared_signal", http.StatusConflict, workflow.ErrUndeclared},
	{"no_flow", http.StatusConflict, workflow.ErrNoFlow},
	{"too_many", http.StatusConflict, workflow.ErrTooMany},
	{"too_large", http.StatusRequestEntityTooLarge, workflow.ErrTooLarge},
}

// sentinelStatus has the status of the sentinels that are no internal error of the server.
var sentinelStatus = map[string]int{
	"disk":   http.StatusInsufficientStorage,
	"full":   http.StatusInsufficientStorage,
	"locked": http.StatusServiceUnavailable,
}

// maxMessage limits the text of one error.
const maxMessage = 16 << 10

// Codes without a sentinel.
const (
	codeInternal = "internal"
	codePath     = "no_such_path"
	codeMethod   = "wrong_method"
	codeType     = "wrong_type"
	codeMismatch = "does_not_fit" // a workflow.DeterminismError
)

// matched returns what an error with a code matches, nil for a code without a sentinel.
func matched(name string) error {
	switch name {
	case codeInternal, codeMethod, codeType, codeMismatch:
		return nil
	case codePath: // from an app of an older release
		return errors.ErrUnsupported
	}
	if at := slices.IndexFunc(codes, func(c code) bool { return c.name == name }); at >= 0 {
		return codes[at].is
	}
	return driver.NewSentinel(name, "")
}

// problem is an error in JSON.
type problem struct {
	Code    string   `json:"code"`
	Also    []string `json:"also,omitempty"` // the other codes that it matches
	Message string   `json:"message"`

	// The parts of a [pawl.InvalidError].
	Field  string       `json:"field,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Lacks  pawl.Ability `json:"lacks,omitempty"`

	Operation string `json:"operation,omitempty"` // of an [UnsupportedError]

	// The parts of a [workflow.DeterminismError].
	Mismatch json.RawMessage `json:"mismatch,omitempty"`
}

// problemOf returns the JSON form of an error, and its HTTP status.
func problemOf(err error) (*problem, int) {
	if err == nil {
		return nil, http.StatusOK
	}
	p, status := &problem{Code: codeInternal, Message: ellipsis.Truncate(err.Error(), maxMessage)}, http.StatusInternalServerError
	matches := func(name string, as int) {
		if p.Code == codeInternal {
			p.Code, status = name, as
		} else if p.Code != name && !slices.Contains(p.Also, name) {
			p.Also = append(p.Also, name)
		}
	}
	for _, c := range codes {
		if errors.Is(err, c.is) {
			matches(c.name, c.status)
		}
	}
	eachSentinel(err, func(s *driver.Sentinel) {
		if s.Is(matched(s.Code())) { // and the code is not one of this package
			matches(s.Code(), cmp.Or(sentinelStatus[s.Code()], http.StatusInternalServerError))
		}
	})
	if invalid := (*pawl.InvalidError)(nil); errors.As(err, &invalid) {
		p.Field, p.Reason = ellipsis.Truncate(invalid.Field, maxMessage), ellipsis.Truncate(invalid.Reason, maxMessage)
		p.Lacks = invalid.Lacks
	}
	if lacks := (*UnsupportedError)(nil); errors.As(err, &lacks) {
		p.Operation = ellipsis.Truncate(lacks.Operation, maxMessage)
	}
	if differs := (*workflow.DeterminismError)(nil); errors.As(err, &differs) {
		p.Mismatch, _ = encode(*differs, PayloadNone) // strings and a number always have a JSON form
		if p.Code == codeInternal {
			p.Code, status = codeMismatch, http.StatusConflict
		}
	}
	return p, status
}

// eachSentinel calls fn for the sentinels in an error's tree.
func eachSentinel(err error, fn func(*driver.Sentinel)) {
	switch e := err.(type) {
	case *driver.Sentinel:
		fn(e)
	case interface{ Unwrap() error }:
		eachSentinel(e.Unwrap(), fn)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			eachSentinel(one, fn)
		}
	}
}

// err returns the error that p was made from, with the parts that p has: its text, what it
// matches, the field of an invalid value, and where a workflow does not match its journal.
func (p *problem) err() error {
	if p == nil {
		return nil
	}
	e := &remoteError{text: p.Message}
	if e.text == "" {
		e.text = "the app gave no reason (" + p.Code + ")"
	}
	for _, name := range append([]string{p.Code}, p.Also...) {
		if is := matched(name); is != nil {
			e.matches = append(e.matches, is)
		}
	}
	if p.Field != "" {
		e.matches = append(e.matches, &pawl.InvalidError{Field: p.Field, Reason: p.Reason, Lacks: p.Lacks})
	}
	if p.Operation != "" {
		e.matches = append(e.matches, &UnsupportedError{p.Operation})
	}
	if differs := new(workflow.DeterminismError); p.Mismatch != nil && decodeAnswer(p.Mismatch, differs) == nil {
		e.matches = append(e.matches, differs)
	}
	return e
}

// remoteError is an error that happened in the app, with the app's text.
type remoteError struct {
	text    string
	matches []error
}

func (e *remoteError) Error() string { return e.text }

// Unwrap lets errors.Is and errors.As find what the error matched in the app.
func (e *remoteError) Unwrap() []error { return e.matches }
