package main

// The colors of a table, by the meaning of its words. Everything else has the terminal's colors.
const (
	uncolored = ""
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
	green     = "\x1b[32m"
	bold      = "\x1b[1m"
	reset     = "\x1b[0m"
)

// colors reports whether standard output is colored.
func (a *app) colors() bool { return a.colored(a.screen) }

// colored reports whether a stream is colored, which may be a terminal.
func (a *app) colored(terminal bool) bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return terminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// colorOfState returns the color of a state of a job or a queue.
func colorOfState(word string) string {
	switch word {
	case "dead", "PAUSED":
		return red
	case "leased", "served":
		return green
	case "delayed", "no worker":
		return yellow
	}
	return uncolored
}

// colorOfCount highlights a number of things that need attention.
func colorOfCount(text string) string {
	if text == "0" {
		return uncolored
	}
	return red
}
