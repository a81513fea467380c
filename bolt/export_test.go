package bolt

// CheckFile and MemoryFolder are for the tests outside of the package.
var (
	CheckFile    = checkFile
	MemoryFolder = memoryFolder
)
