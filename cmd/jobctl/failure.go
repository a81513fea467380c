package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/bolt"
)

// Exit codes, each for something that a script decides by.
const (
	exitOK = iota
	exitError
	exitUsage
	exitNoMatch
	exitLocked
	exitDamaged
	exitConflict
	exitFormat
)

// failure is an error that knows its exit code and what to do next.
type failure struct {
	code int
	text string
	next string // a sentence; "" when the text says it all
}

func (f *failure) Error() string { return f.text }

// usage is a command line that cannot be carried out.
func usage(words, format string, args ...any) error {
	help := strings.TrimSpace("jobctl " + words)
	return &failure{exitUsage, fmt.Sprintf(format, args...), fmt.Sprintf("See '%s --help'.", help)}
}

// explain prints err with what to do next, and returns the exit code.
func (a *app) explain(err error) int {
	if err == nil {
		return exitOK
	}
	f := a.failure(err)
	a.say("error: %s", f.text)
	for line := range strings.Lines(f.next) {
		a.say("  %s", strings.TrimSuffix(line, "\n"))
	}
	return f.code
}

// say writes one message, behind the data that was printed so far. What comes from
// the file or from the command line is escaped; a line break inside a message is
// kept and indented.
func (a *app) say(format string, args ...any) {
	_ = a.stdout.Flush() // an error shows again at the last flush
	fmt.Fprintln(a.stderr, escapeLines(fmt.Sprintf(format, args...), "  "))
}

// failure decides what an error means to the caller.
func (a *app) failure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	f = &failure{code: exitError, text: err.Error()}
	switch {
	case errors.Is(err, bolt.ErrLocked):
		f.code = exitLocked
		f.text = fmt.Sprintf("%s is locked%s", a.flags.db, holder(err))
		f.next = "Stop the app, or read a copy: one made while it was stopped, or by Queue.Backup."
	case errors.Is(err, fs.ErrNotExist):
		f.text = fmt.Sprintf("%s: no such file", a.flags.db)
		f.next = "Check --db; jobctl never creates a file."
	case errors.Is(err, fs.ErrPermission):
		f.next = "Run jobctl as the user of the app."
	case errors.Is(err, pawl.ErrNotFound):
		f.code = exitNoMatch
		f.next = "It is done, or it was never in this file; 'jobctl job list' shows what is."
	case errors.As(err, new(heldBack)):
		f.code = exitConflict
		f.next = "It stays dead; 'jobctl job show' has its unique key and its deadline."
	case errors.Is(err, pawl.ErrConflict):
		f.code = exitConflict
		f.next = "Only a dead job can be retried; 'jobctl job show' has the details."
	case errors.Is(err, pawl.ErrCorrupt):
		f.code = exitDamaged
		f.next = "The file is damaged. Keep a copy of it, and restore a backup, or save what is\nsound by 'jobctl salvage'."
	case errors.Is(err, bolt.ErrInsecure):
		f.next = "Run jobctl as the owner of the file, and change what the error names."
	case errors.Is(err, pawl.ErrUnknownOutcome), errors.Is(err, pawl.ErrPoisoned):
		f.next = "Check the disk; 'jobctl dead list' shows what is still dead."
	case errors.Is(err, bolt.ErrNotQueue):
		f.next = "Check --db: it must lead to a file that pawl made."
	case errors.Is(err, bolt.ErrNewerFormat):
		f.code = exitFormat
		f.next = "Use the jobctl of the release that wrote the file."
	case errors.Is(err, bolt.ErrOlderFormat):
		f.code = exitFormat
		f.text = fmt.Sprintf("%s has the format of an older release", a.flags.db)
		f.next = "Use the jobctl of that release, or start the app of this one once: it converts\nthe file, and the older release cannot open it from then on."
	}
	return f
}

// holder is who has the file open, as far as the error tells: " (pid 4121,
// billing-api)".
func holder(err error) string {
	_, behind, _ := strings.Cut(err.Error(), bolt.ErrLocked.Error())
	who, _, _ := strings.Cut(behind, ";")
	return who
}

// shownDamage is how many damaged records are named, the others are counted.
const shownDamage = 10

// damage gathers the records that could not be read.
type damage struct {
	count int
	first []string
}

func (d *damage) add(err error) {
	if d.count++; len(d.first) < shownDamage {
		d.first = append(d.first, err.Error())
	}
}

// err is nil when nothing was damaged.
func (d *damage) err() error {
	if d.count == 0 {
		return nil
	}
	next := strings.Join(d.first, "\n")
	if more := d.count - len(d.first); more > 0 {
		next += fmt.Sprintf("\nand %d more", more)
	}
	return &failure{exitDamaged, fmt.Sprintf("%s could not be read and %s passed over:", plural(d.count, "damaged job"), wasWere(d.count)),
		next + "\nNothing was changed in them. Keep a copy of the file, and restore them from a backup."}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
