package servicebus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"

	"github.com/gopawl/pawl"
)

// conn is a connection with its senders and receivers. The client would connect again by itself, but only after it has
// tried a call again, which may store a message twice. So a queue leaves a broken connection and takes a new one.
type conn struct {
	client *azservicebus.Client
	ctx    context.Context // ends with the connection
	end    context.CancelFunc

	mu        sync.Mutex
	senders   map[string]*azservicebus.Sender
	receivers map[string]*receiver
}

// receiver receives from a Service Bus queue.
type receiver struct {
	*azservicebus.Receiver
	busy      chan struct{} // has room for the caller that receives
	connected bool          // only that caller looks
}

// deadQueue follows the name of a line in the name of the receiver of its dead jobs.
const deadQueue = "/$DeadLetterQueue"

// connection returns the present connection, or a new one.
func (q *Queue) connection() (*conn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, pawl.ErrClosed
	case q.conn != nil:
		return q.conn, nil
	}
	client, err := q.dial()
	if err != nil {
		return nil, q.unavailable(err)
	}
	c := &conn{client: client, senders: make(map[string]*azservicebus.Sender), receivers: make(map[string]*receiver)}
	c.ctx, c.end = context.WithCancel(context.Background())
	q.conn = c
	return c, nil
}

// leave ends a connection.
func (q *Queue) leave(c *conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c == nil || q.conn != c {
		return
	}
	q.conn = nil
	c.end()
	q.ending.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), q.opts.Timeout)
		defer cancel()
		_ = c.client.Close(ctx)
	})
}

// call is the context of a call on a connection, which does not end with that of its caller.
func (q *Queue) call(c *conn) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, q.opts.Timeout)
}

// sender returns the sender to a line, which is connected. An error says that nothing was sent.
func (q *Queue) sender(line string) (*conn, *azservicebus.Sender, error) {
	c, err := q.connection()
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	s := c.senders[line]
	if s == nil {
		if s, err = c.client.NewSender(line, nil); err == nil {
			c.senders[line] = s
		}
	}
	c.mu.Unlock()
	if err == nil {
		ctx, cancel := q.call(c)
		defer cancel()
		_, err = s.NewMessageBatch(ctx, nil) // which opens the links
	}
	if err != nil {
		return nil, nil, q.failed(c, line, false, err)
	}
	return c, s, nil
}

// receiver returns the receiver of a line.
func (q *Queue) receiver(line string) (*conn, *receiver, error) {
	c, err := q.connection()
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.receivers[line]
	if r == nil {
		name, options := line, (*azservicebus.ReceiverOptions)(nil)
		if of, dead := strings.CutSuffix(line, deadQueue); dead {
			name, options = of, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}
		}
		of, err := c.client.NewReceiverForQueue(name, options)
		if err != nil {
			return nil, nil, q.failed(c, line, false, err)
		}
		r = &receiver{Receiver: of, busy: make(chan struct{}, 1)}
		c.receivers[line] = r
	}
	return c, r, nil
}

// errRefused says that the service answered, and changed nothing.
var errRefused = errors.New("refused")

// failed returns the error of a call on a connection, which ends if it is broken. Sent says that the service may have
// got the call.
func (q *Queue) failed(c *conn, line string, sent bool, err error) error {
	var service *azservicebus.Error
	errors.As(err, &service)
	var answer *amqp.Error
	errors.As(err, &answer)
	switch {
	case err == nil:
		return nil
	case service != nil && service.Code == azservicebus.CodeLockLost:
		return pawl.ErrLeaseLost
	case service != nil && service.Code == azservicebus.CodeNotFound || answer != nil && answer.Condition == amqp.ErrCondNotFound:
		q.leave(c) // it does not look for the queue again
		return fmt.Errorf("%w: %s has no queue %q; create it: %s", ErrUnavailable, q.address, line, q.text(err))
	case service != nil && service.Code == azservicebus.CodeUnauthorizedAccess:
		q.leave(c)
		return q.unavailable(err)
	case errors.Is(err, azservicebus.ErrMessageTooLarge):
		return fmt.Errorf("%w: the service takes less than Options.MaxMessage, %d bytes", pawl.ErrPayloadTooLarge, q.opts.MaxMessage)
	case answer != nil && !broken(err):
		return fmt.Errorf("%w: the service refuses the job: %s", errRefused, q.text(err))
	}
	q.leave(c)
	switch {
	case !sent:
		return q.unavailable(err)
	case q.leases.Ready(context.Background()) != nil:
		return pawl.ErrClosed
	}
	return fmt.Errorf("%w: no answer from %s: %s", pawl.ErrUnknownOutcome, q.address, q.text(err))
}

// broken reports whether an error is that of a link, a session, or a connection.
func broken(err error) bool {
	var link *amqp.LinkError
	var session *amqp.SessionError
	var conn *amqp.ConnError
	return errors.As(err, &link) || errors.As(err, &session) || errors.As(err, &conn)
}

// unavailable returns the error for one of the network or the service.
func (q *Queue) unavailable(err error) error {
	if q.leases.Ready(context.Background()) != nil {
		return pawl.ErrClosed
	}
	return fmt.Errorf("%w: %s: %s", ErrUnavailable, q.address, q.text(err))
}

// text returns the text of an error without the secret.
func (q *Queue) text(err error) string {
	if q.secret == "" {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), q.secret, "...")
}
