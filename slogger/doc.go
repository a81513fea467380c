// Package slogger joins the two loggers that Go programs mostly have: log/slog and
// hclog, which the packages of pawl log to.
//
// [New] is for programs whose log is slog's:
//
//	log := slogger.New(slog.Default().Handler())
//	q, err := bolt.Open("jobs.db", &bolt.Options{Logger: log.Named("queue")})
//	w := worker.New(q, &worker.Options{Logger: log.Named("worker")})
//
// [Handler] is for programs whose log is hclog's, and which use a library that logs
// to slog:
//
//	slog.SetDefault(slog.New(slogger.Handler(hclog.L())))
//
// Each undoes the other: New(Handler(l)) is l where l is hclog's, and what
// Handler(New(h)) gets goes to h as it is.
//
// # Levels
//
// Debug, Info, Warn and Error are the same on both sides. hclog's Trace is
// [LevelTrace], which slog prints as DEBUG-4. A level of slog's that lies between two
// of hclog's counts as the lower one.
package slogger

import (
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// LevelTrace is hclog's Trace among the levels of slog.
const LevelTrace = slog.LevelDebug - 4

// toSlog is the level of slog's for one of hclog's, and false for what is no level of
// a line: Off, and no level.
func toSlog(level hclog.Level) (slog.Level, bool) {
	switch level {
	case hclog.Trace:
		return LevelTrace, true
	case hclog.Debug:
		return slog.LevelDebug, true
	case hclog.Info:
		return slog.LevelInfo, true
	case hclog.Warn:
		return slog.LevelWarn, true
	case hclog.Error:
		return slog.LevelError, true
	}
	return 0, false
}

// toHclog is the level of hclog's for any of slog's.
func toHclog(level slog.Level) hclog.Level {
	switch {
	case level < slog.LevelDebug:
		return hclog.Trace
	case level < slog.LevelInfo:
		return hclog.Debug
	case level < slog.LevelWarn:
		return hclog.Info
	case level < slog.LevelError:
		return hclog.Warn
	}
	return hclog.Error
}
