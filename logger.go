package pawl

// Logger is what the packages of this module log to. *slog.Logger of log/slog and
// hclog.Logger satisfy it unchanged. The arguments are keys and values in turn.
type Logger interface {
	Debug(msg string, args ...any)
	Info(msg string, args ...any)
	Warn(msg string, args ...any)
	Error(msg string, args ...any)
}
