package servicebus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/transport"
)

const (
	probe    = 50 * time.Millisecond // in which the service delivers what is ready
	proof    = time.Second           // for a fetch that must not miss a job, and does not wait
	together = time.Millisecond      // between the messages of a fetch
	page     = 256                   // messages of one look
)

// Fetch implements [pawl.Queue]. A request has to name its kinds, since the protocol does not list queues.
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	f := transport.Fetching{
		Name: "servicebus", Abilities: abilities, Ready: q.leases.Ready, Sources: q.wanted, Await: q.await, Busy: q.busy,
	}
	f.Take = func(ctx context.Context, most int, sources []transport.Source) ([]*pawl.Lease, error) {
		return q.take(ctx, most, sources, r.Wait == pawl.WaitNot)
	}
	return f.Fetch(ctx, r)
}

// wanted returns the lines that a request asks for.
func (q *Queue) wanted(_ context.Context, r *pawl.Request) ([]transport.Source, error) {
	if r.Kinds == nil {
		return nil, fmt.Errorf("servicebus: %w: a fetch of every kind; name the kinds", pawl.ErrUnsupported)
	}
	return transport.Sources(r, q.line, nil)
}

// take leases jobs that are ready. The queues take turns by their weights, and the kinds of a queue one after the
// other.
func (q *Queue) take(ctx context.Context, most int, sources []transport.Source, sure bool) ([]*pawl.Lease, error) {
	from := q.ready
	if sure {
		from = q.allReady
	}
	return q.turns.Take(most, sources, func(s transport.Source, n int) (leases []*pawl.Lease, dry bool, err error) {
		dry = true
		first := int(q.pulls.Add(1))
		for i := range s.Lines {
			got, ended, err := from(ctx, s.Lines[(first+i)%len(s.Lines)], n-len(leases))
			leases = append(leases, got...)
			if len(leases) == n || err != nil {
				return leases, false, err
			}
			dry = dry && ended
		}
		return leases, dry, nil
	})
}

// ready leases up to n jobs of a line, as many as the service delivers at once. It takes a line that delivers fewer for dry.
func (q *Queue) ready(ctx context.Context, line string, n int) (leases []*pawl.Lease, dry bool, err error) {
	leases, messages, err := q.receive(ctx, line, n, probe)
	return leases, messages < n, err
}

// allReady leases n jobs of a line, or all that are ready. The service does not say that a line is empty, and may deliver
// in parts. So allReady looks into the line.
func (q *Queue) allReady(ctx context.Context, line string, n int) (leases []*pawl.Lease, dry bool, err error) {
	for wait := probe; len(leases) < n; {
		got, messages, err := q.receive(ctx, line, n-len(leases), wait)
		leases = append(leases, got...)
		switch {
		case err != nil:
			return leases, false, err
		case messages > 0:
			wait = probe
		case wait == proof:
			return leases, true, nil
		default:
			if has, err := q.has(ctx, line, false); !has || err != nil {
				return leases, err == nil, err
			}
			wait = proof
		}
	}
	return leases, false, nil
}

// await waits for a job of any line.
func (q *Queue) await(ctx context.Context, wait time.Duration, most int, sources []transport.Source) ([]*pawl.Lease, error) {
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var leases []*pawl.Lease
	var failure error
	var lines sync.WaitGroup
	for _, line := range transport.AllLines(sources) {
		lines.Go(func() {
			got, messages, err := q.receive(waits, line, 1, wait)
			if messages > 0 || err != nil {
				cancel()
			}
			mu.Lock()
			defer mu.Unlock()
			if leases = append(leases, got...); err != nil && failure == nil {
				failure = err
			}
		})
	}
	lines.Wait()
	if len(leases) > most {
		var extra []pawl.Settlement
		for _, l := range leases[most:] {
			extra = append(extra, l.Release())
		}
		leases = leases[:most]
		if err := q.Settle(context.WithoutCancel(ctx), extra...); err != nil {
			q.opts.Logger.Error("cannot release a job; it comes again when its lease expires", "error", err)
		}
	}
	switch {
	case len(leases) > 0:
		return leases, nil
	case ctx.Err() != nil:
		return nil, nil // Fetch returns the error of the context
	}
	return nil, failure
}

// received is a message and the connection that delivered it.
type received struct {
	msg      *azservicebus.ReceivedMessage
	conn     *conn
	line     string
	seq      int64
	released int64
}

// newReceived returns messages with what settles them.
func newReceived(c *conn, line string, got []*azservicebus.ReceivedMessage) (all []received) {
	for _, m := range got {
		d := received{msg: m, conn: c, line: line}
		d.released, _ = m.ApplicationProperties[released].(int64)
		if m.SequenceNumber != nil {
			d.seq = *m.SequenceNumber
		}
		all = append(all, d)
	}
	return all
}

