package jetstream

import (
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// replies gives the answers of the server to the calls that wait for them. All calls share one subscription:
// the server would work longer on one for each call than on the call.
type replies struct {
	inbox string

	mu      sync.Mutex
	last    uint64 // call
	waiting map[uint64]chan reply
}

// reply is the answer to a request of a call.
type reply struct {
	request int
	msg     *nats.Msg
}

// open subscribes on a connection, which ends the subscription when it closes.
func (r *replies) open(nc *nats.Conn) error {
	r.inbox, r.waiting = nc.NewInbox(), make(map[uint64]chan reply)
	sub, err := nc.Subscribe(r.inbox+".*", r.deliver)
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(-1, -1) // the calls bound them
}

// begin returns a channel for the answers to so many requests, and the number of the call, which ends with end.
func (r *replies) begin(requests int) (call uint64, answers <-chan reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	ch := make(chan reply, requests)
	r.waiting[r.last] = ch
	return r.last, ch
}

func (r *replies) end(call uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, call)
}

// subject returns where the server sends the answer to a request of a call.
func (r *replies) subject(call uint64, request int) string {
	return r.inbox + "." + strconv.FormatUint(call, 10) + "-" + strconv.Itoa(request)
}

// deliver gives an answer to its call, unless that has ended.
func (r *replies) deliver(m *nats.Msg) {
	first, second, _ := strings.Cut(m.Subject[len(r.inbox)+1:], "-")
	call, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return
	}
	request, err := strconv.Atoi(second)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.waiting[call] <- reply{request, m}: // never, if the call has ended
	default:
	}
}
