package admin

import "errors"

// Errors of this package besides those of packages pawl and bolt; match with errors.Is.
var (
	// ErrUnreachable says that nobody answers at the address, or not with what this
	// package understands.
	ErrUnreachable = errors.New("app does not answer")

	// ErrDenied says that the app answered and does not let this caller in.
	ErrDenied = errors.New("app does not let this user in")

	// ErrNotLive says that no process has the queue open, so nothing happens in it.
	ErrNotLive = errors.New("no app has the queue open")
)
