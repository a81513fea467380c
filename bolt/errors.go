package bolt

import (
	"fmt"

	"github.com/gopawl/pawl/bolt/internal/dbfile"
)

// Errors of this package, besides those of package pawl. Match them with errors.Is.
var (
	// ErrLocked says that another user holds the file, usually another process. The error names
	// that process if the system reports it.
	ErrLocked = dbfile.ErrLocked

	// ErrNotQueue says that the path leads to something that is not a queue of this package: a
	// folder, an empty file, or a file of another program.
	ErrNotQueue = dbfile.ErrNotQueue

	// ErrInsecure says that another user could write to the file or replace it. The error says
	// what to change. Options.Insecure accepts the file anyway.
	ErrInsecure = dbfile.ErrInsecure

	// ErrOlderFormat says that an older build wrote the file. Use that build.
	ErrOlderFormat = dbfile.ErrOlderFormat

	// ErrReplaced says that the path of an open queue no longer leads to its file: the file was
	// replaced, removed or renamed. The queue is poisoned, since its data would be lost with
	// the process. Save the open file with [Queue.Backup].
	ErrReplaced = dbfile.ErrReplaced

	// ErrOverwritten says that another program truncated the open file or wrote to it, as cp
	// does with an existing file. The queue is poisoned and does not write to the file any
	// more. The error also matches pawl.ErrCorrupt.
	ErrOverwritten = dbfile.ErrOverwritten

	// ErrDisk says that the disk refused a write, for example because it is full. Nothing was
	// stored, and jobs in the file are safe. Calls succeed again once the disk accepts writes.
	ErrDisk = dbfile.ErrDisk
)

// errForeign is the error for a bbolt file whose tree is sound and leads to no queue.
var errForeign = fmt.Errorf("%w: a bbolt file of another program. %s", ErrNotQueue, dbfile.PlainCopy)
