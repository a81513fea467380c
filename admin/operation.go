package admin

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gopawl/pawl/bolt"
)

// An operation is one thing that an operator asks of a queue. All of them stand in
// operations.go and workflows.go, each with its request, its answer and what carries it out.
// The HTTP handler and the client follow from that, and the JSON from the types; see wire.go.
//
// A new operation is a request struct, an entry here, a method of [Admin] or [Workflows] with
// its two implementations beside it, and a command of jobctl: two files.
//
// Refused: an Admin that is one struct over a transport. It needs fewer methods, but an app
// could not wrap or fake one method of it. A table of HTTP methods and URL parameters, with a
// second encoding for filters: every operation is a POST of one JSON object.
type operation[Request, Answer any] struct {
	path    string
	changes bool                 // it may change something; the outcome is unknown when no answer comes
	work    func(*handler) *gate // where it waits for its turn; nil for an operation that costs little
	large   func(*Request) bool  // whether the answer will be large; nil says no
	do      func(ctx context.Context, a Admin, r *Request) (Answer, error)
}

// endpoint is an operation as the handler sees it: one that answers, or a stream.
type endpoint struct {
	changes bool
	work    func(*handler) *gate
	decode  func(body []byte) (request any, err error)
	large   func(request any) bool
	answer  func(ctx context.Context, a Admin, request any) (any, error)
	stream  func(h *handler, out *sink, r *http.Request)
}

// endpoints are all operations by path.
var endpoints = make(map[string]*endpoint)

// nothing is a request or an answer without content.
type nothing struct{}

// define enters an operation into the table.
func define[Request, Answer any](o operation[Request, Answer]) *operation[Request, Answer] {
	o.path = "/v1/" + o.path
	enter(o.path, &endpoint{
		changes: o.changes,
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

// defineStream enters an operation whose answer comes bit by bit. Its request is empty.
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

// ask has the app carry out an operation.
func ask[Request, Answer any](ctx context.Context, c *client, o *operation[Request, Answer], r Request) (answer Answer, err error) {
	body, err := encode(r, PayloadBase64)
	if err != nil {
		return answer, fmt.Errorf("write the request: %w", err)
	}
	err = c.ask(ctx, o.path, body, o.changes, func(text []byte) error { return decodeAnswer(text, &answer) })
	return answer, err
}

// access is how this process reaches the rows of a queue.
type access interface {
	// look calls fn with the queue or file, open to read at least.
	look(fn func(looker) error) error

	// change calls fn with the queue, open to write.
	change(fn func(*bolt.Queue) error) error
}

// looked is what fn reads.
func looked[T any](from access, fn func(looker) (T, error)) (result T, err error) {
	err = from.look(func(l looker) error {
		result, err = fn(l)
		return err
	})
	return result, err
}

// changed is what fn returns of its change.
func changed[T any](in access, fn func(*bolt.Queue) (T, error)) (result T, err error) {
	err = in.change(func(q *bolt.Queue) error {
		result, err = fn(q)
		return err
	})
	return result, err
}

// lists is the gate of what reads many rows.
func lists(h *handler) *gate { return h.lists }

// dryRuns is the gate of a dry run, which reads the rows that its operation would change.
func dryRuns(changes bool) func(*handler) *gate {
	if changes {
		return nil
	}
	return lists
}

// always says that an answer may be large.
func always[Request any](*Request) bool { return true }
