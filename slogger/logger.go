package slogger

import (
	"context"
	"io"
	"log"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
)

// NameKey is the attribute that has the name of a logger made by [New], such as
// worker, or app.worker of one that was named twice.
const NameKey = "logger"

// New makes a logger that writes to h. What it writes is what hclog would, as
// attributes: first the name, see [NameKey], then the arguments of With in the order
// in which they were added, then those of the line. A value that follows no key has
// the key hclog.MissingKey. Of hclog's own types, Format, Hex, Octal and Binary
// become the text that hclog prints, Quote the plain string, since handlers quote by
// themselves, and a stack trace at the end has the key stacktrace. A line at level
// Off, or at none, is dropped.
//
// Lines have the place of the call, for handlers that print it; those of
// StandardLogger and StandardWriter have none. An error of the handler is dropped, as
// slog does.
//
// The handler decides what is written. SetLevel, which counts for all loggers that
// were derived from one New, can only narrow that; hclog.NoLevel ends it. GetLevel is
// the least level that is written.
func New(h slog.Handler) hclog.Logger {
	if h == nil {
		panic("slogger: handler is nil")
	}
	if h, ok := h.(*handler); ok && h.prefix == "" {
		return h.to
	}
	return &logger{base: h, to: h, least: new(atomic.Int32)}
}

// logger implements hclog.Logger. Nothing in it changes but the level.
type logger struct {
	base    slog.Handler  // as it was given to New
	to      slog.Handler  // base with the name and the implied arguments
	least   *atomic.Int32 // an hclog.Level; shared with all derived loggers
	name    string
	implied []any // keys, which are strings, and values, in turn
}

// levels are those that a line may have, from the least on.
var levels = [...]hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error}

func (l *logger) enabled(level hclog.Level) bool {
	to, ok := toSlog(level)
	return ok && int32(level) >= l.least.Load() && l.to.Enabled(context.Background(), to)
}

// log is called by the exported methods and nobody else: it counts on the caller of
// its caller to be where the line comes from.
func (l *logger) log(level hclog.Level, msg string, args []any) {
	if !l.enabled(level) {
		return
	}
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:]) // past Callers, log and the exported method
	l.write(pcs[0], level, msg, args)
}

func (l *logger) write(pc uintptr, level hclog.Level, msg string, args []any) {
	to, _ := toSlog(level)
	r := slog.NewRecord(time.Now(), to, msg, pc)
	r.AddAttrs(attrs(pairs(args))...)
	_ = l.to.Handle(context.Background(), r)
}

func (l *logger) Log(level hclog.Level, msg string, args ...any) { l.log(level, msg, args) }
func (l *logger) Trace(msg string, args ...any)                  { l.log(hclog.Trace, msg, args) }
func (l *logger) Debug(msg string, args ...any)                  { l.log(hclog.Debug, msg, args) }
func (l *logger) Info(msg string, args ...any)                   { l.log(hclog.Info, msg, args) }
func (l *logger) Warn(msg string, args ...any)                   { l.log(hclog.Warn, msg, args) }
func (l *logger) Error(msg string, args ...any)                  { l.log(hclog.Error, msg, args) }

func (l *logger) IsTrace() bool { return l.enabled(hclog.Trace) }
func (l *logger) IsDebug() bool { return l.enabled(hclog.Debug) }
func (l *logger) IsInfo() bool  { return l.enabled(hclog.Info) }
func (l *logger) IsWarn() bool  { return l.enabled(hclog.Warn) }
func (l *logger) IsError() bool { return l.enabled(hclog.Error) }

func (l *logger) SetLevel(level hclog.Level) { l.least.Store(int32(level)) }

func (l *logger) GetLevel() hclog.Level {
	for _, level := range levels {
		if l.enabled(level) {
			return level
		}
	}
	return hclog.Off
}

func (l *logger) Name() string       { return l.name }
func (l *logger) ImpliedArgs() []any { return slices.Clone(l.implied) }

func (l *logger) Named(name string) hclog.Logger {
	if l.name != "" {
		name = l.name + "." + name
	}
	return l.ResetNamed(name)
}

func (l *logger) ResetNamed(name string) hclog.Logger { return l.derive(name, l.implied) }

// With replaces the value of a key that is there already, as hclog does.
func (l *logger) With(args ...any) hclog.Logger {
	implied := slices.Clone(l.implied)
	added := pairs(args)
next:
	for i := 0; i < len(added); i += 2 {
		for j := 0; j < len(implied); j += 2 {
			if implied[j] == added[i] {
				implied[j+1] = added[i+1]
				continue next
			}
		}
		implied = append(implied, added[i], added[i+1])
	}
	return l.derive(l.name, implied)
}

// derive prepares the handler anew, since attributes cannot be taken back from one.
func (l *logger) derive(name string, implied []any) *logger {
	var own []slog.Attr
	if name != "" {
		own = append(own, slog.String(NameKey, name))
	}
	own = append(own, attrs(implied)...)
	d := &logger{base: l.base, to: l.base, least: l.least, name: name, implied: implied}
	if len(own) > 0 {
		d.to = l.base.WithAttrs(own)
	}
	return d
}

func (l *logger) StandardLogger(opts *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(opts), "", 0)
}

// StandardWriter leaves finding the levels in the text to a logger of hclog's that
// writes nothing itself.
func (l *logger) StandardWriter(opts *hclog.StandardLoggerOptions) io.Writer {
	if opts == nil {
		opts = &hclog.StandardLoggerOptions{}
	}
	finder := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	finder.RegisterSink(sink{l})
	return finder.StandardWriter(opts)
}

// sink gets the lines of a standard logger.
type sink struct{ l *logger }

func (s sink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	if s.l.enabled(level) {
		s.l.write(0, level, msg, args)
	}
}
