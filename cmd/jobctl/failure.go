package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
)

// failure is an error with its exit code and what to do next.
type failure struct {
	code int
	text string
	next string // a sentence; "" if the text is enough
}

func (f *failure) Error() string { return f.text }

// usage returns the error for an invalid command line.
func usage(words, format string, args ...any) error {
	help := strings.TrimSpace("jobctl " + words)
	return &failure{exitUsage, fmt.Sprintf(format, args...), fmt.Sprintf("See '%s --help'.", help)}
}

// unclear is a usage error about arguments, which an example of the command clarifies.
type unclear struct{ error }

func (u unclear) Unwrap() error { return u.error }

// misused is usage with an example.
func misused(words, format string, args ...any) error {
	return unclear{usage(words, format, args...)}
}

// exampled adds the example to an error about unclear arguments, or about arguments that the
// queue rejected: those of a list, and those that name runs.
func exampled(words, examples string, err error) error {
	f := new(failure)
	switch known := errors.As(err, &f); {
	case errors.As(err, new(unclear)):
	case !known && errors.As(err, new(*pawl.InvalidError)) && (strings.HasPrefix(words, "wf ") || strings.HasSuffix(words, " list") || words == "dead summary"):
		errors.As(usage(words, "%s", err), &f)
	default:
		return err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(examples), "\n")
	return &failure{f.code, f.text, "For example: " + first + "\n" + f.next}
}

// endless returns the error of a command that prints forever and cannot write one document.
func endless(words string) error {
	return usage(words, "-o json writes one document, but this output has no end; use -o jsonl")
}

// explain prints err with what to do next, and returns the exit code.
func (a *app) explain(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	f := a.failure(err)
	f.text = flagNames.Replace(f.text)
	if ctx.Err() != nil && f.code != exitInterrupted {
		f = &failure{code: exitInterrupted, text: "interrupted"}
	}
	if f.text == "" { // the user interrupted an endless command
		return f.code
	}
	a.say("error: %s", f.text)
	for line := range strings.Lines(f.next) {
		a.say("  %s", strings.TrimSuffix(line, "\n"))
	}
	return f.code
}

// say writes one message after the data printed so far. It escapes text from the file and from
// the command line; a line break inside a message is kept and indented.
func (a *app) say(format string, args ...any) {
	_ = a.stdout.Flush() // an error appears again at the last flush
	fmt.Fprintln(a.stderr, escapeLines(fmt.Sprintf(format, args...), "  "))
}

// flagNames turns settings that the library's errors name into flags.
var flagNames = strings.NewReplacer("set Options.Insecure", "add --insecure", "SkipExisting", "--skip-existing")

// interrupted ends an endless command without a message.
func interrupted() error { return &failure{code: exitInterrupted} }

// place returns the file or the address as the command line names it.
func (a *app) place() string {
	if a.flags.addr != "" {
		return a.flags.addr
	}
	return a.flags.db
}

// failure decides what an error means to the user.
func (a *app) failure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	f = &failure{code: exitError, text: err.Error()}
	if a.serverFailure(f, err) {
		return f
	}
	switch {
	case errors.Is(err, bolt.ErrLocked):
		return a.locked(err)
	case errors.Is(err, admin.ErrUnreachable):
		f.code = exitLocked
		f.next = "Check that the app is running and serves package admin there; --timeout waits longer."
	case errors.Is(err, admin.ErrNotLive):
		f.code = exitLocked
		f.text = fmt.Sprintf("%s: %s", a.place(), admin.ErrNotLive)
		f.next = "Start the app, with package admin in it; the file of a stopped app has no events."
	case errors.Is(err, admin.ErrDenied):
		f.next = "Run jobctl as the app's user; an HTTP address needs the app's token in the\nvariable JOBCTL_TOKEN."
	case errors.Is(err, bolt.ErrReplaced):
		f.next = "The app still has the old file. Save it with 'jobctl db backup' before the app ends,\nstop the app, and replace the file with the copy."
	case errors.Is(err, bolt.ErrOverwritten):
		f.code = exitDamaged
		f.next = "Stop the app. Then restore a backup, or save what is left with 'jobctl db salvage'."
	case errors.Is(err, fs.ErrNotExist):
		f.text = fmt.Sprintf("%s: no such file", a.flags.db)
		f.next = "Check --db; jobctl never creates a file."
	case errors.Is(err, fs.ErrPermission) && a.place() != "":
		f.next = "Run jobctl as the app's user."
	case errors.Is(err, pawl.ErrNotFound):
		f.code = exitNoMatch
		f.next = "It is done, or it was never in this file; 'jobctl job list' shows the jobs."
	case errors.Is(err, admin.ErrWorkflowJob):
		f.code = exitConflict
		f.next = "'jobctl wf cancel' ends the run and undoes its steps; --force cancels only the job,\nwhich leaves the run dead without undoing anything."
	case errors.Is(err, pawl.ErrConflict):
		f.code = exitConflict
		f.next = "'jobctl job show' has the details."
	case errors.Is(err, pawl.ErrCorrupt):
		f.code = exitDamaged
		f.next = "The file is damaged. Keep a copy of it, and restore a backup, or save its sound data\nwith 'jobctl db salvage'. If it was copied from a running app, copy it again with\n'jobctl db backup'."
	case errors.Is(err, bolt.ErrInsecure):
		f.next = "Run jobctl as the owner of the file, and fix what the error names; or accept the\nfile with --insecure."
	case errors.Is(err, pawl.ErrUnknownOutcome), errors.Is(err, pawl.ErrPoisoned):
		f.next = "Check the disk; 'jobctl job list' shows the state of the jobs."
	case errors.Is(err, syscall.ENOSPC):
		f.next = "Free space on the disk, and run the command again."
	case errors.Is(err, bolt.ErrNotQueue):
		f.next = "Check --db: it must name a file that pawl created."
	case errors.Is(err, pawl.ErrNewerFormat):
		f.code = exitFormat
		f.next = "Use the jobctl of the release that wrote the file."
	case errors.Is(err, bolt.ErrOlderFormat):
		f.code = exitFormat
		f.text = fmt.Sprintf("%s has the format of an older release", a.flags.db)
		f.next = "Use the jobctl of the release that wrote the file."
	case errors.Is(err, context.DeadlineExceeded):
		f.code = exitLocked
		f.text = fmt.Sprintf("%s did not answer within %v", a.place(), a.flags.timeout)
		f.next = "Check the app; --timeout waits longer."
	case errors.Is(err, context.Canceled):
		f.code, f.text = exitInterrupted, "interrupted"
	}
	return f
}

// holderPattern matches the process in the error of a locked file.
var holderPattern = regexp.MustCompile(`\(pid (\d+)(?:, (.*))?\)`)

// holder returns which process has the file open, if the error names it: " by pid 4121
// (billing-api)".
func holder(err error) string {
	_, behind, _ := strings.Cut(err.Error(), bolt.ErrLocked.Error())
	who, _, _ := strings.Cut(behind, ";")
	switch m := holderPattern.FindStringSubmatch(who); {
	case m == nil:
		return who
	case m[2] == "":
		return " by pid " + m[1]
	default:
		return fmt.Sprintf(" by pid %s (%s)", m[1], m[2])
	}
}
