package main

import (
	"flag"
	"strings"

	"github.com/gopawl/pawl"
)

// command is what one or two words do.
type command struct {
	words string // "job list"
	args  string // what may follow the words, for the usage line
	short string // one line for the overview
	text  string // what --help says below the usage line
	file  bool   // needs --db
	ids   bool   // takes arguments besides flags

	// setup registers the command's flags and returns what runs once they are
	// parsed.
	setup func(*flag.FlagSet) action
}

// action does the work of a command with the arguments that are no flags.
type action func(a *app, args []string) error

func commands() []command {
	return []command{
		statsCommand(),
		jobListCommand(),
		jobShowCommand(),
		deadListCommand(),
		deadRetryCommand(),
		salvageCommand(),
		versionCommand(),
	}
}

func find(words string) (command, bool) {
	for _, c := range commands() {
		if c.words == words {
			return c, true
		}
	}
	return command{}, false
}

// isNoun reports whether commands begin with this word and go on.
func isNoun(word string) bool {
	for _, c := range commands() {
		if strings.HasPrefix(c.words, word+" ") {
			return true
		}
	}
	return false
}

// filterFlags choose jobs by queue and kind.
type filterFlags struct{ queue, kind string }

func (f *filterFlags) register(fs *flag.FlagSet) {
	fs.Func("q", "", nameFlag(&f.queue, pawl.ValidQueue))
	fs.Func("k", "", nameFlag(&f.kind, pawl.ValidKind))
	fs.Func("kind", "", nameFlag(&f.kind, pawl.ValidKind))
}

// nameFlag refuses an empty name above all: a script's -q "$Q" with nothing in Q
// would choose every queue.
func nameFlag(to *string, valid func(string) error) func(string) error {
	return func(name string) error {
		*to = name
		return valid(name)
	}
}
