package jetstream

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

// What a consumer takes as an answer to a message.
var (
	ack        = []byte("+ACK")
	nak        = []byte("-NAK")
	inProgress = []byte("+WPI")
)

type settling = transport.Settling[delivered]

// finish ends leases. Every settlement but an ack stores the job as it becomes, and then acks the message. So a failure
// between the two doubles the job, and does not lose it. The ID of what it stores follows from the job and its
// message: a second settlement of the same message, by a later holder, stores nothing more.
func (q *Queue) finish(ctx context.Context, all []*settling) {
	var copies []*settling
	var requests []*nats.Msg
	for _, n := range all {
		if n.Outcome == pawl.OutcomeAck {
			continue
		}
		part := "-" + strconv.FormatUint(n.Grant.Message.stream, 10)
		m := q.message(n.Job, n.Body, part)
		if n.Outcome == pawl.OutcomeAbandon {
			m = q.deadMessage(n.Job, n.Body, part)
		}
		copies, requests = append(copies, n), append(requests, m)
	}
	for i, a := range q.exchange(requests...) {
		_, _, err := q.stored(a)
		copies[i].Err = err
		copies[i].Kept = errors.Is(err, errRefused) || errors.Is(err, ErrUnavailable) // nothing is stored
	}
	requests = nil
	var acks []*settling
	for _, n := range all {
		if n.Err == nil {
			acks = append(acks, n)
			requests = append(requests, &nats.Msg{Subject: n.Grant.Message.msg.Reply, Data: ack})
		}
	}
	for i, a := range q.exchange(requests...) {
		acks[i].Err = q.failed(a)
		acks[i].Kept = errors.Is(acks[i].Err, ErrUnavailable) ||
			acks[i].Outcome == pawl.OutcomeAck && errors.Is(acks[i].Err, pawl.ErrUnknownOutcome) // a second ack does no harm
	}
}

// deadMessage returns what stores a dead job.
func (q *Queue) deadMessage(e *pawl.Envelope, body []byte, part string) *nats.Msg {
	m := nats.NewMsg(q.opts.Prefix + ".dead." + q.line(e.Queue, e.Kind) + "." + e.ID.String() + part)
	m.Data = body
	m.Header.Set(headerID, e.ID.String()+part)
	return m
}

// renew renews leases at the server, which does not say that one is lost.
func (q *Queue) renew(_ context.Context, some []*transport.Grant[delivered]) []error {
	requests, errs := make([]*nats.Msg, len(some)), make([]error, len(some))
	for i, g := range some {
		requests[i] = &nats.Msg{Subject: g.Message.msg.Reply, Data: inProgress}
	}
	for i, a := range q.exchange(requests...) {
		errs[i] = q.failed(a)
	}
	return errs
}

// expired makes a job ready whose lease has expired in this process.
func (q *Queue) expired(g *transport.Grant[delivered], _ *pawl.Envelope) bool {
	_ = q.nc.Publish(g.Message.msg.Reply, nak) // otherwise the server does, later by the margin
	return true
}

// discard moves a message that cannot be read to the stream of dead jobs. Its subject has a token more than that of a
// dead job, so it does not keep Dead and RetryDead from the jobs behind it.
func (q *Queue) discard(d delivered, err error) {
	q.opts.Logger.Error("a message cannot be read; it is moved to the dead jobs", "sequence", d.stream, "subject", d.msg.Subject, "error", err)
	m := nats.NewMsg(q.opts.Prefix + ".dead." + d.msg.Subject[len(q.opts.Prefix+".job."):] + ".unreadable." + strconv.FormatUint(d.stream, 10))
	m.Data = d.msg.Data
	if _, _, err := q.stored(q.exchange(m)[0]); err != nil {
		q.opts.Logger.Error("cannot move a message; it comes again", "sequence", d.stream, "error", err)
		return
	}
	_ = q.exchange(&nats.Msg{Subject: d.msg.Reply, Data: ack})
}
