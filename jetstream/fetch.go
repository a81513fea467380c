package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/transport"
)

const maxPull = 64 // messages of one request

// Fetch implements [pawl.Queue].
func (q *Queue) Fetch(ctx context.Context, r pawl.Request) ([]*pawl.Lease, error) {
	f := transport.Fetching{
		Name: "jetstream", Abilities: q.Abilities(), Ready: q.leases.Ready, Sources: q.wanted, Take: q.take, Await: q.await, Busy: q.busy,
	}
	return f.Fetch(ctx, r)
}

// wanted returns the lines that a request asks for.
func (q *Queue) wanted(ctx context.Context, r *pawl.Request) ([]transport.Source, error) {
	return transport.Sources(r, func(queue, kind string) string {
		line := q.line(queue, kind)
		if len(line) > maxLine {
			return "" // it has no jobs
		}
		return line
	}, func(queue string) (lines []string, err error) {
		job, delayed := q.opts.Prefix+".job.", q.opts.Prefix+".delayed."
		counts, err := q.subjects(ctx, q.stream, job+names.Escape(queue)+".*")
		for subject := range counts {
			lines = append(lines, strings.TrimPrefix(subject, job))
		}
		if err != nil || r.Wait != pawl.WaitFinished {
			return lines, err
		}
		counts, err = q.subjects(ctx, q.stream, delayed+names.Escape(queue)+".*.*")
		for subject := range counts {
			lines = append(lines, strings.TrimPrefix(subject[:strings.LastIndexByte(subject, '.')], delayed))
		}
		slices.Sort(lines)
		return slices.Compact(lines), err
	})
}

// subjects returns how many messages each subject of a stream has that matches a filter.
func (q *Queue) subjects(ctx context.Context, s jetstream.Stream, filter string) (map[string]uint64, error) {
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, driver.NotAccepted(ctx)
	case err != nil:
		return nil, q.unavailable(err)
	}
	return info.State.Subjects, nil
}

// busy reports whether some jobs are yet to come. A leased job is still in the stream.
func (q *Queue) busy(ctx context.Context, sources []transport.Source, delayed bool) (bool, error) {
	filters := []string{".job."}
	if delayed {
		// In this order: a job that falls due is in both, and then in the second. One that fails meanwhile is in both, and
		// then in the third.
		filters = []string{".delayed.", ".job.", ".delayed."}
	}
	for _, filter := range filters {
		for _, line := range transport.AllLines(sources) {
			subject := q.opts.Prefix + filter + line
			if filter == ".delayed." {
				subject += ".*"
			}
			counts, err := q.subjects(ctx, q.stream, subject)
			if err != nil {
				return false, err
			}
			if len(counts) > 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// consumer is the consumer of a line.
type consumer struct {
	name   string
	length time.Duration // of a lease
}

// consumerOf returns the consumer of a line, and creates it if nobody did.
func (q *Queue) consumerOf(ctx context.Context, line string) (*consumer, error) {
	q.mu.Lock()
	c := q.consumer[line]
	q.mu.Unlock()
	if c != nil {
		return c, nil
	}
	want := jetstream.ConsumerConfig{
		Durable: strings.Replace(line, ".", "~", 1), FilterSubject: q.opts.Prefix + ".job." + line,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.opts.Lease + margin, MaxDeliver: -1, MaxAckPending: -1,
	}
	found, err := q.stream.CreateConsumer(ctx, want)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		found, err = q.stream.Consumer(ctx, want.Durable)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, driver.NotAccepted(ctx)
	case err != nil:
		return nil, q.unavailable(fmt.Errorf("consumer %s: %w", want.Durable, err))
	}
	wait := found.CachedInfo().Config.AckWait
	c = &consumer{name: want.Durable, length: wait - margin}
	if c.length < minLease {
		return nil, invalid("consumer", "%s has an ack wait of %v, less than %v; raise it, or delete the consumer", c.name, wait, minLease+margin)
	}
	if c.length != q.opts.Lease {
		q.opts.Logger.Warn("the consumer has another length of leases", "consumer", c.name, "length", c.length, "wanted", q.opts.Lease)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.consumer[line] = c
	return c, nil
}

// forget makes the next fetch look for a consumer again.
func (q *Queue) forget(line string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.consumer, line)
}

// take leases jobs that are ready. The queues take turns by their weights, and the kinds of a queue one after the
// other.
func (q *Queue) take(ctx context.Context, most int, sources []transport.Source) ([]*pawl.Lease, error) {
	return q.turns.Take(most, sources, func(s transport.Source, n int) (leases []*pawl.Lease, dry bool, err error) {
		dry = true
		first := int(q.pulls.Add(1))
		for i := range s.Lines {
			asked := min(n-len(leases), maxPull)
			got, messages, err := q.pull(ctx, []string{s.Lines[(first+i)%len(s.Lines)]}, asked, 0)
			leases = append(leases, got...)
			if len(leases) == n || err != nil {
				return leases, false, err
			}
			dry = dry && messages < asked
		}
		return leases, dry, nil
	})
}

// await waits for a job of any line.
func (q *Queue) await(ctx context.Context, wait time.Duration, most int, sources []transport.Source) ([]*pawl.Lease, error) {
	lines := transport.AllLines(sources)
	if len(lines) == 0 { // no such line yet
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		case <-q.leases.Done():
		}
		return nil, nil
	}
	leases, _, err := q.pull(ctx, lines, 1, wait)
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
	if ctx.Err() != nil && len(leases) == 0 {
		return nil, nil // Fetch returns the error of the context
	}
	return leases, err
}

// pull asks each line for up to n jobs. Without a wait it returns what is there; otherwise it waits for the first
// job of any line. It also returns how many messages came, since a message that cannot be read is no lease.
func (q *Queue) pull(ctx context.Context, lines []string, n int, wait time.Duration) (leases []*pawl.Lease, messages int, err error) {
	byName := make(map[string]*consumer, len(lines))
	inbox := q.nc.NewInbox()
	lost := q.connection()
	sub, err := q.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, 0, q.unavailable(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = sub.SetPendingLimits(-1, -1)
	began := time.Now()
	for _, line := range lines {
		c, err := q.consumerOf(ctx, line)
		if err != nil {
			return nil, 0, err
		}
		byName[c.name] = c
		ask, _ := json.Marshal(pullRequest{Batch: n, NoWait: wait == 0, Expires: wait})
		if err := q.nc.PublishRequest(jetstream.DefaultAPIPrefix+"CONSUMER.MSG.NEXT."+q.stream.CachedInfo().Config.Name+"."+c.name, inbox, ask); err != nil {
			return nil, 0, q.unavailable(err)
		}
	}
	waits, cancel := context.WithTimeout(ctx, wait+q.opts.Timeout)
	defer cancel()
	stop := afterClose(lost, cancel)
	defer stop()
	got, open, err := q.collect(waits, sub, lines, n)
	if open > 0 && (wait > 0 || ctx.Err() != nil) {
		got = append(got, q.rest(sub)...)
	}
	switch {
	case len(got) > 0:
	case err != nil && ctx.Err() != nil:
		return nil, 0, driver.NotAccepted(ctx)
	default:
		return nil, 0, err
	}
	leases, err = q.deliver(ctx, got, byName, began, wait > 0)
	return leases, len(got), err
}

// pullRequest is what the server's API takes.
type pullRequest struct {
	Batch   int           `json:"batch"`
	NoWait  bool          `json:"no_wait,omitempty"`
	Expires time.Duration `json:"expires,omitempty"`
}

// collect returns messages: up to n, or those of a single line until the server says that there are no more. Open is how
// many requests the server has not ended.
func (q *Queue) collect(ctx context.Context, sub *nats.Subscription, lines []string, n int) (got []*nats.Msg, open int, err error) {
	for open = len(lines); len(got) < n && open > 0; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return got, open, q.unavailable(err)
		}
		switch status := m.Header.Get(headerStatus); status {
		case "":
			if got = append(got, m); len(got) == n {
				open-- // its own
			}
		case "404", "408":
			open--
		default:
			for _, line := range lines {
				q.forget(line)
			}
			return got, open, q.unavailable(fmt.Errorf("it ended a fetch: %s %s", status, m.Header.Get("Description")))
		}
	}
	return got, open, nil
}

