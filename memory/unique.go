package memory

import "github.com/gopawl/pawl"

// unique is a unique key within its scope. It has one holder, the job that took it
// last; that one keeps it in every state, until another takes it or the job is
// removed. Whether it blocks another is for the other to say.
type unique struct{ queue, kind, key string }

func uniqueOf(e *pawl.Envelope) unique { return unique{e.Queue, e.Kind, e.UniqueKey} }
