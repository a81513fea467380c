package servicebus

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/internal/transport"
)

type settling = transport.Settling[received]

// The names of properties of a message.
const (
	released = "pawl-released" // how many of its deliveries ended in a release
	deadJob  = "pawl-dead"     // the job as it died, without its payload
)

// maxAtOnce is how many leases a call settles at a time.
const maxAtOnce = 64

// each calls fn for each of some, several at a time.
func each[T any](some []T, fn func(i int, one T)) {
	var calls sync.WaitGroup
	slots := make(chan struct{}, maxAtOnce)
	for i, one := range some {
		slots <- struct{}{}
		calls.Go(func() {
			fn(i, one)
			<-slots
		})
	}
	calls.Wait()
}

// finish ends leases.
func (q *Queue) finish(_ context.Context, all []*settling) {
	each(all, func(_ int, n *settling) { q.finishOne(n) })
}

// finishOne ends a lease. What the service can change in one step is one: ack, release, and abandon. Otherwise it stores
// a copy, and then completes the message. So a failure between the two doubles the job, and does not lose it. Before
// that, a renewal proves that the lease still holds.
func (q *Queue) finishOne(n *settling) {
	m := n.Grant.Message
	switch {
	case n.Outcome == pawl.OutcomeAck:
		n.Err = q.complete(m)
	case n.Outcome == pawl.OutcomeAbandon:
		n.Err = q.kill(n)
	case !n.Changed && n.Job.State == pawl.Ready:
		n.Err = q.settleOn(m, func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error {
			return r.AbandonMessage(ctx, msg, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{released: m.released + 1}})
		})
	default:
		if n.Err = q.renewOne(m); n.Err != nil {
			break
		}
		n.Err = q.send(n.Job, n.Body, n.Job.ID.String()+"-"+strconv.FormatInt(m.seq, 10))
		if n.Kept = n.Err != nil && !errors.Is(n.Err, pawl.ErrUnknownOutcome); n.Err == nil {
			n.Err = q.complete(m)
		}
		return
	}
	// A lock token works once, so a second settlement finds out what became of an unknown outcome.
	n.Kept = errors.Is(n.Err, ErrUnavailable) || errors.Is(n.Err, errRefused) || errors.Is(n.Err, pawl.ErrUnknownOutcome)
}

// complete removes a message.
func (q *Queue) complete(m received) error {
	return q.settleOn(m, func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error {
		return r.CompleteMessage(ctx, msg, nil)
	})
}

// kill moves a message to the dead-letter queue of its Service Bus queue, with what the job has become.
func (q *Queue) kill(n *settling) error {
	reason, cause := description(string(n.Job.Death.Reason)), description(n.Event.Cause)
	properties := map[string]any{}
	if body := transport.AppendBody(n.Job, n.History, maxProperty); len(body) <= maxProperty {
		properties[deadJob] = body
	}
	return q.settleOn(n.Grant.Message, func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error {
		return r.DeadLetterMessage(ctx, msg, &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &cause, PropertiesToModify: properties})
	})
}

// The service takes 64 KiB of properties, and descriptions of 4096 characters.
const (
	maxProperty    = 32 << 10
	maxDescription = 4 << 10
)

// description returns a text as a message takes it. A client that is given another one ends its connection.
func description(text string) string {
	return ellipsis.Truncate(strings.ToValidUTF8(text, "\uFFFD"), maxDescription)
}

// settleOn ends the lease of a message by fn. If the connection breaks, it tries once more over another one: a lock token
// works once, so a second success says that the first failed.
func (q *Queue) settleOn(m received, fn func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error) error {
	err := q.settleOnce(m, fn)
	if (errors.Is(err, pawl.ErrUnknownOutcome) || errors.Is(err, ErrUnavailable)) && q.settleOnce(m, fn) == nil {
		return nil
	}
	return err
}

// settleOnce uses the link that delivered the message, or the lock token alone if that connection has ended.
func (q *Queue) settleOnce(m received, fn func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error) error {
	c, r, msg, err := q.holder(m)
	if err != nil {
		return err
	}
	ctx, cancel := q.call(c)
	defer cancel()
	return q.failed(c, m.line, true, fn(ctx, r, msg))
}

// holder returns the receiver that can change the lease of a message, and what names the message there.
func (q *Queue) holder(m received) (*conn, *receiver, *azservicebus.ReceivedMessage, error) {
	c, r, err := q.receiver(m.line)
	if err != nil || c == m.conn {
		return c, r, m.msg, err
	}
	return c, r, &azservicebus.ReceivedMessage{LockToken: m.msg.LockToken}, nil
}

// renewOne renews the lease of a message at the service.
func (q *Queue) renewOne(m received) error {
	c, r, msg, err := q.holder(m)
	if err != nil {
		return err
	}
	own := *msg // the client notes the time in it
	ctx, cancel := q.call(c)
	defer cancel()
	return q.failed(c, m.line, false, r.RenewMessageLock(ctx, &own, nil))
}

// renew renews leases at the service.
func (q *Queue) renew(_ context.Context, some []*transport.Grant[received]) []error {
	errs := make([]error, len(some))
	each(some, func(i int, g *transport.Grant[received]) {
		err := q.renewOne(g.Message)
		if errors.Is(err, ErrUnavailable) { // the connection has ended, and not the lock
			err = q.renewOne(g.Message)
		}
		if errors.Is(err, errRefused) {
			err = pawl.ErrLeaseLost
		}
		errs[i] = err
	})
	return errs
}

// expired makes a job ready whose lease has expired in this process.
func (q *Queue) expired(g *transport.Grant[received], _ *pawl.Envelope) bool {
	// Otherwise the service does, later by the margin.
	_ = q.settleOn(g.Message, func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error {
		return r.AbandonMessage(ctx, msg, nil)
	})
	return true
}

// discard moves a message that cannot be read to the dead-letter queue, where Dead and RetryDead pass it over.
func (q *Queue) discard(m received, err error) {
	q.opts.Logger.Error("a message cannot be read; it is moved to the dead-letter queue", "sequence", m.seq, "queue", m.line, "error", err)
	reason, cause := "unreadable", description(err.Error())
	err = q.settleOn(m, func(ctx context.Context, r *receiver, msg *azservicebus.ReceivedMessage) error {
		return r.DeadLetterMessage(ctx, msg, &azservicebus.DeadLetterOptions{Reason: &reason, ErrorDescription: &cause})
	})
	if err != nil {
		q.opts.Logger.Error("cannot move a message; it comes again", "sequence", m.seq, "queue", m.line, "error", err)
	}
}
