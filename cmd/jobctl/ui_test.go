package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// uiAddress starts `jobctl ui` and returns its address, and a function that interrupts it and returns its
// exit code.
func uiAddress(t *testing.T, args ...string) (string, func() int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	code := make(chan int, 1)
	var stderr strings.Builder
	go func() {
		code <- runIn(ctx, append([]string{"--db", "app.db", "ui", "--no-browser"}, args...), strings.NewReader(""), out, &stderr)
		out.Close()
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		<-code
		t.Fatal(err, stderr.String())
	}
	return strings.TrimSpace(line), func() int {
		stop()
		return <-code
	}
}

// browser is a client with its own cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &http.Client{Jar: jar}
}

func fetch(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	answer, err := c.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(b)
}

// Rule: the address of jobctl ui is on loopback and lets in one browser, which then needs no token. Nobody
// comes in without it, or with a token that was used. The command ends cleanly.
func TestUI(t *testing.T) {
	build(t, everyState)
	address, stop := uiAddress(t)
	require.Regexp(t, regexp.MustCompile(`^http://127\.0\.0\.1:\d+/\?token=[A-Z2-7]{26}$`), address)
	root, _, _ := strings.Cut(address, "?")
	for _, path := range []string{"", "jobs", "style.css", "?token=", "?token=wrong", "jobs?token=x"} {
		status, body := fetch(t, browser(t), root+path)
		require.Equal(t, http.StatusForbidden, status, path)
		require.NotContains(t, body, "email", path)
	}
	first := browser(t)
	status, body := fetch(t, first, address)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "Overview")
	status, body = fetch(t, first, root+"jobs?state=dead")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, id(1).String())
	require.Contains(t, body, "app.db job list -s dead")
	status, _ = fetch(t, first, address) // once more by the same browser
	require.Equal(t, http.StatusOK, status)
	status, _ = fetch(t, browser(t), address)
	require.Equal(t, http.StatusForbidden, status)

	r, err := http.NewRequest("GET", root, nil)
	require.NoError(t, err)
	r.Host = "evil.example"
	for _, cookie := range first.Jar.Cookies(r.URL) { // as if the name had been rebound
		r.AddCookie(cookie)
	}
	answer, err := first.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusMisdirectedRequest, answer.StatusCode)
	require.Zero(t, stop())
}

// Rule: with --read-only jobctl ui refuses changes.
func TestReadOnlyUI(t *testing.T) {
	build(t, everyState)
	address, stop := uiAddress(t, "--read-only")
	root, _, _ := strings.Cut(address, "?")
	c := browser(t)
	_, body := fetch(t, c, address)
	require.Contains(t, body, "read-only")
	answer, err := c.PostForm(root+"retry", map[string][]string{"id": {id(1).String()}})
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Zero(t, stop())
}

// Rule: the commands on the pages of a server contain no password.
func TestUIShowsNoPassword(t *testing.T) {
	for _, db := range []string{"postgres://ada:s3cret@db/app", "host=db password=s3cret", "redis://:s3cret@db/0"} {
		a := &app{}
		a.flags.db = db
		require.NotContains(t, a.target(), "s3cret")
		require.NotEmpty(t, a.target())
	}
}
