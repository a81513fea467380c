package main

// The colours of a table, by what its words mean. Everything else is as the terminal has
// it.
const (
	uncolored = ""
	red       = "\x1b[31m"
	yellow    = "\x1b[33m"
	green     = "\x1b[32m"
	bold      = "\x1b[1m"
	reset     = "\x1b[0m"
)

// colors reports whether standard output is coloured.
func (a *app) colors() bool {
	switch a.flags.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.screen && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// colorOfState is that of a state or of a queue's.
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

// colorOfCount marks a number of things that need somebody.
func colorOfCount(text string) string {
	if text == "0" {
		return uncolored
	}
	return red
}
