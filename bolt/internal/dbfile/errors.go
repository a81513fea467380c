package dbfile

import "github.com/gopawl/pawl/driver"

// Errors of package bolt, which documents them.
var (
	ErrLocked      = driver.NewSentinel("locked", "file is locked")
	ErrNotQueue    = driver.NewSentinel("not_queue", "not a pawl queue")
	ErrInsecure    = driver.NewSentinel("insecure", "file is not safe from others")
	ErrOlderFormat = driver.NewSentinel("older_format", "file has an older format than this build reads")
	ErrReplaced    = driver.NewSentinel("replaced", "the file was replaced while it was open")
	ErrOverwritten = driver.NewSentinel("overwritten", "the file was overwritten while it was open")
	ErrDisk        = driver.NewSentinel("disk", "disk refused a write")
)

// PlainCopy is the likeliest cause of damage that is not the fault of a disk.
const PlainCopy = "Was it copied from a running app? Copy it again with Queue.Backup (jobctl db backup)"
