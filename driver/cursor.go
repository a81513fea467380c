package driver

import (
	"bytes"
	"context"

	"github.com/gopawl/pawl"
)

// SaveCursor implements [pawl.CursorSaver] for a queue with mutations. Mutate is the method of
// the queue.
func SaveCursor(ctx context.Context, mutate func(ctx context.Context, m Mutation, size int) error, l *pawl.Lease, cursor []byte) error {
	switch {
	case l == nil || l.Envelope == nil:
		return invalid("lease", "there is none; a handler has it from its worker, as job.Lease")
	case len(cursor) == 0 || len(cursor) > pawl.MaxCursor:
		return invalid("cursor", "%d bytes are not between 1 and %d", len(cursor), pawl.MaxCursor)
	}
	return mutate(ctx, &saving{l, bytes.Clone(cursor)}, len(cursor)+len(l.Payload))
}

// saving is the mutation that saves a cursor.
type saving struct {
	lease  *pawl.Lease
	cursor []byte
}

// Declare implements [Declared].
func (s *saving) Declare(n *Needs) { n.Jobs = append(n.Jobs, s.lease.ID) }

// Check implements [Mutation].
func (s *saving) Check(ops Ops) error { return ops.Save(s.lease, s.cursor) }

// Apply implements [Mutation].
func (s *saving) Apply(Writer) error { return nil }
