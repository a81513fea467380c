package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// doorbell notifies the other processes of a queue when this process has committed, and listens for their
// notifications. It has its own connection, because a NOTIFY within a transaction of the scheduler would block other
// commits on the whole server until its own commit is synced. After a message, the next one waits for 5 ms, so a
// busy process sends about 200 messages a second at most. A message may get lost with its connection, so the queue
// also polls.
type doorbell struct {
	q      *Queue
	name   string // the name of this process in its messages
	cancel context.CancelFunc
	done   chan struct{} // closed when no goroutine of the doorbell runs

	mu       sync.Mutex
	others   bool // another process listens, or did so before
	news     news // news to send to the other processes
	received news // news that the scheduler has not taken yet
	ring     context.CancelFunc
}

// news are changes of which a process notifies the others.
type news struct {
	hello     bool            // the others missed earlier news
	any       bool            // any queue may have a job
	queues    map[string]bool // queues that may have a job
	cancelled []cancelled
	ended     []pawl.ID // jobs that calls may wait for
}

// cancelled is a lease whose job was cancelled.
type cancelled struct {
	ID    pawl.ID
	Token int64
}

// message is the payload of a notification.
type message struct {
	From      string
	Hello     bool        `json:",omitempty"` // the sender has begun to listen, and the others may have missed its earlier changes
	Any       bool        `json:",omitempty"`
	Queues    [][]byte    `json:",omitempty"`
	Cancelled []cancelled `json:",omitempty"`
	Ended     []pawl.ID   `json:",omitempty"`
}

const (
	pauseBetween  = 5 * time.Millisecond // between two messages of a process
	mostQueues    = 10                   // per message, which has at most 8000 bytes
	mostCancelled = 50
	mostEnded     = 150
	mostWaiting   = 20_000           // ended jobs that wait to be sent
	mostRetry     = 30 * time.Second // pause between two tries to connect
)

// ready records that a queue may have a job for a waiting fetch.
func (n *news) ready(queue string) {
	if n.queues == nil {
		n.queues = make(map[string]bool)
	}
	n.queues[queue] = true
}

func (n *news) add(more news) {
	n.hello, n.any = n.hello || more.hello, n.any || more.any
	for queue := range more.queues {
		n.ready(queue)
	}
	n.cancelled = append(n.cancelled, more.cancelled...)
	if n.ended = append(n.ended, more.ended...); len(n.ended) > mostWaiting {
		n.ended = nil // the connection is lost; the other processes look again when it is back
	}
}

func (n *news) isEmpty() bool {
	return !n.hello && !n.any && len(n.queues)+len(n.cancelled)+len(n.ended) == 0
}

// messages returns the messages that carry the news.
func (n *news) messages(from string) (all []message) {
	first := message{From: from, Hello: n.hello, Any: n.any || len(n.queues) > mostQueues}
	if !first.Any {
		for queue := range n.queues {
			first.Queues = append(first.Queues, []byte(queue))
		}
	}
	if first.Hello || first.Any || len(first.Queues) > 0 {
		all = append(all, first)
	}
	for left := n.cancelled; len(left) > 0; {
		some := min(len(left), mostCancelled)
		all = append(all, message{From: from, Cancelled: left[:some]})
		left = left[some:]
	}
	for some := range slices.Chunk(n.ended, mostEnded) {
		all = append(all, message{From: from, Ended: some})
	}
	return all
}

