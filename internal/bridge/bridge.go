// Package bridge carries unexported functions of package pawl to package driver, so that users
// of jobs do not see what only engines need.
package bridge

import (
	"context"
	"time"

	"github.com/gopawl/pawl/internal/runnotes"
)

// Functions are the functions that package driver exports for package pawl, and documents. The
// type parameters stand for the types of package pawl: it imports this package, so they cannot
// be named here.
type Functions[Envelope, Lease, Policy, Queue any] struct {
	CheckEnvelope func(e *Envelope) error
	CheckName     func(field, name string) error
	CheckPolicy   func(p Policy) (Policy, error)
	NextAttempt   func(completed int) int

	AppendRecord func(dst []byte, e *Envelope, apart int) []byte
	ParseRecord  func(b []byte) (e *Envelope, apart int, err error)
	CheckRecord  func(b []byte) error

	EncodePayload func(v any) ([]byte, error)
	DecodePayload func(b []byte, v any, unknownFields bool) error

	RunContext  func(ctx context.Context, q Queue, l *Lease, notes *runnotes.Runs) context.Context
	Note        func(l *Lease, done, total int64, text string, at time.Time)
	MarkSettled func(l *Lease)
	Settled     func(l *Lease) bool
}

// Root holds the [Functions] of package pawl, which sets it before package driver is
// initialized.
var Root any
