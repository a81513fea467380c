package slogger_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/slogger"
)

// logged is what was written, one JSON object a line.
type logged struct{ bytes.Buffer }

// lines returns what was written since the last call, with dots in keys turned into
// groups.
func (l *logged) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(l.Bytes()) {
		flat := make(map[string]any)
		require.NoError(t, json.Unmarshal(line, &flat), "%s", line)
		all = append(all, nested(t, flat))
	}
	l.Reset()
	return all
}

// line returns the only line, without its time.
func (l *logged) line(t *testing.T) map[string]any {
	t.Helper()
	all := l.lines(t)
	require.Len(t, all, 1)
	delete(all[0], slog.TimeKey)
	return all[0]
}

func nested(t *testing.T, flat map[string]any) map[string]any {
	t.Helper()
	top := make(map[string]any)
	for key, value := range flat {
		in := top
		path := strings.Split(key, ".")
		for _, group := range path[:len(path)-1] {
			if in[group] == nil {
				in[group] = make(map[string]any)
			}
			var ok bool
			in, ok = in[group].(map[string]any)
			require.True(t, ok, "%s is a group and a value", group)
		}
		last := path[len(path)-1]
		require.NotContains(t, in, last)
		in[last] = value
	}
	return top
}

// toJSON is a logger over a handler of slog's that writes everything as JSON.
func toJSON(out *logged) hclog.Logger {
	return slogger.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slogger.LevelTrace}))
}

// only shows nothing of a logger but its interface, so that neither New nor Handler
// can undo the other.
type only struct{ hclog.Logger }
