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

	// ErrCancelRequested says that Cancel has not ended a job yet, because it runs: its
	// handler's context has ended, and the job ends when the handler returns.
	ErrCancelRequested = errors.New("cancel requested; the job runs, and ends when its handler returns")

	// ErrWorkflowJob says that Cancel was refused for the job of a workflow run that has not
	// ended. Cancel the run by [Workflows], or set Action.Force.
	ErrWorkflowJob = errors.New("job belongs to the workflow run")
)
