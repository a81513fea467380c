// Package faults has the families in which the system fails the queue: a disk that is full,
// a system call that fails or does a part of its work, a sync that fails.
//
// In each a child works on a queue and tells its story, the family makes something fail in it,
// and afterwards compares the file with the story. The child itself tells what it must not
// meet, an error of no known type for example, in a line that begins with "violation".
package faults
