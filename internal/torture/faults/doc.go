// Package faults has the families in which the system fails the queue: a full disk, a system
// call that fails or does half of its work, a failed sync.
//
// A child works on a queue and reports its story. The family makes something in the child
// fail, and then compares the file with the story. The child reports a violation that it
// sees itself, such as an error of unknown type, in a line that starts with "violation".
package faults
