// Package dbfile is the file of a queue as the system sees it, whatever is in it: how it is opened,
// locked, checked, grown, copied, repaired after a failed sync, and guarded against other programs.
package dbfile
