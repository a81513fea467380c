package faults

import "syscall"

// call is a system call that concerns a file of the queue.
type call struct {
	kind string
	file string // in the queue's folder; "" is the folder itself
	to   string // for linkat and renameat: the other name
}

// fault is what happens to a call. The zero value is nothing.
type fault struct {
	name  string
	errno syscall.Errno // it fails
	part  bool          // it writes the first half
	kill  bool          // the process is killed before it

	more    int  // so many further calls of its kind fail too: a call of the queue's is tried again
	lasting bool // all syncs fail from there on, until the queue's file is opened again
}

// ran is how a supervised child went.
type ran struct {
	calls  []call
	lines  []string // what it told
	stderr string
	ended  error // of its process
}
