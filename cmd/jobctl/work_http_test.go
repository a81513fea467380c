package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// byClock runs a command line with the system clock, so that jobs become due.
func byClock(t *testing.T, args ...string) outcomeOf {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(args, strings.NewReader(""), &stdout, &stderr)
	return outcomeOf{code, stdout.String(), stderr.String()}
}

// requests is a server that records its requests, and answers by path.
type requests struct {
	*httptest.Server
	mu  sync.Mutex
	all []string // guarded by mu
}

func listenForRequests(t *testing.T) *requests {
	s := new(requests)
	busy := true // guarded by mu
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, r.Method+" "+r.URL.String()+" "+r.Header.Get("X-Tenant")+" "+string(body))
		switch {
		case r.URL.Path == "/busy" && busy:
			busy = false
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "come again")
		case r.URL.Path == "/gone":
			w.WriteHeader(http.StatusGone)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *requests) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.all = nil }()
	return s.all
}

// Rule: requests reach public addresses and those that --allow-net or --allow-host names, and
// nothing else; the status decides the result.
func TestWorkHTTP(t *testing.T) {
	for _, c := range []struct {
		rule, enqueue, work string
		result, message     string
		asked               []string
	}{
		{rule: "this machine is not reached", enqueue: "URL/a", work: "--drain",
			result: "dead", message: "permanent  GET URL/a: 127.0.0.1 must not be reached: 127.0.0.1 is this machine"},
		{rule: "a range that is allowed is", enqueue: "-H X-Tenant:acme -d hello URL/a?b=c", work: "--drain --allow-net 127.0.0.0/8",
			result: "done", message: "POST URL/a", asked: []string{"POST /a?b=c acme hello"}},
		{rule: "an address that is allowed is", enqueue: "-X DELETE URL/gone --ok 410", work: "--drain --allow-net 127.0.0.1",
			result: "done", message: "DELETE URL/gone", asked: []string{"DELETE /gone  "}},
		{rule: "another range is none of it", enqueue: "URL/a", work: "--drain --allow-net 10.0.0.0/8", result: "dead", message: "must not be reached"},
		{rule: "a host that is allowed is", enqueue: "URL/a", work: "--drain --allow-host 127.0.0.1", result: "done", asked: []string{"GET /a  "}},
		{rule: "410 is for good", enqueue: "URL/gone", work: "--drain --allow-net 127.0.0.1",
			result: "dead", message: "URL/gone answered 410 Gone", asked: []string{"GET /gone  "}},
		{rule: "503 is tried again", enqueue: "URL/busy", work: "--drain=all --allow-net 127.0.0.1",
			result: "retry", message: "answered 503 Service Unavailable", asked: []string{"GET /busy  ", "GET /busy  "}},
		{rule: "commands are not run by it", enqueue: "--exec", work: "--drain", message: "working on app.db"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := listenForRequests(t)
			t.Chdir(t.TempDir())
			buildAt(t, "app.db", nil)
			args := append(words("--db app.db job enqueue --http"), words(strings.ReplaceAll(c.enqueue, "URL", s.URL))...)
			if c.enqueue == "--exec" {
				args = words("--db app.db job enqueue --exec -- true")
			}
			got := byClock(t, args...)
			require.Zero(t, got.code, got.stderr)
			_, err := pawl.ParseID(strings.TrimSpace(got.stdout))
			require.NoError(t, err)
			got = byClock(t, append(words("--db app.db work --http"), words(c.work)...)...)
			require.Zero(t, got.code, got.stderr)
			if c.result != "" {
				require.Contains(t, got.stderr, "  "+c.result+" ")
			}
			require.Contains(t, got.stderr, strings.ReplaceAll(c.message, "URL", s.URL))
			require.NotContains(t, got.stderr, "b=c", "the query may have secrets in it")
			require.Equal(t, c.asked, s.asked())
		})
	}
}
