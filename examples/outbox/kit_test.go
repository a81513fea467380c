package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopawl/pawl/examples/internal/itself"
	"github.com/gopawl/pawl/internal/memdir"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { itself.Main(main, m.Run) }

// box is an outbox of its own for one test.
type box struct {
	*testing.T
	db string
}

func newBox(t *testing.T) *box { return &box{t, filepath.Join(memdir.New(t), "config", "outbox.db")} }

// result is what a run of the program gave.
type result struct {
	code           int
	stdout, stderr string
}

func (b *box) run(args ...string) result {
	b.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), append([]string{"-db", b.db}, args...), strings.NewReader("from\nstdin\n"), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// add stores messages and returns their IDs.
func (b *box) add(texts ...string) (ids []string) {
	b.Helper()
	for _, text := range texts {
		r := b.run("add", "--", text)
		require.Equal(b, 0, r.code, r.stderr)
		require.Regexp(b, `^[0-9a-f-]{36}\n$`, r.stdout)
		ids = append(ids, strings.TrimSpace(r.stdout))
	}
	return ids
}

func (b *box) list() (entries []entry) {
	b.Helper()
	r := b.run("list", "-json")
	require.Equal(b, 0, r.code, r.stderr)
	require.NoError(b, json.Unmarshal([]byte(r.stdout), &entries))
	return entries
}

// syncAll syncs until nothing is left, however long the retries take to be due.
func (b *box) syncAll(to string) {
	b.Helper()
	require.Eventually(b, func() bool { return b.run("sync", "-to", to).code == 0 }, time.Minute, 10*time.Millisecond)
	require.Equal(b, "no messages\n", b.run("list").stdout)
}

// child is a sync in a process of its own.
func (b *box) child(ctx context.Context, to string) *exec.Cmd {
	return itself.Command(ctx, "-db", b.db, "sync", "-to", to)
}

// endpoint is a web server that notes what arrives.
type endpoint struct {
	*httptest.Server
	mu      sync.Mutex
	answer  func(e envelope, r *http.Request) int // a status; it may block
	arrived []string                              // texts, in order, of those that it took
}

func newEndpoint(t *testing.T) *endpoint {
	s := &endpoint{answer: func(envelope, *http.Request) int { return http.StatusOK }}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e envelope
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &e) != nil || r.Header.Get("Idempotency-Key") != e.ID.String() {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		code := answer(e, r)
		if code == http.StatusOK {
			s.mu.Lock()
			s.arrived = append(s.arrived, e.Text)
			s.mu.Unlock()
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *endpoint) set(answer func(e envelope, r *http.Request) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *endpoint) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrived)
}

// always answers alike.
func always(code int) func(envelope, *http.Request) int {
	return func(envelope, *http.Request) int { return code }
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
