package redis

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/vmihailenco/msgpack/v5"
)

// bell listens to the other processes of a queue. The script publishes which queues may have a job, and
// which leases have a cancelled job. A message may get lost with its connection, so the queue also polls.
type bell struct {
	q    *Queue
	sub  *redis.PubSub
	done chan struct{} // closed when no goroutine of the bell runs
}

// ring is a message.
type ring struct {
	From      string     `msgpack:"id"`
	Queues    []string   `msgpack:"q"`
	Cancelled [][]string `msgpack:"x"`
}

func openBell(q *Queue) *bell {
	b := &bell{q: q, sub: q.rdb.Subscribe(context.Background(), q.prefix+"bell"), done: make(chan struct{})}
	go b.listen()
	return b
}

func (b *bell) close() {
	if b != nil {
		_ = b.sub.Close() // which ends listen
		<-b.done
	}
}

// listen receives messages until the bell is closed. The client connects again when a connection breaks.
func (b *bell) listen() {
	defer close(b.done)
	for m := range b.sub.ChannelWithSubscriptions() {
		switch m := m.(type) {
		case *redis.Subscription: // this process may have missed messages
			b.q.intake.Note(news{})
		case *redis.Message:
			var r ring
			if err := msgpack.Unmarshal([]byte(m.Payload), &r); err != nil || r.From == b.q.process {
				continue // another build sent it, or this process
			}
			for _, pair := range r.Cancelled {
				if len(pair) == 2 {
					b.q.fire(pair[0], pair[1])
				}
			}
			if len(r.Queues) > 0 {
				b.q.intake.Note(news{})
			}
		}
	}
}
