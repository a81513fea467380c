// Package flows has the family that kills processes in which workflows run, and compares
// the file that they leave with what they told.
//
// A process starts runs of one flow, whose calls are drawn from the seed in its input (see
// program.go), and does to them what operators do. It tells what it did, in lines that a
// kill leaves out or whole. After each kill the journals are compared with the story so far
// (see story.go), and in the end all runs are let go on until they have ended.
package flows