// receive waits for messages of a line, and leases up to n. It returns at once when some are there. It also returns how
// many messages came, since a message that cannot be read is no lease.
func (q *Queue) receive(ctx context.Context, line string, n int, wait time.Duration) (leases []*pawl.Lease, messages int, err error) {
	got, began, err := q.receiveMessages(ctx, line, n, wait)
	if len(got) == 0 {
		return nil, 0, err
	}
	var deliveries []transport.Delivery[received]
	for _, m := range got {
		q.checkLock(m, began)
		deliveries = append(deliveries, transport.Delivery[received]{
			Message: m, Body: m.msg.Body, Seq: uint64(m.seq), Crashes: max(0, int(int64(m.msg.DeliveryCount)-1-m.released)), Length: q.lease,
		})
	}
	return q.leases.Deliver(ctx, began, deliveries), len(got), nil
}

// receiveMessages is receive without leases. No message was delivered before the time that it returns.
func (q *Queue) receiveMessages(ctx context.Context, line string, n int, wait time.Duration) (_ []received, began time.Time, err error) {
	c, r, err := q.receiver(line)
	if err != nil {
		return nil, began, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return nil, began, q.ended(c)
	}
	if err := q.connect(c, r, line); err != nil {
		return nil, began, err
	}
	for until := time.Now().Add(wait); ; {
		began = time.Now()
		waits, cancel := context.WithTimeout(ctx, max(0, min(until.Sub(began), q.lease/6)))
		got, err := r.ReceiveMessages(waits, n, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: together})
		ended := waits.Err() != nil
		cancel()
		switch {
		case len(got) > 0:
			return newReceived(c, line, got), began, nil
		case !ended:
			return nil, began, q.failed(c, line, false, fmt.Errorf("the service ended a fetch: %w", err))
		case ctx.Err() != nil:
			return nil, began, q.ended(c)
		case !time.Now().Before(until):
			return nil, began, nil
		}
	}
}

// connect opens the links of a receiver, by a look, which no caller ends halfway.
func (q *Queue) connect(c *conn, r *receiver, line string) error {
	if r.connected {
		return nil
	}
	ctx, cancel := q.call(c)
	defer cancel()
	_, err := r.PeekMessages(ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: new(int64)})
	r.connected = err == nil
	return q.failed(c, line, false, err)
}

// ended returns the error of a fetch that ended with its connection, and none if only its own context has ended.
func (q *Queue) ended(c *conn) error {
	if c.ctx.Err() == nil {
		return nil
	}
	return q.unavailable(errors.New("the connection ended"))
}

// checkLock logs once that a Service Bus queue locks for less than the options say.
func (q *Queue) checkLock(m received, began time.Time) {
	if m.msg.LockedUntil == nil {
		return
	}
	// The clocks of both sides may differ, so only a large difference counts.
	if locked := m.msg.LockedUntil.Sub(began); locked < q.opts.Lock/2 && q.warned.CompareAndSwap(false, true) {
		q.opts.Logger.Warn("the Service Bus queue locks for less than Options.Lock, or the clock of this machine is wrong",
			"queue", m.line, "locked", locked.Round(time.Second), "wanted", q.opts.Lock)
	}
}

// busy reports whether some jobs are yet to come. The service shows leased messages too.
func (q *Queue) busy(ctx context.Context, sources []transport.Source, delayed bool) (bool, error) {
	for _, line := range transport.AllLines(sources) {
		if has, err := q.has(ctx, line, delayed); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// has reports whether a line has a ready or leased job, or a delayed one if those count.
func (q *Queue) has(ctx context.Context, line string, delayed bool) (found bool, err error) {
	err = q.look(ctx, line, func(m *azservicebus.ReceivedMessage) bool {
		found = delayed || m.State != azservicebus.MessageStateScheduled
		return !found
	})
	return found, err
}

// look calls fn for each message of a line, the oldest first, until it returns false.
func (q *Queue) look(ctx context.Context, line string, fn func(m *azservicebus.ReceivedMessage) bool) error {
	c, r, err := q.receiver(line)
	if err != nil {
		return err
	}
	for next := int64(0); ; {
		if err := q.leases.Ready(ctx); err != nil {
			return err
		}
		call, cancel := q.call(c)
		got, err := r.PeekMessages(call, page, &azservicebus.PeekMessagesOptions{FromSequenceNumber: &next})
		cancel()
		if err != nil {
			return q.failed(c, line, false, err)
		}
		if len(got) == 0 {
			return nil
		}
		for _, m := range got {
			if !fn(m) {
				return nil
			}
			if m.SequenceNumber != nil {
				next = *m.SequenceNumber + 1
			}
		}
	}
}
