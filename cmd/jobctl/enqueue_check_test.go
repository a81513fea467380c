package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: enqueue refuses a request or a command that every worker would refuse, however it is
// given, and stores nothing of it in the file.
func TestEnqueueRefusesWhatNoWorkerRuns(t *testing.T) {
	build(t, nil)
	const url = "https://example.com/"
	for _, c := range []struct {
		rule, says string
		args       []string
	}{
		{"a password in the URL", "user name", []string{"--http", "https://ada:hunter2@example.com/"}},
		{"a user in the URL", "user name", []string{"--http", "https://ada@example.com/"}},
		{"no host", "names no host", []string{"--http", "https:///path"}},
		{"another scheme", "use http or https", []string{"--http", "ftp://example.com/hunter2"}},
		{"a URL that cannot be read", "not valid", []string{"--http", "https://example.com/%zzhunter2"}},
		{"the header Host", "Host belongs to the connection", []string{"--http", "-H", "host: hunter2", url}},
		{"a header of the framing", "belongs to the connection", []string{"--http", "-H", "Transfer-Encoding: chunked", url}},
		{"a line break in a header", "line break", []string{"--http", "-H", "X: a\r\nAuthorization: hunter2", url}},
		{"a header twice in different cases", "twice", []string{"--http", "-H", "x-a: 1", "-H", "X-A: hunter2", url}},
		{"a name that is no header's", "not a header name", []string{"--http", "-H", "X Y: hunter2", url}},
		{"a method with a space", "is not valid", []string{"--http", "-X", "GET /hunter2", url}},
		{"CONNECT", "is not valid", []string{"--http", "-X", "CONNECT", url}},
		{"a status that is none", "status 9", []string{"--http", "--ok", "9", url}},
		{"an exit code twice", "listed twice", []string{"--exec", "--ok", "3", "--retry", "3", "--", "true", "hunter2"}},
		{"an exit code that is none", "300", []string{"--exec", "--ok", "300", "--", "true", "hunter2"}},
		{"a password in plain JSON", "user name", []string{"pawl.http", `{"url":"https://ada:hunter2@example.com/"}`}},
		{"a command without a program", "names no program", []string{"pawl.exec", `{"args":[],"stdin":"hunter2"}`}},
	} {
		got := jobctl(t, append([]string{"--db", "app.db", "job", "enqueue"}, c.args...)...)
		require.Equal(t, exitUsage, got.code, "%s: %s", c.rule, got.stderr)
		require.Contains(t, got.stderr, c.says, c.rule)
	}
	line, err := json.Marshal(map[string]any{"kind": "pawl.http", "args": map[string]any{"url": "https://ada:hunter2@example.com/"}})
	require.NoError(t, err)
	got := piped(t, `{"kind":"greet"}`+"\n"+string(line)+"\n", "--db", "app.db", "job", "enqueue", "--batch")
	require.Equal(t, exitError, got.code)
	require.Contains(t, got.stderr, "line 2: the URL contains a user name")
	stored, err := os.ReadFile("app.db")
	require.NoError(t, err)
	require.False(t, bytes.Contains(stored, []byte("hunter2")))
	require.Empty(t, jobctl(t, "--db", "app.db", "job", "list", "-o", "ids").stdout)
}
