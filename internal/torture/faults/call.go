package faults

import "syscall"

// call is a system call on a file of the queue.
type call struct {
	kind string
	file string // in the queue's folder; "" is the folder itself
	to   string // for linkat and renameat: the other name
}

// fault is the fate of a call. The zero value lets it pass.
type fault struct {
	name  string
	errno syscall.Errno // it fails
	part  bool          // it writes the first half
	kill  bool          // the process is killed before the rest of it

	more    int  // the number of further calls of its kind that fail, since the queue retries some calls
	lasting bool // all syncs fail until the next open of the queue's file
}

// ran is the result of a supervised child.
type ran struct {
	calls  []call
	lines  []string // lines of its output
	stderr string
	ended  error // how its process ended
}
