package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// An operation is one request of an operator to a queue. operations.go and workflows.go contain
// all of them, each with its request, its answer and its implementation. The HTTP handler and
// the client follow from that, and the JSON follows from the types; see wire.go.
//
// A new operation needs a request struct, an entry in the table, a method of [Admin] or
// [Workflows] with its two implementations beside it, and a command of jobctl: two files.
//
// Rejected alternatives: an Admin that is one struct over a transport, which needs fewer
// methods, but an app could not wrap or fake a single method; a table of HTTP methods and URL
// parameters, with a second encoding for filters. Instead, every operation is a POST of one JSON
// object.
type operation[Request, Answer any] struct {
	path    string
	changes bool                 // it may change something; without an answer its outcome is unknown
	work    func(*handler) *gate // the gate where it waits; nil for a cheap operation
	waits   bool                 // it waits for the queue, and ends when the handler closes
	large   func(*Request) bool  // whether the answer will be large; nil means no
	do      func(ctx context.Context, a Admin, r *Request) (Answer, error)

	// check returns why an answer cannot be that of an app to this request; nil means that any can.
	// The client believes only what passes.
	check func(r *Request, a *Answer) error
}

// endpoint is an operation as the handler sees it: one with an answer, or a stream.
type endpoint struct {
	changes bool
	waits   bool
	work    func(*handler) *gate
	decode  func(body []byte) (request any, err error)
	large   func(request any) bool
	answer  func(ctx context.Context, a Admin, request any) (any, error)
	stream  func(h *handler, out *sink, r *http.Request)
}

// endpoints contains all operations by path.
var endpoints = make(map[string]*endpoint)

// nothing is a request or an answer without content.
type nothing struct{}

// define adds an operation to the table.
func define[Request, Answer any](o operation[Request, Answer]) *operation[Request, Answer] {
	o.path = "/v1/" + o.path
	enter(o.path, &endpoint{
		changes: o.changes,
		waits:   o.waits,
		work:    o.work,
		decode: func(body []byte) (any, error) {
			r := new(Request)
			if _, none := any(r).(*nothing); none && len(body) == 0 {
				return r, nil
			}
			return r, decodeRequest(body, r)
		},
		large: func(r any) bool { return o.large != nil && o.large(r.(*Request)) },
		answer: func(ctx context.Context, a Admin, r any) (any, error) {
			return o.do(ctx, a, r.(*Request))
		},
	})
	return &o
}

// defineChange adds an operation that changes something and has no answer.
func defineChange[Request any](path string, do func(ctx context.Context, a Admin, r *Request) error) *operation[Request, nothing] {
	return define(operation[Request, nothing]{
		path: path, changes: true,
		do: func(ctx context.Context, a Admin, r *Request) (nothing, error) { return nothing{}, do(ctx, a, r) },
	})
}

// defineTried adds an operation and its dry run. They have two paths, since a read-only handler permits the dry run.
// Dry reports whether a request is for the dry run, and what names the things that the operation changes.
func defineTried[Request, Answer any](change, dryRun, what string, dry func(*Request) bool, o operation[Request, Answer]) (_, _ *operation[Request, Answer]) {
	one := func(path string, changes bool) *operation[Request, Answer] {
		own := o
		own.path, own.changes = path, changes
		if !changes {
			own.work = lists // it reads the rows that the operation would change
		}
		own.do = func(ctx context.Context, a Admin, r *Request) (none Answer, err error) {
			if dry(r) == changes {
				return none, invalid("dry_run", "it is %v; %s changes %s, and %s does not", dry(r), change, what, dryRun)
			}
			return o.do(ctx, a, r)
		}
		return define(own)
	}
	return one(change, true), one(dryRun, false)
}

// defineStream adds an operation whose answer arrives piece by piece. Its request is empty.
func defineStream(path string, work func(*handler) *gate, stream func(h *handler, out *sink, r *http.Request)) string {
	path = "/v1/" + path
	enter(path, &endpoint{
		work:   work,
		stream: stream,
		decode: func(body []byte) (any, error) {
			if len(body) == 0 {
				return nil, nil
			}
			return nil, decodeRequest(body, new(nothing))
		},
	})
	return path
}

func enter(path string, e *endpoint) {
	if endpoints[path] != nil {
		panic("admin: two operations at " + path)
	}
	endpoints[path] = e
}

// ask sends an operation to the app.
func ask[Request, Answer any](ctx context.Context, c *client, o *operation[Request, Answer], r Request) (answer Answer, err error) {
	body, err := encode(r, PayloadBase64)
	if err != nil {
		return answer, fmt.Errorf("write the request: %w", err)
	}
	err = c.ask(ctx, o.path, body, o.changes, func(text []byte) error {
		if err := decodeAnswer(text, &answer); err != nil || o.check == nil {
			return err
		}
		return o.check(&r, &answer)
	})
	if err != nil {
		var none Answer
		return none, err
	}
	return answer, nil
}

// send is ask for an answer without content.
func send[Request any](ctx context.Context, c *client, o *operation[Request, nothing], r Request) error {
	_, err := ask(ctx, c, o, r)
	return err
}

// checkPage rejects a page with more elements than were requested, or that continues where it
// began, so that no list is endless.
func checkPage(elements, most int, after, next string) error {
	switch {
	case elements > most:
		return fmt.Errorf("it has %d elements, at most %d were requested", elements, most)
	case next != "" && next == after:
		return errors.New("it continues where it began")
	}
	return nil
}

// checkList is checkPage for a request with a limit that an app may have to lower or to refuse.
func checkList(elements, limit int, after, next string) error {
	most, err := pageSize(limit)
	if err != nil {
		return err
	}
	return checkPage(elements, most, after, next)
}

// lists returns the gate for operations that read many rows.
func lists(h *handler) *gate { return h.lists }

// always reports that an answer may be large.
func always[Request any](*Request) bool { return true }
