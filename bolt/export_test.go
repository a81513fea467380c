package bolt

// CheckFile is for the tests outside of the package.
var CheckFile = checkFile
