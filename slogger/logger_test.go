package slogger_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/slogger"
)

// Rule: a line comes out at its level with its message and its arguments.
func TestLevels(t *testing.T) {
	var out logged
	l := toJSON(&out)
	for level, write := range map[string]func(string, ...any){
		"DEBUG-4": l.Trace, "DEBUG": l.Debug, "INFO": l.Info, "WARN": l.Warn, "ERROR": l.Error,
	} {
		write("hello", "k", 1)
		require.Equal(t, map[string]any{"level": level, "msg": "hello", "k": 1.0}, out.line(t))
	}
	for level, want := range map[hclog.Level]string{
		hclog.Trace: "DEBUG-4", hclog.Debug: "DEBUG", hclog.Info: "INFO", hclog.Warn: "WARN", hclog.Error: "ERROR",
	} {
		l.Log(level, "hello")
		require.Equal(t, want, out.line(t)["level"])
	}
	for _, level := range []hclog.Level{hclog.NoLevel, hclog.Off, hclog.Off + 1, -1} {
		l.Log(level, "hello")
		require.Empty(t, out.lines(t), "%v is no level of a line", level)
	}
}

// Rule: the handler decides what is written, and SetLevel narrows it for all related
// loggers; the guards and GetLevel tell the truth.
func TestSetLevel(t *testing.T) {
	all := []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error}
	for _, c := range []struct {
		handler slog.Level
		set     hclog.Level
		want    hclog.Level
	}{
		{slogger.LevelTrace, hclog.NoLevel, hclog.Trace},
		{slog.LevelDebug, hclog.NoLevel, hclog.Debug},
		{slog.LevelInfo, hclog.NoLevel, hclog.Info},
		{slog.LevelInfo, hclog.Trace, hclog.Info},
		{slog.LevelInfo, hclog.Warn, hclog.Warn},
		{slog.LevelError, hclog.Info, hclog.Error},
		{slog.LevelError + 1, hclog.NoLevel, hclog.Off},
		{slogger.LevelTrace, hclog.Off, hclog.Off},
	} {
		var out logged
		root := slogger.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: c.handler}))
		l := root.Named("a").With("k", "v")
		root.SetLevel(c.set)
		require.Equal(t, c.want, l.GetLevel())
		guards := map[hclog.Level]bool{hclog.Trace: l.IsTrace(), hclog.Debug: l.IsDebug(),
			hclog.Info: l.IsInfo(), hclog.Warn: l.IsWarn(), hclog.Error: l.IsError()}
		for _, level := range all {
			require.Equal(t, level >= c.want, guards[level], "%v with %+v", level, c)
			l.Log(level, "hello")
			if level >= c.want {
				out.line(t)
			} else {
				require.Empty(t, out.lines(t))
			}
		}
		l.SetLevel(hclog.NoLevel)
		require.Equal(t, slogger.New(slog.NewJSONHandler(io.Discard, &slog.HandlerOptions{Level: c.handler})).GetLevel(),
			root.GetLevel(), "no level is back to the handler's")
	}
}

// Rule: the name is an attribute; names of names have dots between them, and a reset
// forgets those before.
func TestNamed(t *testing.T) {
	var out logged
	l := toJSON(&out)
	require.Empty(t, l.Name())
	named := l.With("k", "v").Named("app").Named("worker")
	require.Equal(t, "app.worker", named.Name())
	named.Info("hello")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "hello", "k": "v", slogger.NameKey: "app.worker"}, out.line(t))

	require.Equal(t, "other", named.ResetNamed("other").Name())
	named.ResetNamed("").Info("hello")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "hello", "k": "v"}, out.line(t))
}

// Rule: implied arguments are on every line of the logger that has them and of those
// derived from it, each key once with its last value.
func TestWith(t *testing.T) {
	var out logged
	l := toJSON(&out)
	a := l.With("z", 1, "b", 2)
	b := a.With("b", 3, "c", 4)
	require.Equal(t, []any{"z", 1, "b", 2}, a.ImpliedArgs())
	require.Equal(t, []any{"z", 1, "b", 3, "c", 4}, b.ImpliedArgs())
	b.ImpliedArgs()[1] = "changed"

	b.Info("hello", "d", 5)
	require.Regexp(t, `"z":1,"b":3,"c":4,"d":5}\n$`, out.String())
	out.Reset()
	a.Info("hello")
	require.Regexp(t, `"z":1,"b":2}\n$`, out.String())
	out.Reset()
	l.Info("hello")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "hello"}, out.line(t))
}

