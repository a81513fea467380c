// Package proxy stands between clients and a PostgreSQL server. It cuts connections, also in the
// middle of a COMMIT, and falls silent as a network does.
package proxy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gopawl/pawl/internal/cluster"
)

// Faults say how often the proxy cuts connections. The zero value is never.
type Faults struct {
	Bytes   int           // a connection passes this many bytes on average; 0 means any number
	Commits int           // of this many commits, one does not reach the server, and the answer of another does not reach the client; 0 means none
	Away    time.Duration // after some cuts it accepts no connection for up to this time
}

// Proxy is a proxy of one server. Its methods may be called from any goroutine.
type Proxy struct {
	Folder string // of its socket

	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	rand   *rand.Rand
	server string // the folder of the server's socket
	faults Faults
	conns  map[net.Conn]bool
	held   chan struct{} // closed at the end of a silence; nil while there is none
	away   time.Time     // no connection is accepted before that
	cuts   Cuts
	closed bool
}

// Cuts says how often a proxy has cut a connection.
type Cuts struct {
	Amid   int // at any byte
	Before int // a COMMIT did not reach the server
	After  int // the server answered a COMMIT, and the answer did not reach the client
}

// All is the number of all cuts.
func (c Cuts) All() int { return c.Amid + c.Before + c.After }

// New returns a proxy with its socket in a folder, which it creates, of the server whose socket is in
// another folder.
func New(folder, server string, seed uint64) (*Proxy, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", filepath.Join(folder, cluster.Socket))
	if err != nil {
		return nil, err
	}
	p := &Proxy{Folder: folder, listener: listener, server: server, rand: rand.New(rand.NewPCG(seed, 1)), conns: make(map[net.Conn]bool)}
	p.serving.Go(p.accept)
	return p, nil
}

// Close ends the proxy and all connections.
func (p *Proxy) Close() {
	p.Heal(false)
	p.mu.Lock()
	p.closed = true
	p.cutAll()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.serving.Wait()
}

// Set sets the faults from now on.
func (p *Proxy) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Cuts returns how often the proxy has cut a connection.
func (p *Proxy) Cuts() Cuts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Lead has later connections go to another server, and cuts all others.
func (p *Proxy) Lead(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
	p.cutAll()
}

// Silence begins a partition: no byte passes, no connection ends, and new ones get no answer.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = make(chan struct{})
	}
}

// Heal ends a partition. What was sent during the partition arrives, unless all connections are cut.
func (p *Proxy) Heal(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		return
	}
	if cut {
		p.cutAll()
	}
	close(p.held)
	p.held = nil
}

// cutAll ends all connections. The caller holds p.mu.
func (p *Proxy) cutAll() {
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.serving.Go(func() { p.serve(conn) })
	}
}

// serve passes on what a client and the server send, until either ends or a fault cuts.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	p.hold()
	l := &link{proxy: p}
	server := p.begin(l, client)
	if server == nil {
		return
	}
	defer p.end(client, server)
	var answers sync.WaitGroup
	answers.Go(func() {
		defer client.Close()
		defer server.Close()
		l.pass(client, server, l.answer)
	})
	l.pass(server, client, l.request)
	_ = server.Close()
	answers.Wait()
}

// begin connects to the server. It returns nil if no connection is accepted now.
func (p *Proxy) begin(l *link, client net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || time.Now().Before(p.away) {
		return nil
	}
	server, err := net.Dial("unix", filepath.Join(p.server, cluster.Socket))
	if err != nil {
		return nil
	}
	if p.faults.Bytes > 0 {
		l.left = 1 + int(p.rand.ExpFloat64()*float64(p.faults.Bytes))
	}
	p.conns[client], p.conns[server] = true, true
	return server
}

func (p *Proxy) end(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(p.conns, conn)
	}
}

// hold waits while there is a partition.
func (p *Proxy) hold() {
	for {
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held == nil {
			return
		}
		<-held
	}
}

// draw returns a random number for a commit: at 0 and 1 it fails. It returns -1 while commits do not.
func (p *Proxy) draw() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.Commits == 0 {
		return -1
	}
	return p.rand.IntN(p.faults.Commits)
}

// count counts a cut. Some begin an outage.
func (p *Proxy) count(kind func(*Cuts) *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*kind(&p.cuts)++
	if p.faults.Away > 0 && p.rand.IntN(4) == 0 {
		p.away = time.Now().Add(time.Duration(p.rand.Int64N(int64(p.faults.Away))))
	}
}

func amid(c *Cuts) *int   { return &c.Amid }
func before(c *Cuts) *int { return &c.Before }
func after(c *Cuts) *int  { return &c.After }

// link is one connection through the proxy.
type link struct {
	proxy *Proxy

	mu     sync.Mutex
	left   int  // bytes until a cut; 0 means no limit
	silent bool // the answer to a commit is not passed on
	cut    bool // both directions end, and it was counted
}

var errCut = errors.New("the proxy cuts")

// end cuts the connection, after passed bytes, unless the other direction has. The caller holds l.mu.
func (l *link) end(kind func(*Cuts) *int, passed int) (int, error) {
	if l.cut {
		return 0, errCut
	}
	l.cut = true
	l.proxy.count(kind)
	return passed, errCut
}

// The messages by which clients end their transactions: a query, and one that executes a prepared
// statement, which pgx names by its text.
var (
	commitQuery = []byte("Q\x00\x00\x00\x0bcommit\x00")
	commitBind  = fmt.Appendf(nil, "\x00stmtcache_%x\x00", firstBytes(sha256.Sum256([]byte("commit"))))
)

func firstBytes(sum [sha256.Size]byte) []byte { return sum[:24] }

// Commits reports whether a client sends a COMMIT.
func Commits(sent []byte) bool {
	return bytes.Contains(sent, commitQuery) || bytes.Contains(sent, commitBind)
}

// request looks at what a client sends, and returns how much of it reaches the server.
func (l *link) request(sent []byte) (int, error) {
	draw := -1
	if Commits(sent) {
		draw = l.proxy.draw()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch draw {
	case 0:
		return l.end(before, 0)
	case 1:
		l.silent = true
		return len(sent), nil
	}
	return l.any(len(sent))
}

// answer looks at what the server sends, and returns how much of it reaches the client.
func (l *link) answer(sent []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent {
		return l.end(after, 0)
	}
	return l.any(len(sent))
}

// any cuts at any byte. The caller holds l.mu.
func (l *link) any(n int) (int, error) {
	switch {
	case l.cut:
		return 0, errCut
	case l.left == 0:
		return n, nil
	case l.left > n:
		l.left -= n
		return n, nil
	}
	return l.end(amid, l.left)
}

// pass copies what look allows.
func (l *link) pass(to io.Writer, from io.Reader, look func([]byte) (int, error)) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		l.proxy.hold()
		n, cut := look(buffer[:n])
		if _, err := to.Write(buffer[:n]); err != nil || cut != nil {
			return
		}
	}
}
