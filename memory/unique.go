package memory

import "github.com/gopawl/pawl"

// unique is a unique key within its scope. It has one holder, the job that took it
// last. The holder keeps it in every state, until another job takes it or the
// holder is removed. Whether the holder keeps out a new job depends on the
// UniqueIn of the new job.
type unique struct{ queue, kind, key string }

func uniqueOf(e *pawl.Envelope) unique { return unique{e.Queue, e.Kind, e.UniqueKey} }