// rest ends the requests of a subscription, and returns the messages that came meanwhile.
func (q *Queue) rest(sub *nats.Subscription) (got []*nats.Msg) {
	if sub.Drain() != nil || q.nc.FlushTimeout(q.opts.Timeout) != nil {
		return nil
	}
	for n, _, _ := sub.Pending(); n > 0; n-- { // all that the server sent is here
		m, err := sub.NextMsg(q.opts.Timeout)
		if err != nil {
			return got
		}
		if m.Header.Get(headerStatus) == "" {
			got = append(got, m)
		}
	}
	return got
}

// delivered is a message and the consumer that delivered it.
type delivered struct {
	msg      *nats.Msg
	stream   uint64 // its sequence
	consumer *consumer
}

// deliver makes leases of messages. A lease begins when the request began. If the request waited, the server began
// it at some later time; so deliver asks the server to begin it again.
func (q *Queue) deliver(ctx context.Context, got []*nats.Msg, byName map[string]*consumer, began time.Time, waited bool) ([]*pawl.Lease, error) {
	var deliveries []transport.Delivery[delivered]
	var renewals []*nats.Msg
	if waited {
		began = time.Now()
	}
	for _, m := range got {
		meta, err := m.Metadata()
		if err != nil {
			return nil, fmt.Errorf("%w: a message of the stream: %w", pawl.ErrCorrupt, err)
		}
		c := byName[meta.Consumer]
		deliveries = append(deliveries, transport.Delivery[delivered]{
			Message: delivered{m, meta.Sequence.Stream, c}, Body: m.Data, Seq: meta.Sequence.Stream,
			Crashes: int(meta.NumDelivered) - 1, Length: c.length,
		})
		if waited {
			renewals = append(renewals, &nats.Msg{Subject: m.Reply, Data: inProgress})
		}
	}
	for _, a := range q.exchange(renewals...) {
		if err := q.failed(a); err != nil {
			return nil, q.unavailable(err) // and the jobs come again when their leases expire
		}
	}
	return q.leases.Deliver(ctx, began, deliveries), nil
}

// afterClose calls fn when a channel is closed, unless stop was called.
func afterClose(ch <-chan struct{}, fn func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-ch:
			fn()
		case <-done:
		}
	}()
	return func() { close(done) }
}
