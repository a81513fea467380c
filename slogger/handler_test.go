package slogger_test

import (
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/slogger"
)

// withoutStamp is for loggers that stamp each line with a time of their own, which
// hclog's interface takes from nobody. In the case of a record without a time it
// checks that this is the time, and takes it away: it is not the record's.
func withoutStamp(t *testing.T, line map[string]any) map[string]any {
	t.Helper()
	if !strings.HasSuffix(t.Name(), "/zero-time") {
		return line
	}
	at, err := time.Parse(time.RFC3339, line[slog.TimeKey].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	delete(line, slog.TimeKey)
	return line
}

// Rule: over a logger of hclog's it does what a handler of slog's must.
func TestHandlerOverHclog(t *testing.T) {
	var out logged
	slogtest.Run(t, func(*testing.T) slog.Handler {
		return slogger.Handler(hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true}))
	}, func(t *testing.T) map[string]any {
		line := out.lines(t)[0]
		for theirs, ours := range map[string]string{
			"@timestamp": slog.TimeKey, "@level": slog.LevelKey, "@message": slog.MessageKey,
		} {
			line[ours] = line[theirs]
			delete(line, theirs)
		}
		return withoutStamp(t, line)
	})
}

// Rule: through both adapters, each of which sees but the other's interface, it still
// does.
func TestHandlerOverNew(t *testing.T) {
	var out logged
	slogtest.Run(t, func(*testing.T) slog.Handler {
		return slogger.Handler(only{slogger.New(slog.NewJSONHandler(&out, nil))})
	}, func(t *testing.T) map[string]any { return withoutStamp(t, out.lines(t)[0]) })
}

// Rule: over a logger that New made, it gives the handler below everything as it came:
// times, groups and places too.
func TestHandlerUndoesNew(t *testing.T) {
	var out logged
	slogtest.Run(t, func(*testing.T) slog.Handler {
		return slogger.Handler(slogger.New(slog.NewJSONHandler(&out, nil)))
	}, func(t *testing.T) map[string]any { return out.lines(t)[0] })

	named := slogger.New(slog.NewJSONHandler(&out, nil)).Named("app").With("k", "v")
	log := slog.New(slogger.Handler(named)).With("a", "b").WithGroup("g")
	log.Info("hello", "c", "d")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "hello",
		"logger": "app", "k": "v", "a": "b", "g": map[string]any{"c": "d"}}, out.line(t))
	named.SetLevel(hclog.Warn)
	log.Info("not written")
	require.Empty(t, out.lines(t))
}

// Rule: New over a Handler is the logger below.
func TestNewUndoesHandler(t *testing.T) {
	l := hclog.NewNullLogger()
	require.Equal(t, l, slogger.New(slogger.Handler(l)))

	var out logged
	below := hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true})
	h := slogger.Handler(below)
	slogger.New(h.WithAttrs([]slog.Attr{slog.Int("a", 1)})).Info("hello", "b", 2)
	line := out.line(t)
	require.EqualValues(t, 1, line["a"])
	require.EqualValues(t, 2, line["b"])

	slogger.New(h.WithGroup("g")).Info("hello", "b", 2)
	require.Equal(t, map[string]any{"b": 2.0}, out.line(t)["g"], "an open group stays open")
}

// Rule: every level of slog's has one of hclog's, and is written when that one is.
func TestHandlerLevels(t *testing.T) {
	ctx := t.Context()
	for level, want := range map[slog.Level]string{
		slogger.LevelTrace - 1: "trace",
		slogger.LevelTrace:     "trace",
		slog.LevelDebug - 1:    "trace",
		slog.LevelDebug:        "debug",
		slog.LevelInfo:         "info",
		slog.LevelInfo + 2:     "info",
		slog.LevelWarn:         "warn",
		slog.LevelError:        "error",
		slog.LevelError + 100:  "error",
	} {
		for _, least := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error, hclog.Off} {
			var out logged
			h := slogger.Handler(hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true, Level: least}))
			written := least <= hclog.LevelFromString(want)
			require.Equal(t, written, h.Enabled(ctx, level), "%v at %v", level, least)
			slog.New(h).Log(ctx, level, "hello")
			if written {
				require.Equal(t, want, out.line(t)["@level"])
			} else {
				require.Empty(t, out.lines(t))
			}
		}
	}
}

// Rule: with LocationOffset hclog finds the place of the call, in text and in JSON.
func TestHandlerLocation(t *testing.T) {
	for _, inJSON := range []bool{false, true} {
		var out logged
		log := slog.New(slogger.Handler(hclog.New(&hclog.LoggerOptions{
			Output: &out, JSONFormat: inJSON,
			IncludeLocation: true, AdditionalLocationOffset: slogger.LocationOffset,
		})))
		_, _, line, _ := runtime.Caller(0)
		log.Info("hello")
		require.Contains(t, out.String(), "slogger/handler_test.go:"+strconv.Itoa(line+1))
	}
}

// Rule: there is no logger over nothing; that is told at once.
func TestNil(t *testing.T) {
	require.Panics(t, func() { slogger.New(nil) })
	require.Panics(t, func() { slogger.Handler(nil) })
}
