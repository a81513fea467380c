package bolt

// CheckFile and MemoryFolder are for tests outside the package.
var (
	CheckFile    = checkFile
	MemoryFolder = memoryFolder
)
