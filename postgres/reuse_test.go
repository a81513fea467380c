package postgres_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// reuse stands between clients and the server, and gives a new client the connection that an earlier client has
// closed, without anything of the earlier session. Most cases of the suite cost the server less than a connection
// does.
type reuse struct {
	url    string // for clients
	server string // the server's socket

	mu   sync.Mutex
	free map[string][]*session // by the user, the database, and settings
}

// session is a connection to the server.
type session struct {
	net.Conn
	key      string
	r        *bufio.Reader
	greeting []byte // what the server sends before the first query
	asked    atomic.Int64
	answered int64 // asked queries that were answered to the end
	outside  bool  // of a transaction, after the last answer
}

func reuseConnections(t *testing.T) *reuse {
	folder, err := os.MkdirTemp("", "pawl-reuse-") // the path of a socket has to be short
	require.NoError(t, err)
	l, err := net.Listen("unix", filepath.Join(folder, socketName))
	require.NoError(t, err)
	p := &reuse{url: "host=" + folder + " user=pawl dbname=postgres", server: filepath.Join(hostOf(), socketName),
		free: make(map[string][]*session)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var clients sync.WaitGroup
		defer clients.Wait()
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() {
				defer context.AfterFunc(t.Context(), func() { _ = client.Close() })()
				p.serve(client)
			})
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-ended
		for _, sessions := range p.free {
			for _, s := range sessions {
				_ = s.Close()
			}
		}
		require.NoError(t, os.RemoveAll(folder))
	})
	return p
}

// cancelRequest is the code of a first message that cancels the query of another connection.
const cancelRequest = 80877102

func (p *reuse) serve(client net.Conn) {
	defer client.Close()
	r := bufio.NewReader(client)
	first, err := readMessage(r, 0)
	if err != nil {
		return
	}
	if binary.BigEndian.Uint32(first[4:]) == cancelRequest {
		if server, err := net.Dial("unix", p.server); err == nil {
			_, _ = server.Write(first)
			_, _ = io.Copy(io.Discard, server) // until the server has passed it on
			_ = server.Close()
		}
		return
	}
	s := p.take(first)
	if s == nil {
		return
	}
	if _, err := client.Write(s.greeting); err != nil || !p.pass(client, r, s) {
		_ = s.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free[s.key] = append(p.free[s.key], s)
}

// take returns a connection for a client with this first message, or nil if the server is gone.
func (p *reuse) take(first []byte) *session {
	settings := strings.Split(string(first[8:]), "\x00") // names and values
	slices.Sort(settings)                                // their order varies
	key := strings.Join(settings, "\x00")
	p.mu.Lock()
	defer p.mu.Unlock()
	if free := p.free[key]; len(free) > 0 {
		p.free[key] = free[:len(free)-1]
		return free[len(free)-1]
	}
	server, err := net.Dial("unix", p.server)
	if err != nil {
		return nil
	}
	s := &session{Conn: server, key: key, r: bufio.NewReader(server)}
	if _, err := server.Write(first); err != nil {
		return nil
	}
	for len(s.greeting) == 0 || !s.outside {
		m, err := s.next()
		if err != nil {
			return nil
		}
		s.greeting = append(s.greeting, m...)
	}
	s.answered = 0
	return s
}

// pass passes messages on until the client closes its connection, and reports whether another client can
// have the session.
func (p *reuse) pass(client net.Conn, r *bufio.Reader, s *session) bool {
	var leaving atomic.Bool
	left := make(chan bool, 1)
	go func() {
		left <- s.answer(client, &leaving)
		_ = client.SetReadDeadline(time.Now()) // if the server ended it
	}()
	w := bufio.NewWriter(s)
	for last := byte('S'); ; {
		m, err := readMessage(r, 1)
		if err != nil || m[0] == 'X' && !strings.ContainsRune("QSFcf", rune(last)) { // in the middle of a request
			_ = s.Close()
			<-left
			return false
		}
		last = m[0]
		if last == 'X' {
			m = query("DISCARD ALL") // fails within a transaction
		}
		if strings.IndexByte("QSFX", last) >= 0 {
			s.asked.Add(1)
		}
		leaving.Store(last == 'X')
		_, _ = w.Write(m) // the next flush reports the error
		if r.Buffered() > 0 && last != 'X' {
			continue
		}
		if w.Flush() != nil {
			_ = s.Close()
		}
		if last == 'X' {
			return <-left
		}
	}
}

// answer passes answers on to the client. It returns when the connection ends, or after the last answer to a
// client that is leaving, and reports whether another client can have the session.
func (s *session) answer(client net.Conn, leaving *atomic.Bool) bool {
	w := bufio.NewWriter(client)
	for failed := false; ; {
		m, err := s.next()
		if err != nil {
			return false
		}
		if leaving.Load() {
			failed = failed || m[0] == 'E'
			if m[0] == 'Z' && s.answered == s.asked.Load() {
				return s.outside && !failed
			}
			continue
		}
		_, _ = w.Write(m)
		if s.r.Buffered() == 0 {
			_ = w.Flush() // the reader of its requests notices that a client is gone
		}
	}
}

// next returns the next message of the server.
func (s *session) next() ([]byte, error) {
	m, err := readMessage(s.r, 1)
	if err == nil && m[0] == 'Z' {
		s.answered++
		s.outside = m[5] == 'I'
	}
	return m, err
}

func query(sql string) []byte {
	m := binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(4+len(sql)+1))
	return append(append(m, sql...), 0)
}

// readMessage reads a message whose length stands at an offset.
func readMessage(r io.Reader, offset int) ([]byte, error) {
	head := make([]byte, offset+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	m := make([]byte, offset+int(binary.BigEndian.Uint32(head[offset:])))
	copy(m, head)
	_, err := io.ReadFull(r, m[len(head):])
	return m, err
}

// Rule: the connections that the suite uses again leave nothing of the earlier client to the next one: no lock,
// no setting, no open transaction.
func TestReuseLeavesNothing(t *testing.T) {
	newSchema(t) // or skip
	p := reuseConnections(t)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), p.url)
		require.NoError(t, err)
		return conn
	}
	leave := func(sql string) (pid uint32) {
		conn := connect()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
		raw, err := conn.PgConn().Hijack()
		require.NoError(t, err)
		defer raw.Conn.Close()
		raw.Frontend.Send(&pgproto3.Terminate{})
		require.NoError(t, raw.Frontend.Flush())
		_, err = io.Copy(io.Discard, raw.Conn) // until the next client can have the session
		require.NoError(t, err)
		return raw.PID
	}
	first := leave("SELECT pg_advisory_lock(7); SET search_path = nowhere")
	second := connect()
	require.Equal(t, first, second.PgConn().PID())
	var path string
	var locks int
	require.NoError(t, second.QueryRow(t.Context(), "SELECT current_setting('search_path'), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())").Scan(&path, &locks))
	require.NotEqual(t, "nowhere", path)
	require.Zero(t, locks)
	require.NoError(t, second.Close(t.Context()))

	in := leave("BEGIN")
	require.NotEqual(t, in, leave("SELECT 1"))
}
