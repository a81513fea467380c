// Package hostile has the families that open damaged and hostile files with all code that
// reads files.
//
// A base is a sound file. A mutation turns it into a hostile file, by the seed of the try. A
// child process takes a batch of files and passes each to every entry point, one step at a
// time, with limits of time and memory. The family judges the lines and the end of the child.
package hostile
