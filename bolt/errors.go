package bolt

import (
	"fmt"

	"github.com/gopawl/pawl/driver"
)

// Errors of this package, besides those of package pawl. Match them with errors.Is.
var (
	// ErrLocked says that another user holds the file, usually another process. The error names
	// that process if the system reports it.
	ErrLocked = driver.NewSentinel("locked", "file is locked")

	// ErrNotQueue says that the path leads to something that is not a queue of this package: a
	// folder, an empty file, or a file of another program.
	ErrNotQueue = driver.NewSentinel("not_queue", "not a pawl queue")

	// ErrInsecure says that somebody else could write to the file or replace it. The error says
	// what to change. Options.Insecure accepts the file anyway.
	ErrInsecure = driver.NewSentinel("insecure", "file is not safe from others")

	// ErrOlderFormat says that an older build wrote the file. Use that build.
	ErrOlderFormat = driver.NewSentinel("older_format", "file has an older format than this build reads")

	// ErrReplaced says that the path of an open queue no longer leads to its file: somebody put
	// another file there, or removed or renamed it. The queue is poisoned, since its data would
	// be lost with the process. Save the open file with [Queue.Backup].
	ErrReplaced = driver.NewSentinel("replaced", "the file was replaced while it was open")

	// ErrOverwritten says that another program truncated the open file or wrote to it, as cp
	// does with an existing file. The queue is poisoned and does not write to the file any
	// more. The error also matches pawl.ErrCorrupt.
	ErrOverwritten = driver.NewSentinel("overwritten", "the file was overwritten while it was open")

	// ErrDisk says that the disk refused a write, because it is full for example. Nothing was
	// stored, and jobs in the file are safe. The operation works again once the disk does.
	ErrDisk = driver.NewSentinel("disk", "disk refused a write")
)

// plainCopy is the likeliest cause of damage that is not the fault of a disk.
const plainCopy = "Was it copied from a running app? Copy it again with Queue.Backup (jobctl db backup)"

// errForeign is the error for a bbolt file whose tree is sound and leads to no queue.
var errForeign = fmt.Errorf("%w: a bbolt file of another program. %s", ErrNotQueue, plainCopy)
