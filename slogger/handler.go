package slogger

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// Handler makes a handler that writes to l. Attributes become arguments; those in a
// group have its name in front and a dot, as slog's TextHandler prints them:
// request.method.
//
// A line has the time at which l writes it, not the record's, since hclog takes no
// other. Where l prints the place of the call, set AdditionalLocationOffset in its
// options to [LocationOffset].
func Handler(l hclog.Logger) slog.Handler {
	if l == nil {
		panic("slogger: logger is nil")
	}
	if l, ok := l.(*logger); ok {
		return &narrowed{l.to, l}
	}
	return &handler{to: l}
}

// LocationOffset is how many calls lie between a line logged through an [slog.Logger]
// and the hclog.Logger that writes it.
const LocationOffset = 3

// handler implements slog.Handler over a logger that New did not make.
type handler struct {
	to     hclog.Logger // with the attributes of WithAttrs
	prefix string       // the open groups, each with a dot behind it
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	switch toHclog(level) {
	case hclog.Trace:
		return h.to.IsTrace()
	case hclog.Debug:
		return h.to.IsDebug()
	case hclog.Info:
		return h.to.IsInfo()
	case hclog.Warn:
		return h.to.IsWarn()
	}
	return h.to.IsError()
}

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	args := make([]any, 0, 2*r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		args = appendArgs(args, h.prefix, a)
		return true
	})
	h.to.Log(toHclog(r.Level), r.Message, args...)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var args []any
	for _, a := range attrs {
		args = appendArgs(args, h.prefix, a)
	}
	if len(args) == 0 {
		return h
	}
	return &handler{h.to.With(args...), h.prefix}
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler{h.to, h.prefix + name + "."}
}

// appendArgs adds an attribute as a key and a value, or as many as a group has. An
// empty attribute adds nothing; a group without a name stands for its attributes.
func appendArgs(args []any, prefix string, a slog.Attr) []any {
	a.Value = a.Value.Resolve()
	switch {
	case a.Equal(slog.Attr{}):
		return args
	case a.Value.Kind() != slog.KindGroup:
		return append(args, prefix+a.Key, a.Value.Any())
	case a.Key != "":
		prefix += a.Key + "."
	}
	for _, member := range a.Value.Group() {
		args = appendArgs(args, prefix, member)
	}
	return args
}

// narrowed is the handler of a logger that New made: the one that was given to New,
// as far as SetLevel lets it.
type narrowed struct {
	slog.Handler
	by *logger
}

func (n *narrowed) Enabled(ctx context.Context, level slog.Level) bool {
	return int32(toHclog(level)) >= n.by.least.Load() && n.Handler.Enabled(ctx, level)
}

func (n *narrowed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &narrowed{n.Handler.WithAttrs(attrs), n.by}
}

func (n *narrowed) WithGroup(name string) slog.Handler {
	return &narrowed{n.Handler.WithGroup(name), n.by}
}
