package servicebus_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the stand-in and its client in virtual time say to each other.
const (
	opDone byte = iota
	opOpen
	opData
	opClose
	opTick
)

// broker is a broker of the stand-in in the time of a bubble. The time stands still while it works, since a call of it waits
// for a socket. A connection to it that nobody writes to waits for a channel, so the time passes.
type broker struct {
	mu    sync.Mutex // held by a call
	nc    net.Conn
	r     *bufio.Reader
	pipes map[uint32]*pipe
	last  uint32
	next  *time.Timer // when it has something to do
}

// newBroker starts a broker that ends with the case.
func newBroker(t testing.TB) *broker {
	nc, err := net.Dial("tcp", "127.0.0.1:"+shared.virtual)
	require.NoError(t, err)
	b := &broker{nc: nc, r: bufio.NewReader(nc), pipes: make(map[uint32]*pipe)}
	b.next = time.AfterFunc(time.Hour, func() { _ = b.call(opTick, 0, nil) })
	b.next.Stop()
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.next.Stop()
		_ = nc.Close()
	})
	return b
}

// connect opens a connection.
func (b *broker) connect() (net.Conn, error) {
	b.mu.Lock()
	b.last++
	p := &pipe{broker: b, number: b.last, more: make(chan struct{}, 1)}
	b.pipes[p.number] = p
	b.mu.Unlock()
	return p, b.call(opOpen, p.number, nil)
}

// call has the broker do something now, and passes on what it says.
func (b *broker) call(op byte, number uint32, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	request := binary.BigEndian.AppendUint32([]byte{op}, number)
	request = binary.BigEndian.AppendUint64(request, uint64(time.Now().UnixNano()))
	request = append(binary.BigEndian.AppendUint32(request, uint32(len(data))), data...)
	if _, err := b.nc.Write(request); err != nil {
		return err
	}
	for {
		var head [9]byte
		if _, err := io.ReadFull(b.r, head[:]); err != nil {
			return err
		}
		said := make([]byte, binary.BigEndian.Uint32(head[5:]))
		if _, err := io.ReadFull(b.r, said); err != nil {
			return err
		}
		if head[0] == opDone {
			if b.next.Stop(); binary.BigEndian.Uint64(said) > 0 {
				b.next.Reset(time.Until(time.Unix(0, int64(binary.BigEndian.Uint64(said)))))
			}
			return nil
		}
		if p := b.pipes[binary.BigEndian.Uint32(head[1:])]; p != nil {
			p.said(said, head[0] == opClose)
		}
	}
}

// pipe is a connection to a broker. It has no deadlines: the calls of its client have.
type pipe struct {
	broker *broker
	number uint32
	more   chan struct{} // something to read

	mu    sync.Mutex
	data  []byte
	ended bool
}

func (p *pipe) said(data []byte, ended bool) {
	p.mu.Lock()
	p.data, p.ended = append(p.data, data...), p.ended || ended
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

func (p *pipe) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		n, ended := copy(b, p.data), p.ended
		p.data = p.data[n:]
		p.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		<-p.more
	}
}

func (p *pipe) Write(b []byte) (int, error) {
	if err := p.broker.call(opData, p.number, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (p *pipe) Close() error {
	p.said(nil, true)
	return p.broker.call(opClose, p.number, nil)
}

func (p *pipe) LocalAddr() net.Addr              { return p.broker.nc.LocalAddr() }
func (p *pipe) RemoteAddr() net.Addr             { return p.broker.nc.RemoteAddr() }
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
