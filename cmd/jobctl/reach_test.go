package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// Rule: jobctl sends an address the token in JOBCTL_TOKEN, and an app that refuses it gives
// another error than an app that does not answer.
func TestTokenOfAnAddress(t *testing.T) {
	sent := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	t.Setenv("JOBCTL_TOKEN", "s3cret")
	var stdout, stderr strings.Builder
	code := run(words("--addr "+server.URL+" stats"), strings.NewReader(""), &stdout, &stderr)
	require.Equal(t, "Bearer s3cret", <-sent)
	require.Equal(t, exitError, code, stderr.String())
	require.Contains(t, stderr.String(), "JOBCTL_TOKEN")
}

// Rule: a blank or unsendable token is a usage error. It is never omitted, so that an app
// without authentication does not appear to accept the token.
func TestBlankTokenIsRefused(t *testing.T) {
	for token, says := range map[string]string{" ": "blank", "\n": "blank", "a b": "white space", "s3cret\n": "white space"} {
		t.Setenv("JOBCTL_TOKEN", token)
		var stdout, stderr strings.Builder
		code := run(words("--addr https://localhost:1 stats"), strings.NewReader(""), &stdout, &stderr)
		require.Equal(t, exitUsage, code, stderr.String())
		require.Contains(t, stderr.String(), "JOBCTL_TOKEN")
		require.Contains(t, stderr.String(), says)
	}
}

// Rule: --timeout limits the time for an app's answer.
func TestTimeoutOfAnAddress(t *testing.T) {
	end := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer server.Close()
	defer close(end)
	got := jobctl(t, "--addr", server.URL, "--timeout", "50ms", "stats")
	require.Equal(t, exitLocked, got.code)
	require.Contains(t, got.stderr, "50ms")
	require.Contains(t, got.stderr, "--timeout waits longer")
}

// Rule: a shell completes IDs in the order of creation, each once, and queues and kinds except
// those that are hard to type.
func TestCompletionOutOfTheQueue(t *testing.T) {
	build(t, func(f *file) {
		everyState(f)
		f.add(pawl.Envelope{Queue: "re\x1b[31md", Kind: "two words"})
	})
	for line, want := range map[string][]string{
		"job show ":      {id(1).String(), id(2).String(), id(3).String(), id(4).String(), id(5).String(), id(6).String(), id(7).String()},
		"dead retry ":    {id(1).String(), id(2).String()},
		"queue pause ":   {"email", "reports"},
		"job list -k ":   {"mail.send", "report.build", "report.old"},
		"db backup ":     nil,
		"queue show a b": nil,
	} {
		args := append([]string{"__complete", "--db", "app.db"}, strings.Split(line, " ")...)
		lines := strings.Split(strings.TrimSpace(jobctl(t, args...).stdout), "\n")
		require.Equal(t, strings.Join(want, "\n"), strings.Join(lines[:len(lines)-1], "\n"), line) // behind them is what the shell is to do
	}
}
