package main

import (
	"cmp"
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
	"github.com/gopawl/pawl/postgres"
	"github.com/gopawl/pawl/redis"
)

// failure is an error with its exit code and what to do next.
type failure struct {
	code int
	text string
	next string // a sentence; "" if the text suffices
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

// partial is a failure whose text says how much was done. It is printed after an interruption, too.
type partial struct{ *failure }

func (p partial) Unwrap() error { return p.failure }

// exampled adds the example to an error about unclear arguments. It also does so for arguments that
// the queue rejected: those of a list, and those that name runs.
func exampled(words, examples string, err error) error {
	f := new(failure)
	switch known := errors.As(err, &f); {
	case errors.As(err, new(unclear)):
	case !known && errors.As(err, new(*pawl.InvalidError)) && (strings.HasPrefix(words, "wf ") || strings.HasPrefix(words, "sched ") || strings.HasSuffix(words, " list") || words == "dead summary"):
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
		f = interruption(err, f)
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

// interruption returns what an error means after an interruption. A change that may have been made remains an
// unknown outcome.
func interruption(err error, f *failure) *failure {
	if !errors.As(err, new(partial)) && !errors.Is(err, pawl.ErrUnknownOutcome) {
		return &failure{code: exitInterrupted, text: "interrupted"}
	}
	text := strings.ReplaceAll(f.text, ": "+context.Canceled.Error(), "")
	return &failure{exitInterrupted, "interrupted: " + text, f.next}
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

// remedy is what an error means to the user: its exit code, and what to do next. That depends on
// where the queue is: in a file, behind the address of an app, or on a server.
type remedy struct {
	is                error
	code              int               // 0 for exitError
	next              string            // what to do for any queue; "" if that depends on the queue, or if the text suffices
	file, app, server string            // what to do, by where the queue is
	text              func(*app) string // in place of the error's text; nil to keep it
}

// remedies are in the order in which they are tried: an error may match several.
var remedies = []remedy{
	{is: bolt.ErrReplaced, file: "The app still has the old file. Save it with 'jobctl db backup' before the app ends,\nstop the app, and replace the file with the copy.",
		app: "The app still has the old file. Save it with 'jobctl db backup' before the app ends."},
	{is: bolt.ErrOverwritten, code: exitDamaged, file: "Stop the app. Then restore a backup, or save what is left with 'jobctl db salvage'.",
		app: "Stop the app, and restore a backup of its file."},
	{is: pawl.ErrCorrupt, code: exitDamaged,
		file:   "The file is damaged. Keep a copy of it, and restore a backup, or save its sound data\nwith 'jobctl db salvage'. If it was copied from a running app, copy it again with\n'jobctl db backup'.",
		app:    "The queue of the app is damaged. Keep a copy of its data, and restore a backup.",
		server: "The queue is damaged. Keep a dump of the database, and restore a backup."},
	// This comes before the errors that say why there is no answer, whose remedies are to run the command again.
	{is: pawl.ErrUnknownOutcome, next: lookFirst},
	{is: postgres.ErrUnavailable, code: exitLocked, next: "Check the host and the port in --db, and the server; --timeout waits longer."},
	{is: postgres.ErrPermission, next: "Check the user in --db and the password: PGPASSWORD, or a passfile such as ~/.pgpass."},
	{is: postgres.ErrNotQueue, next: "Check the database in --db; its parameter schema names another schema than pawl. jobctl creates no\nqueue, except for 'jobctl import --create'."},
	{is: postgres.ErrReadOnly, next: "Name the primary in --db."},
	{is: postgres.ErrOlderFormat, code: exitFormat, next: "Start an app of this release, which upgrades the schema."},
	{is: redis.ErrUnavailable, code: exitLocked, next: "Check the host and the port in --db, and the server; --timeout waits longer."},
	{is: redis.ErrNotQueue, next: "Check the server and the number of the database in --db; its parameter name names another queue than pawl.\njobctl creates no queue, except for 'jobctl import --create'."},
	{is: redis.ErrOlderFormat, code: exitFormat, next: "Drain the queue with the release that wrote it."},
	{is: admin.ErrUnreachable, code: exitLocked, next: "Check that the app is running and serves package admin there; --timeout waits longer."},
	{is: admin.ErrNotLive, code: exitLocked, next: "Start the app, with package admin in it; the file of a stopped app has no events.",
		text: func(a *app) string { return fmt.Sprintf("%s: %s", a.place(), admin.ErrNotLive) }},
	{is: admin.ErrDenied, next: "Run jobctl as the app's user; an HTTP address needs the app's token in the\nvariable JOBCTL_TOKEN."},
	{is: fs.ErrNotExist, file: "Check --db; jobctl never creates a file.", text: (*app).noFile},
	{is: fs.ErrPermission, file: "Run jobctl as the app's user."},
	{is: pawl.ErrNotFound, code: exitNoMatch, next: "It is done, or it never existed; 'jobctl job list' shows the jobs."},
	{is: admin.ErrWorkflowJob, code: exitConflict, next: "'jobctl wf cancel' ends the run and undoes its steps; --force cancels only the job,\nwhich leaves the run dead without undoing anything."},
	{is: pawl.ErrConflict, code: exitConflict, next: "'jobctl job show' has the details."},
	{is: pawl.ErrQueueFull, next: "'jobctl stats' shows how many jobs wait, and the bound."},
	{is: bolt.ErrInsecure, next: "Run jobctl as the owner of the file, and fix what the error names; or accept the\nfile with --insecure."},
	{is: pawl.ErrPoisoned, file: "Check the disk; " + listShows, app: "Check the disk of the app; " + listShows, server: "Check the server; " + listShows},
	{is: bolt.ErrDisk, next: "Free space on that disk, or check it, and run the command again."},
	{is: syscall.ENOSPC, next: "Free space on the disk, and run the command again."},
	{is: bolt.ErrNotQueue, next: "Check --db: it must name a file that pawl created. If it is the SQLite database of an app, start the app, with\npackage admin in it."},
	{is: pawl.ErrNewerFormat, code: exitFormat, file: "Use the jobctl of the release that wrote the file.",
		app: "Use the jobctl of the app's release.", server: "Use the jobctl of the release that upgraded the schema."},
	{is: bolt.ErrOlderFormat, code: exitFormat, next: "Use the jobctl of the release that wrote the file.",
		text: func(a *app) string { return a.place() + " has the format of an older release" }},
	{is: context.DeadlineExceeded, code: exitLocked, file: "Check the app; --timeout waits longer.", app: "Check the app; --timeout waits longer.", server: "Check the server; --timeout waits longer.",
		text: func(a *app) string { return fmt.Sprintf("%s did not answer within %v", a.place(), a.flags.timeout) }},
	{is: context.Canceled, code: exitInterrupted, text: func(*app) string { return "interrupted" }},
}

const (
	listShows = "'jobctl job list' shows the state of the jobs."
	lookFirst = "It may have been done: look before you run the command again."
)

// by returns one of three texts, by where the queue is.
func (a *app) by(file, app, server string) string {
	switch {
	case a.flags.addr != "":
		return app
	case a.flags.server != "":
		return server
	}
	return file
}

// noFile reports a missing file of --db. Another queue has no file: its error names what is missing.
func (a *app) noFile() string { return a.by(a.flags.db+": no such file", "", "") }

// failure decides what an error means to the user.
func (a *app) failure(err error) *failure {
	var f *failure
	var missing *admin.UnsupportedError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, bolt.ErrLocked):
		return a.locked(err)
	case a.flags.server != "" && errors.As(err, &missing) && missing.Operation == "events":
		return &failure{exitError, "a queue on a server has no " + missing.Operation, "An app has them: name one that serves package admin with --addr."}
	}
	f = &failure{code: exitError, text: err.Error()}
	for _, r := range remedies {
		if !errors.Is(err, r.is) {
			continue
		}
		f.code = cmp.Or(r.code, exitError)
		f.next = cmp.Or(r.next, a.by(r.file, r.app, r.server))
		if r.text != nil {
			f.text = cmp.Or(r.text(a), f.text)
		}
		return f
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

// locked explains which process has the file, and why its app could not be asked: a stuck app
// needs another remedy than an app that does not serve, or that serves another user.
func (a *app) locked(err error) *failure {
	f := &failure{
		code: exitLocked,
		text: fmt.Sprintf("%s is locked%s", a.flags.db, holder(err)),
	}
	_, why, asked := strings.Cut(err.Error(), "its app could not be asked: ")
	switch {
	case strings.HasSuffix(f.text, "(jobctl)"):
		f.next = "Another jobctl has the file open: try again when it has ended."
	case !asked:
		f.text += " and has no admin endpoint"
		f.next = "Enable one (package admin), stop the app, or read a backup made by the app."
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(why, "no answer within"):
		f.text += ", which does not answer"
		f.next = "It is stuck or suspended, or the machine is very busy: try again, and check the\n" +
			"process. Once it has ended, jobctl works on the file; nothing that was\n" +
			"acknowledged is lost."
	case errors.Is(err, fs.ErrPermission), errors.Is(err, admin.ErrDenied):
		f.text += ", and this user may not ask its app: " + why
		f.next = "Run jobctl as the app's user, or as the superuser."
	default:
		f.text += ", and its app could not be asked: " + why
		f.next = "Check the app; only its user and the superuser may ask it."
	}
	return f
}
