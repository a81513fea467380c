package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

// The names of headers of the server.
const (
	headerID       = "Nats-Msg-Id"          // the server stores one message with an ID, within the stream's window
	headerSchedule = "Nats-Schedule"        // when to move a message
	headerTarget   = "Nats-Schedule-Target" // to which subject
	headerStatus   = "Status"               // of an answer without a message
)

// answer is what became of a request.
type answer struct {
	*nats.Msg
	sent bool // the server may have received it
	err  error
}

// exchange sends requests in their order, and waits for all answers. A call that was accepted does not end early.
func (q *Queue) exchange(requests ...*nats.Msg) []answer {
	answers := make([]answer, len(requests))
	if len(requests) == 0 {
		return answers
	}
	lost := q.connection()
	call, replies := q.replies.begin(len(requests))
	defer q.replies.end(call)
	waiting := 0
	for i, m := range requests {
		m.Reply = q.replies.subject(call, i)
		if err := q.nc.PublishMsg(m); err != nil {
			answers[i].err = err
		} else {
			waiting++
		}
	}
	timeout := time.NewTimer(q.opts.Timeout)
	defer timeout.Stop()
	var err error
	for ; waiting > 0 && err == nil; waiting-- {
		select {
		case r := <-replies:
			if r.request < len(answers) {
				answers[r.request] = answer{Msg: r.msg, sent: true}
			}
		case <-lost:
			err = nats.ErrConnectionClosed
		case <-timeout.C:
			err = nats.ErrTimeout
		}
	}
	for i := range answers {
		if answers[i].Msg == nil && answers[i].err == nil {
			answers[i] = answer{sent: true, err: err}
		}
	}
	return answers
}

// stored returns the sequence in the answer to a publication, and whether the stream had the message already.
func (q *Queue) stored(a answer) (seq uint64, duplicate bool, err error) {
	if err := q.failed(a); err != nil {
		return 0, false, err
	}
	var ack struct {
		Seq       uint64 `json:"seq"`
		Duplicate bool   `json:"duplicate"`
		Error     *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(a.Data, &ack); err != nil {
		return 0, false, fmt.Errorf("%w: the answer of %s is not of JetStream: %w", pawl.ErrUnknownOutcome, q.address, err)
	}
	if ack.Error != nil {
		return 0, false, fmt.Errorf("%w: the server refuses the job: %s", errRefused, ack.Error.Description)
	}
	return ack.Seq, ack.Duplicate, nil
}

// errRefused says that the server answered, and stored nothing.
var errRefused = errors.New("refused")

// failed returns the error of a request that has no answer.
func (q *Queue) failed(a answer) error {
	switch {
	case a.Msg != nil && a.Header.Get(headerStatus) == "503":
		return q.unavailable(nats.ErrNoResponders)
	case a.err == nil:
		return nil
	case !a.sent:
		return q.unavailable(a.err)
	case q.leases.Ready(context.Background()) != nil:
		return pawl.ErrClosed
	}
	return fmt.Errorf("%w: no answer from %s: %w", pawl.ErrUnknownOutcome, q.address, a.err)
}

// message returns what stores a job: in its line, or until its time at a subject of its own. The part makes the
// message unique among those of the job.
func (q *Queue) message(e *pawl.Envelope, body []byte, part string) *nats.Msg {
	line := q.line(e.Queue, e.Kind)
	m := nats.NewMsg(q.opts.Prefix + ".job." + line)
	m.Data = body
	m.Header.Set(headerID, e.ID.String()+part)
	if e.State == pawl.Delayed {
		m.Subject = q.opts.Prefix + ".delayed." + line + "." + e.ID.String() + part
		at := e.NotBefore.UTC()
		if at.After(lastSchedule) {
			at = lastSchedule
		}
		m.Header.Set(headerSchedule, "@at "+at.Format(time.RFC3339Nano))
		m.Header.Set(headerTarget, q.opts.Prefix+".job."+line)
	}
	return m
}

// lastSchedule is the last time to which the server can delay a job: it counts nanoseconds in 64 bits, and stores a job
// of a later time at once.
var lastSchedule = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)

// names makes tokens of subjects.
var names = transport.Escaping{Mark: '=', Plain: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+"}

// line returns the part of a subject that names a queue and a kind.
func (q *Queue) line(queue, kind string) string {
	return names.Escape(queue) + "." + names.Escape(kind)
}

// maxLine is the longest line, since a line is also the name of a consumer.
const maxLine = 255
