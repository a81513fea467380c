package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// lines is where the app prints. It passes on what it receives.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	both chan struct{} // closed after both URLs
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if strings.Count(l.text.String(), "\n") == 2 {
		close(l.both)
	}
	return len(b), nil
}

// Rule: both users see the dashboard, one of them with buttons, and nobody sees it without a password. The
// app ends cleanly.
func TestUsers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out := &lines{both: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0", "-n", "20"}, out) }()
	select {
	case <-out.both:
	case err := <-ended:
		t.Fatal(err)
	}
	urls := regexp.MustCompile(`http://\S+`).FindAllString(out.text.String(), -1)
	require.Len(t, urls, 2)
	page := func(url string, status int) string {
		answer, err := http.Get(url)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, status, answer.StatusCode, url)
		b, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(b)
	}
	require.Contains(t, page(urls[0]+"file", 200), "Download a backup")
	require.NotContains(t, page(urls[1]+"file", 200), "Download a backup")
	for _, path := range []string{"", "queues", "jobs", "failures", "runs", "schedules", "workers"} {
		page(urls[0]+path, 200)
	}
	page(urls[1]+"retry", 403)
	page(regexp.MustCompile(`//.*@`).ReplaceAllString(urls[0], "//"), 401)
	require.Contains(t, page(strings.TrimSuffix(urls[0], "ops/")+"metrics", 200), "pawl_jobs")
	stop()
	require.NoError(t, <-ended)
}

// Rule: an interruption at any moment ends the app cleanly, also before its worker runs.
func TestInterruptedAtOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, run(ctx, []string{"-addr", "127.0.0.1:0"}, io.Discard))
}
