// Package flows has the family that kills processes in which workflows run, and compares
// the file that they leave with what they reported.
//
// A process starts runs of one flow and changes them as operators do. The calls of a run
// are drawn from the seed in its input (see program.go). The process reports what it did,
// in lines. A kill never truncates a line. After each kill, the family compares the
// journals with the story so far (see story.go). At the end, all runs continue until they
// have ended.
package flows
