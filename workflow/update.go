package workflow

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Update is a signal that a run answers: a caller sends a request of type Req, and waits for an
// answer of type Ans. The run takes requests where its code waits for them, so no handler runs
// concurrently with the code. Make one with [DefineUpdate], once, usually as a package variable.
//
// An update can be used as a signal: [Receives] declares it, and [Signal.WithStart] starts a run
// with a request. [Update.Call] with the same key then waits for the answer. A request that was
// sent as a signal is answered too, but nobody reads the answer.
type Update[Req, Ans any] struct {
	Signal[Req]
}

// DefineUpdate makes the update called name. Signals and updates share their names. The first use
// of the update reports a bad name.
func DefineUpdate[Req, Ans any](name string) *Update[Req, Ans] {
	return &Update[Req, Ans]{*DefineSignal[Req](name)}
}

// Request is a request that a run has taken. The run answers it with [Request.Answer].
type Request[Req, Ans any] struct {
	Value Req

	name string
	n    uint64 // number of the signal
}

// Call sends a request to a run and waits for the answer. The key identifies the request among the signals
// to the run, as in [Signal.Send]. The run handles a request once, however often Call is called with the
// key. Each call returns the same answer, even after the end of the run or of the process. The run keeps
// an answer as long as it remembers the key. Without a key, a caller whose process ends cannot ask again.
//
// It returns an [*UpdateError] if the run has rejected the request or has answered with an error, and
// [ErrNotRunning] if the run has ended without an answer. Other errors are [ErrTooMany] if the answer is no
// longer kept; the errors of [Engine.Send]; the error of ctx, with what the run does; and [pawl.ErrClosed].
// If a caller stops waiting, the run still handles the request. To send a request from within a run, use
// Call in a [Step], with a key: a retry of the step then repeats the request and does not make another.
func (u *Update[Req, Ans]) Call(ctx context.Context, e *Engine, run pawl.ID, req Req, key string) (ans Ans, err error) {
	m, err := u.prepare(e, run, req, key)
	if err == nil {
		err = m.refused(e.queue.Mutate(ctx, m, m.size()))
	}
	if err != nil {
		return ans, err
	}
	got, err := m.await(ctx, e)
	if err != nil && ctx.Err() != nil {
		_, standing := e.standing(run)
		err = fmt.Errorf("%s: %w", standing, err)
	}
	if err != nil {
		return ans, fmt.Errorf("update %q of run %s: %w", u.name, run, err)
	}
	if got.Failed {
		return ans, &UpdateError{Update: u.name, Run: run, Text: got.Error, chain: got.Chain}
	}
	result, err := e.fromStored(got.Result)
	if err == nil {
		err = driver.DecodePayload(result, &ans)
	}
	if err != nil {
		var zero Ans
		return zero, fmt.Errorf("update %q of run %s: the answer: %w", u.name, run, err)
	}
	return ans, nil
}

// Wait waits for the next valid request, as [Signal.Wait] does for a signal.
//
// The function valid returns why the run does not accept a request. A nil function accepts all requests. Valid can
// read the variables of the code that waits, and must only compute. If it returns an error, the caller gets that
// error, which matches [ErrRejected], and the wait continues. A rejected request leaves nothing in the journal. A
// request of another type is rejected, too. Valid is not called again for a request that the run has accepted.
func (u *Update[Req, Ans]) Wait(r *Run, timeout time.Duration, valid func(Req) error) (Request[Req, Ans], error) {
	if u.err != nil {
		return Request[Req, Ans]{}, u.err
	}
	q := Request[Req, Ans]{name: u.name}
	n, err := r.s.awaitSignal(u.name, timeout, u.validator(valid), r.decodeInto(&q.Value))
	if err != nil {
		return Request[Req, Ans]{}, err
	}
	q.n = n
	return q, nil
}

// Case is ready when the run has a valid request that it has not taken yet; see [Update.Wait]. If
// the case is selected, Select stores the request in *out.
func (u *Update[Req, Ans]) Case(out *Request[Req, Ans], valid func(Req) error) Case {
	return Case{name: signalCase + u.name, signal: u.name, err: u.err, valid: u.validator(valid),
		read: func(r *Run, n uint64, payload []byte) error {
			q := Request[Req, Ans]{name: u.name, n: n}
			if err := r.decodeInto(&q.Value)(payload); err != nil {
				return err
			}
			*out = q
			return nil
		}}
}

