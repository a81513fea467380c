// Package hostile has the families that hand damaged and hostile files to everything that
// reads one.
//
// A base is a sound file. A mutation makes a hostile one of it, by the seed of the try. A
// child process takes a batch of those and leads each past every entry point, a step at a
// time, watched for time and memory. What the child says, and whether it dies, is judged by
// its family.
package hostile
