package proxy

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/internal/cluster"
)

// echo is a server that sends back what it gets, and reports how much it got.
func echo(t *testing.T) (folder string, got chan string) {
	t.Helper()
	folder, got = t.TempDir(), make(chan string, 99)
	listener, err := net.Listen("unix", filepath.Join(folder, cluster.Socket))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 1<<10)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						return
					}
					got <- string(buffer[:n])
					if _, err := conn.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return folder, got
}

// through returns a proxy of a server.
func through(t *testing.T, server string) *Proxy {
	t.Helper()
	p, err := New(filepath.Join(t.TempDir(), "p"), server, 1)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

func (p *Proxy) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(p.Folder, cluster.Socket))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Rule: a COMMIT is cut before the server has it, or after the server answered it and before the client
// has the answer.
func TestCommits(t *testing.T) {
	server, got := echo(t)
	p := through(t, server)
	p.Set(Faults{Commits: 2})
	for p.Cuts().Before == 0 || p.Cuts().After == 0 {
		cuts := p.Cuts()
		conn := p.dial(t)
		_, err := conn.Write([]byte("Q\x00\x00\x00\x0bcommit\x00"))
		require.NoError(t, err)
		answer, _ := io.ReadAll(conn)
		require.Empty(t, answer)
		require.Equal(t, cuts.All()+1, p.Cuts().All())
		require.Equal(t, p.Cuts().After, len(got))
	}
}

// Rule: a connection passes a random number of bytes.
func TestAmid(t *testing.T) {
	server, _ := echo(t)
	p := through(t, server)
	p.Set(Faults{Bytes: 1000})
	conn := p.dial(t)
	go func() {
		for {
			if _, err := conn.Write(make([]byte, 100)); err != nil {
				return
			}
		}
	}()
	_, _ = io.Copy(io.Discard, conn)
	require.Equal(t, Cuts{Amid: 1}, p.Cuts())
}

// Rule: in a partition nothing passes and no connection ends. After it what was sent arrives, unless
// the connections are cut.
func TestSilence(t *testing.T) {
	server, got := echo(t)
	p := through(t, server)
	conn := p.dial(t)
	ask := func() string {
		_, err := conn.Write([]byte("a"))
		require.NoError(t, err)
		answer := make([]byte, 1)
		n, _ := conn.Read(answer)
		return string(answer[:n])
	}
	require.Equal(t, "a", ask())
	<-got
	p.Silence()
	answered := make(chan string)
	go func() { answered <- ask() }()
	select {
	case <-got:
		t.Error("it passed")
	case <-answered:
		t.Error("it ended")
	default:
	}
	p.Heal(false)
	require.Equal(t, "a", <-answered)
	<-got
	p.Silence()
	p.Heal(true)
	_, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Empty(t, got)
}

// Rule: later connections reach another server, and earlier ones end.
func TestLead(t *testing.T) {
	one, _ := echo(t)
	two, got := echo(t)
	p := through(t, one)
	conn := p.dial(t)
	_, err := conn.Write([]byte("a"))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	require.NoError(t, err)
	p.Lead(two)
	_, err = io.ReadAll(conn)
	require.NoError(t, err)
	_, err = p.dial(t).Write([]byte("b"))
	require.NoError(t, err)
	require.Equal(t, "b", <-got)
}
