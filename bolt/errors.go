package bolt

import (
	"errors"
	"fmt"
)

// Errors of this package besides those of package pawl; match with errors.Is.
var (
	// ErrLocked says that somebody else holds the file, mostly another process. The
	// error names it where the system tells.
	ErrLocked = errors.New("file is locked")

	// ErrNotQueue says that the path leads to something that is no queue of this
	// package: a folder, an empty file, a file of another program.
	ErrNotQueue = errors.New("not a pawl queue")

	// ErrInsecure says that somebody else could write to the file, or put another one in
	// its place. The error says what to change; Options.Insecure takes it as it is.
	ErrInsecure = errors.New("file is not safe from others")

	// ErrOlderFormat says that an older build wrote the file. Use that build.
	ErrOlderFormat = errors.New("file has an older format than this build reads")

	// ErrReplaced says that the path of an open queue no longer leads to its file: somebody put
	// another file there, or removed or renamed it. The queue is poisoned, since what it stores
	// would be lost with the process. Save the open file with [Queue.Backup].
	ErrReplaced = errors.New("the file was replaced while it was open")

	// ErrOverwritten says that another program truncated the open file or wrote to it, as cp
	// does onto a file that exists. The queue is poisoned, and does not write to the file any
	// more. It comes with pawl.ErrCorrupt.
	ErrOverwritten = errors.New("the file was overwritten while it was open")

	// ErrDisk says that the disk refused to be written, because it is full for
	// example. Nothing was stored; jobs in the file are safe, and the operation
	// works again once the disk does.
	ErrDisk = errors.New("disk refused a write")
)

// plainCopy is the likeliest cause of a damage for which no disk is to blame.
const plainCopy = "Was it copied from a running app? Copy it again with Queue.Backup (jobctl db backup)"

// errForeign is the error of a bbolt file whose tree is sound and leads to no queue.
var errForeign = fmt.Errorf("%w: a bbolt file of another program. %s", ErrNotQueue, plainCopy)
