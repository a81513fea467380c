package admin

import "errors"

// Errors of this package, besides those of package pawl and of the engine; match them with errors.Is.
var (
	// ErrUnreachable means that nothing answers at the address, or that this package does not
	// understand the answer.
	ErrUnreachable = errors.New("app does not answer")

	// ErrDenied means that the app refused this caller.
	ErrDenied = errors.New("app does not let this user in")

	// ErrDistrusted means that the note or the socket beside a file belongs to a user who has no
	// right to the file, or that others could have written it. Nothing was sent.
	ErrDistrusted = errors.New("the socket or note beside the file is not trusted")

	// ErrNotLive means that no process has the queue open.
	ErrNotLive = errors.New("no app has the queue open")

	// ErrCancelRequested means that Cancel has not ended a running job yet: its handler's
	// context is cancelled, and the job ends when the handler returns.
	ErrCancelRequested = errors.New("cancel requested; the job runs, and ends when its handler returns")

	// ErrWorkflowJob means that Cancel refused the job of an open workflow run, or Edit that of any run.
	// Cancel the run with [Workflows], or set Action.Force.
	ErrWorkflowJob = errors.New("job belongs to the workflow run")
)
