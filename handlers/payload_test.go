package handlers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
)

// Rule: a payload encoded from JSON values decodes to the same values; bytes may be strings.
func TestPayloadsOfJSON(t *testing.T) {
	e := envelopeOf(t, `{"args": ["a", "b"], "dir": "/d", "env": {"A": "1"}, "stdin": "in", "ok": [1], "retry": [2], "permanent": [3]}`)
	command, err := Exec.Job(e)
	require.NoError(t, err)
	require.Equal(t, Command{Args: []string{"a", "b"}, Dir: "/d", Env: map[string]string{"A": "1"}, Stdin: []byte("in"),
		OK: []int{1}, Retry: []int{2}, Permanent: []int{3}}, command.Args)

	e = envelopeOf(t, `{"method": "PUT", "url": "http://a", "headers": {"A": "1"}, "body": "text", "ok": [404]}`)
	request, err := HTTP.Job(e)
	require.NoError(t, err)
	require.Equal(t, Request{Method: "PUT", URL: "http://a", Headers: map[string]string{"A": "1"}, Body: []byte("text"), OK: []int{404}}, request.Args)
}

func envelopeOf(t *testing.T, text string) *pawl.Envelope {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	payload, err := msgpack.Marshal(whole(value))
	require.NoError(t, err)
	return &pawl.Envelope{Payload: payload}
}

// whole makes integers of the numbers of a JSON value, which are all floats to the decoder:
// MessagePack tells the two apart, and whoever turns JSON into a payload has to do this.
func whole(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	}
	return value
}

// Rule: the handler receives what was enqueued, and the names of the kinds are stable.
func TestPayloadsOfKinds(t *testing.T) {
	command := Command{Args: []string{"a"}, Env: map[string]string{"B": "c"}, Stdin: []byte{0, 255}, OK: []int{1}}
	e, err := Exec.Envelope(command)
	require.NoError(t, err)
	require.Equal(t, "pawl.exec", e.Kind)
	got, err := Exec.Job(e)
	require.NoError(t, err)
	require.Equal(t, command, got.Args)

	request := Request{URL: "https://a", Body: []byte{0, 255}}
	e, err = HTTP.Envelope(request)
	require.NoError(t, err)
	require.Equal(t, "pawl.http", e.Kind)
	sent, err := HTTP.Job(e)
	require.NoError(t, err)
	require.Equal(t, request, sent.Args)
}