// openDoorbell opens the doorbell of a queue. It returns nil for a queue that does not listen.
func openDoorbell(q *Queue) *doorbell {
	if q.opts.Poll == NoPoll || q.opts.NoListen {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &doorbell{q: q, name: fmt.Sprintf("%016x", rand.Uint64()), cancel: cancel, done: make(chan struct{}), ring: func() {}}
	go b.run(ctx)
	return b
}

func (b *doorbell) close() {
	if b != nil {
		b.cancel()
		<-b.done
	}
}

// announce leaves news to be sent to the other processes, if there are any. The holder of a cancelled lease is such
// a process.
func (b *doorbell) announce(n news) {
	if b == nil || n.isEmpty() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.others || len(n.cancelled) > 0 {
		b.news.add(n)
		b.ring()
	}
}

// take returns the news of the other processes since the last call.
func (b *doorbell) take() (received news) {
	if b == nil {
		return received
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	received, b.received = b.received, news{}
	return received
}

// run notifies and listens until the context ends. It connects again when a connection breaks.
func (b *doorbell) run(ctx context.Context) {
	defer close(b.done)
	wait, logged := pauseBetween, false
	for {
		began := time.Now()
		err := b.session(ctx)
		if time.Since(began) > mostRetry {
			wait, logged = pauseBetween, false
		}
		if wait = min(2*wait, mostRetry); wait > time.Second && !logged && ctx.Err() == nil {
			logged = true
			b.q.opts.Logger.Warn("no notifications from other processes; the queue polls", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// session notifies and listens until the connection breaks.
func (b *doorbell) session(ctx context.Context) error {
	conn, err := b.q.dial(ctx)
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_ = conn.Close(last) // the server notices by itself
		<-conn.PgConn().CleanupDone()
	}()
	channel := "pawl_" + b.q.opts.Schema
	if _, err := conn.Exec(ctx, keepAlive+"; SET synchronous_commit = off; LISTEN "+channel); err != nil {
		return err
	}
	messages := []message{{From: b.name, Hello: true}}
	b.hear(message{Any: true}) // this process may have missed messages
	var notBefore time.Time
	for {
		for _, m := range messages {
			payload, err := json.Marshal(m)
			if err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, "SELECT pg_notify($1, $2)", channel, string(payload)); err != nil {
				return err
			}
			notBefore = time.Now().Add(pauseBetween)
		}
		var wait context.Context
		var stop context.CancelFunc
		if messages, wait, stop = b.next(ctx, notBefore); len(messages) > 0 {
			continue
		}
		n, err := conn.WaitForNotification(wait)
		switch stop(); {
		case err == nil:
			var m message
			if json.Unmarshal([]byte(n.Payload), &m) == nil { // otherwise another build sent it
				b.hear(m)
			}
		case ctx.Err() != nil || conn.IsClosed():
			return err
		}
	}
}

// next returns what to send now, or a context that ends when there is something to send.
func (b *doorbell) next(ctx context.Context, notBefore time.Time) (messages []message, wait context.Context, stop context.CancelFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.news.isEmpty():
		wait, stop = context.WithCancel(ctx)
		b.ring = stop
	case time.Now().Before(notBefore):
		wait, stop = context.WithDeadline(ctx, notBefore)
	default:
		messages, b.news = b.news.messages(b.name), news{}
	}
	return messages, wait, stop
}

// hear leaves a message for the scheduler, and wakes it.
func (b *doorbell) hear(m message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.From == b.name {
		return
	}
	if m.From != "" && !b.others {
		b.others, b.news.hello = true, true // earlier changes were not announced
	}
	if m.Hello { // the sender missed earlier messages, and this process may have missed its commits
		b.news.any, m.Any = true, true
	}
	b.received.any = b.received.any || m.Any
	b.q.waiters.Look(m.Ended...)
	if m.Hello || m.From == "" { // this process missed some messages
		b.q.waiters.LookAll()
	}
	for _, queue := range m.Queues {
		b.received.ready(string(queue))
	}
	b.received.cancelled = append(b.received.cancelled, m.Cancelled...)
	b.q.intake.Wake()
}

// catchUp acts on the news of other processes. It reports whether a waiting fetch may find a job.
func (q *Queue) catchUp() (may bool) {
	got := q.bell.take()
	for _, c := range got.cancelled {
		if h := q.held[c.ID]; h != nil && h.token == c.Token {
			h.signal.Fire()
		}
	}
	for _, f := range q.waiting {
		if got.any || slices.ContainsFunc(f.Queues, func(queue string) bool { return got.queues[queue] || q.isBeside(queue, got.queues) }) {
			q.stirred = true
			return true
		}
	}
	return false
}