// Rule: arguments that hclog takes are taken as hclog takes them: a value without a
// key, a stack trace at the end, a key that is no string.
func TestOddArguments(t *testing.T) {
	trace := hclog.Stacktrace()
	for _, c := range []struct {
		args []any
		want map[string]any
	}{
		{[]any{"k", "v", "extra"}, map[string]any{"k": "v", hclog.MissingKey: "extra"}},
		{[]any{7}, map[string]any{hclog.MissingKey: 7.0}},
		{[]any{"k", "v", trace}, map[string]any{"k": "v", "stacktrace": string(trace)}},
		{[]any{"at", trace}, map[string]any{"at": string(trace)}},
		{[]any{slog.LevelWarn, "v"}, map[string]any{"WARN": "v"}},
		{[]any{nil, "v"}, map[string]any{"<nil>": "v"}},
		{[]any{"k", nil}, map[string]any{"k": nil}},
	} {
		var out logged
		l := toJSON(&out)
		for _, write := range []func(){
			func() { l.Info("hello", c.args...) },
			func() { l.With(c.args...).Info("hello") },
		} {
			write()
			line := out.line(t)
			delete(line, slog.LevelKey)
			delete(line, slog.MessageKey)
			require.Equal(t, c.want, line)
		}
	}
}

// Rule: what only hclog knows how to print is printed as it does; the rest is left to
// the handler.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		value, want any
	}{
		{hclog.Fmt("%d beans/day", 3), "3 beans/day"},
		{hclog.Format{3, "beans"}, fmt.Sprint(3, "beans")},
		{hclog.Format{}, ""},
		{hclog.Hex(255), "0xff"},
		{hclog.Hex(-1), "0xffffffffffffffff"},
		{hclog.Octal(8), "010"},
		{hclog.Binary(5), "0b101"},
		{hclog.Quote("two\nlines"), "two\nlines"},
		{errors.New("no"), "no"},
		{time.Second, float64(time.Second)},
		{[]int{1, 2}, []any{1.0, 2.0}},
		{slog.GroupValue(slog.Int("a", 1)), map[string]any{"a": 1.0}},
	} {
		var out logged
		toJSON(&out).Info("hello", "k", c.value)
		require.Equal(t, c.want, out.line(t)["k"], "%T", c.value)
	}
}

// Rule: a handler that prints the place of the call prints the one in the program,
// whatever the method.
func TestLocation(t *testing.T) {
	var out logged
	l := slogger.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{AddSource: true, Level: slogger.LevelTrace})).Named("a")
	for _, write := range []func(string, ...any){
		l.Trace, l.Debug, l.Info, l.Warn, l.Error,
		func(msg string, _ ...any) { l.Log(hclog.Info, msg) },
	} {
		write("hello")
		_, file, _, _ := runtime.Caller(0)
		require.Equal(t, file, out.line(t)["source"].(map[string]any)["file"])
	}
	_, _, line, _ := runtime.Caller(0)
	l.Info("hello")
	require.EqualValues(t, line+1, out.line(t)["source"].(map[string]any)["line"])

	l.StandardLogger(nil).Print("hello")
	require.NotContains(t, out.line(t), "source", "it is not known there")
}

// Rule: a standard logger writes lines of this logger, with the level that is found
// in the text or that is forced, as hclog does.
func TestStandardLogger(t *testing.T) {
	for _, c := range []struct {
		opts           *hclog.StandardLoggerOptions
		text           string
		level, message string
	}{
		{nil, "[WARN] hello\n", "INFO", "[WARN] hello"},
		{&hclog.StandardLoggerOptions{InferLevels: true}, "[WARN] hello", "WARN", "hello"},
		{&hclog.StandardLoggerOptions{InferLevels: true}, "[TRACE] hello", "DEBUG-4", "hello"},
		{&hclog.StandardLoggerOptions{InferLevels: true}, "hello", "INFO", "hello"},
		{&hclog.StandardLoggerOptions{InferLevels: true, InferLevelsWithTimestamp: true},
			"2026/01/02 03:04:05 [ERR] hello", "ERROR", "hello"},
		{&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}, "[ERROR] hello", "DEBUG", "hello"},
	} {
		var out logged
		l := toJSON(&out).Named("std").With("k", "v")
		want := map[string]any{"level": c.level, "msg": c.message, "logger": "std", "k": "v"}
		l.StandardLogger(c.opts).Print(c.text)
		require.Equal(t, want, out.line(t))
		n, err := l.StandardWriter(c.opts).Write([]byte(c.text))
		require.NoError(t, err)
		require.Equal(t, len(c.text), n)
		require.Equal(t, want, out.line(t))
		l.SetLevel(hclog.Off)
		l.StandardLogger(c.opts).Print(c.text)
		require.Empty(t, out.lines(t))
	}
}

// Rule: loggers may be used and derived by several goroutines at once.
func TestConcurrentUse(t *testing.T) {
	l := slogger.New(slog.NewJSONHandler(io.Discard, nil))
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 100 {
				l.SetLevel(hclog.Level(i % 6))
				l.Named("a").With("k", i).Info("hello", "level", l.GetLevel())
			}
		}()
	}
	for range 8 {
		<-done
	}
}