// Answer answers the request with a value, or with an error if err is not nil. It is a step named "answer" and the name
// of the update, with a space between. One commit stores the end of the step and the answer. A request has one answer: a
// second one returns a [*StepError] that matches [pawl.ErrInvalid]. For an answer that is too large, the StepError
// matches [ErrTooLarge]. Any other error means that the run does not continue now: return it. A request that is not
// answered before a [Restart] keeps its caller waiting until the run ends.
func (q *Request[Req, Ans]) Answer(r *Run, ans Ans, err error) error {
	if q.n == 0 {
		return &pawl.InvalidError{Field: "request", Reason: "it is empty; take it with Update.Wait or in a Select"}
	}
	return r.s.within("answer "+q.name, decodeNothing, func(context.Context) (*effect, error) {
		m := &answerRequest{hub: r.x.engine.hub, run: r.x.run, name: q.name, n: q.n, answer: answer{Failed: err != nil}}
		if err != nil {
			m.answer.Error, m.answer.Chain = textOf(err), chainOf(err)
		} else if m.answer.Result, err = r.x.encode("the answer", ans); err != nil {
			return nil, err
		}
		return &effect{m, len(m.answer.Result) + requestBytes, func() any { return struct{}{} }, func(err error) error { return err }}, nil
	})
}

// UpdateError is the error that a run answered a request with, as [Update.Call] returns it. errors.Is works as for a
// [StepError]. It matches [ErrRejected] if the run did not accept the request.
type UpdateError struct {
	Update string
	Run    pawl.ID
	Text   string

	chain []errorText
}

func (e *UpdateError) Error() string {
	return fmt.Sprintf("update %q of run %s: %s", e.Update, e.Run, e.Text)
}

// Is reports whether the run answered with an error of the type and text of target.
func (e *UpdateError) Is(target error) bool { return inChain(e.chain, target) }

// answer is the row of an answer.
type answer struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Result []byte
	Failed bool // the answer is an error
	Error  string
	Chain  []errorText
}

// answerKey is the key of the answer to a request, by the number of its signal.
func answerKey(run pawl.ID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 24), run[:]...), n)
}

// await waits for the answer to a request.
func (s *send) await(ctx context.Context, e *Engine) (got *answer, err error) {
	err = e.follow(ctx, s.run, func() (over bool, err error) {
		err = e.source.ViewRows(ctx, func(tx driver.Reader) error {
			got, err = rowsOf(tx).answerTo(s)
			return err
		})
		return got != nil, err
	})
	return got, err
}

// answerTo returns the answer to a request, nil if there is none yet.
func (r rows) answerTo(s *send) (*answer, error) {
	row, err := r.mustRun(s.run)
	if err != nil {
		return nil, err
	}
	content, err := r.get(tableAnswers, answerKey(s.run, s.n))
	switch {
	case err != nil:
		return nil, err
	case content != nil:
		got := new(answer)
		if err := driver.DecodePayload(content, got); err != nil {
			return nil, fmt.Errorf("%w: the answer: %v", pawl.ErrCorrupt, err)
		}
		return got, nil
	case !row.open():
		return nil, fmt.Errorf("%w without an answer: it is %s", ErrNotRunning, row.Status)
	case s.n+MaxSeen < row.Signals:
		unread, err := r.get(tableSignals, signalKey(s.run, s.name, s.n))
		if unread == nil && err == nil {
			err = fmt.Errorf("%w: more than %d signals have come since, so the answer is not kept", ErrTooMany, MaxSeen)
		}
		return nil, err
	}
	return nil, nil
}

// answerRequest is the mutation that stores the answer to a request that the run has taken.
type answerRequest struct {
	hub    *hub
	run    pawl.ID
	name   string
	n      uint64
	answer answer
}

// Declare declares the run and the answer.
func (a *answerRequest) Declare(n *driver.Needs) {
	needsRun(n, a.run)
	n.Read(tableAnswers, answerKey(a.run, a.n))
}

// Check requires that there is no answer.
func (a *answerRequest) Check(ops driver.Ops) error {
	r := rowsOf(ops)
	known, err := r.get(tableAnswers, answerKey(a.run, a.n))
	if known != nil && err == nil {
		err = &pawl.InvalidError{Field: "request", Reason: fmt.Sprintf("number %d of %q is answered already", a.n, a.name)}
	}
	return err
}

// Apply stores the answer.
func (a *answerRequest) Apply(tx driver.Writer) error {
	content, err := driver.EncodePayload(&a.answer)
	if err != nil {
		return err
	}
	tx.OnCommit(func() { a.hub.published(a.run) })
	return rowsTo(tx).put(tableAnswers, answerKey(a.run, a.n), content)
}
