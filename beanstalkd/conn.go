package beanstalkd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"slices"
	"strconv"
	"sync"
	"time"
)

// conn is a connection. Several goroutines may have requests under way on it: the server answers
// them in their order.
type conn struct {
	nc      net.Conn
	timeout time.Duration
	in      *bufio.Reader
	order   textproto.Pipeline
	using   string // the tube that puts go to; belongs to who sends

	// Belong to the fetch that has the connection.
	watched map[string]bool

	// Guarded by the mutex of the queue.
	reserved map[uint64]*reservation // by the number of the job
	busy     int                     // calls that extend leases on it

	mu  sync.Mutex
	err error // why it is broken
}

func dial(ctx context.Context, network, address string, timeout time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{nc: nc, timeout: timeout, in: bufio.NewReaderSize(nc, 32<<10), using: "default",
		watched: map[string]bool{"default": true}, reserved: make(map[uint64]*reservation)}, nil
}

// fail notes why the connection is broken, and closes it. The server releases its reservations.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		_ = c.nc.Close()
	}
}

// broken returns why the connection is broken, nil if it is not.
func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// request is a part of a pipeline: the bytes to send, and a function that reads the answer.
type request struct {
	send func(b []byte) []byte
	read func(in *bufio.Reader) error // its error means that the connection is beyond use
}

// maxPipeline is how many requests are sent before their answers are read. The server reads no more
// while an answer does not fit into the buffers.
const maxPipeline = 128

// exchange sends requests and reads their answers. Each answer may take as long as wait. Sent is
// false if the server got nothing. An error leaves the connection broken.
func (c *conn) exchange(wait time.Duration, requests ...request) (sent bool, err error) {
	for some := range slices.Chunk(requests, maxPipeline) {
		now, err := c.pipeline(wait, some)
		sent = sent || now
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// pipeline is exchange for requests that are sent at once.
func (c *conn) pipeline(wait time.Duration, requests []request) (sent bool, err error) {
	id := c.order.Next()
	c.order.StartRequest(id)
	if err = c.broken(); err == nil {
		var b []byte
		for _, r := range requests {
			b = r.send(b)
		}
		sent = true
		_ = c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
		if _, err = c.nc.Write(b); err != nil {
			c.fail(err)
			err = c.broken()
		}
	}
	c.order.EndRequest(id)
	c.order.StartResponse(id)
	defer c.order.EndResponse(id)
	if err != nil {
		return sent, err
	}
	if err = c.broken(); err != nil {
		return sent, err
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(c.timeout + wait))
	for _, r := range requests {
		if err = r.read(c.in); err != nil {
			c.fail(err)
			return sent, c.broken() // which is why it was closed, if somebody closed it
		}
	}
	return sent, nil
}

// maxLine is more than the longest line of an answer.
const maxLine = 1 << 10

// readLine reads a line without its end.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 || len(line) > maxLine {
		return nil, fmt.Errorf("an answer of %d bytes is not of beanstalkd", len(line))
	}
	return line, nil
}

// readBody reads a body of n bytes and the end of its line.
func readBody(in *bufio.Reader, n uint64) ([]byte, error) {
	if n > 1<<30 {
		return nil, fmt.Errorf("a body of %d bytes is not of beanstalkd", n)
	}
	b := make([]byte, n+2)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, err
	}
	if b[n] != '\r' || b[n+1] != '\n' {
		return nil, errors.New("a body has another length than the server said")
	}
	return b[:n:n], nil
}

// command is a request whose answer is one line, which it keeps in answer.
func command(answer *string, format string, args ...any) request {
	return request{
		send: func(b []byte) []byte { return append(fmt.Appendf(b, format, args...), '\r', '\n') },
		read: func(in *bufio.Reader) error {
			line, err := readLine(in)
			*answer = string(line)
			return err
		},
	}
}

// found is what an answer with a body says.
type found struct {
	answer string // its first word
	number uint64 // of a job
	body   []byte
}

// lookUp is a request whose answer has a body if its first word is OK, FOUND, or RESERVED.
func lookUp(f *found, format string, args ...any) request {
	r := command(new(string), format, args...)
	r.read = func(in *bufio.Reader) error {
		line, err := readLine(in)
		if err != nil {
			return err
		}
		words := bytes.Fields(line)
		if len(words) == 0 {
			return errors.New("an answer has no word")
		}
		f.answer = string(words[0])
		switch {
		case f.answer == "OK" && len(words) == 2:
		case (f.answer == "FOUND" || f.answer == "RESERVED") && len(words) == 3:
			if f.number, err = strconv.ParseUint(string(words[1]), 10, 64); err != nil {
				return fmt.Errorf("the number of a job: %w", err)
			}
		default:
			return nil
		}
		n, err := strconv.ParseUint(string(words[len(words)-1]), 10, 64)
		if err != nil {
			return fmt.Errorf("the length of a body: %w", err)
		}
		f.body, err = readBody(in, n)
		return err
	}
	return r
}

// put is a request that stores a job.
func (c *conn) put(p *placed, tube string, priority, delay, ttr uint32, body []byte) request {
	uses := false
	return request{
		send: func(b []byte) []byte {
			if uses = c.using != tube; uses {
				b = fmt.Appendf(b, "use %s\r\n", tube)
				c.using = tube
			}
			b = fmt.Appendf(b, "put %d %d %d %d\r\n", priority, delay, ttr, len(body))
			return append(append(b, body...), '\r', '\n')
		},
		read: func(in *bufio.Reader) error {
			if uses {
				if line, err := readLine(in); err != nil {
					return err
				} else if !bytes.HasPrefix(line, []byte("USING ")) {
					return fmt.Errorf("the server answered %q to the name of a tube", line)
				}
			}
			line, err := readLine(in)
			if err != nil {
				return err
			}
			if number, ok := bytes.CutPrefix(line, []byte("INSERTED ")); ok {
				p.number, err = strconv.ParseUint(string(number), 10, 64)
				return err
			}
			p.refused = fmt.Errorf("the server refuses the job: %s", line)
			if bytes.HasPrefix(line, []byte("EXPECTED_CRLF")) {
				return p.refused
			}
			return nil
		},
	}
}

// placed is what became of a put.
type placed struct {
	number  uint64
	refused error
}

// figures reads what the server says of itself, a tube, or a job: lines of a name and a value.
func figures(body []byte) map[string]string {
	all := make(map[string]string)
	for line := range bytes.Lines(body) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok {
			all[string(name)] = string(bytes.Trim(value, " \"\r\n"))
		}
	}
	return all
}

func figure(all map[string]string, name string) int {
	n, err := strconv.ParseInt(all[name], 10, 64)
	if err != nil {
		return 0
	}
	return int(n)
}
