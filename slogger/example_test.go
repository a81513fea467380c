package slogger_test

import (
	"log/slog"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/gopawl/pawl/slogger"
)

// A program whose log is slog's gives it to what wants one of hclog's.
func ExampleNew() {
	h := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	var log hclog.Logger = slogger.New(h)
	log.Named("queue").Warn("attempt failed", "kind", "mail.welcome", "attempt", 2)
	// Output: level=WARN msg="attempt failed" logger=queue kind=mail.welcome attempt=2
}

// A program whose log is hclog's gives it to what wants one of slog's.
func ExampleHandler() {
	l := hclog.New(&hclog.LoggerOptions{Output: os.Stdout, DisableTime: true})
	slog.New(slogger.Handler(l)).WithGroup("request").Info("served", "method", "GET", "status", 200)
	// Output: [INFO]  served: request.method=GET request.status=200
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
