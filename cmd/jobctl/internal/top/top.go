// Package top is the screen of jobctl top: the queues of a file with their rates, the jobs
// that run, wait and are dead, and what an operator does to them.
//
// A model holds what is shown. It never waits: everything that takes time is a reading or
// an action, carried out by the link, which is the only one that talks to an admin.Admin,
// one use at a time, and whose reply comes back as a message. While an app serves its
// queue a reading follows every second; it is the statistics and the rows that are visible,
// never a stream of all events, which would cost the queue something for every job. Of a
// stopped app there is a snapshot: the file is let go of after each reading, so that the
// app can start at any time, and every two seconds somebody looks whether it did.
//
// Nothing out of the file reaches the terminal as it is: see safe.
package top

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/gopawl/pawl/admin"
)

// ErrNoTerminal says that there is no terminal to draw on: input or output is something
// else, or a terminal that can only write one line after the other (TERM=dumb). Print the
// statistics once in its place.
var ErrNoTerminal = errors.New("no terminal to draw on")

// Source finds who has the queue.
type Source struct {
	// Open returns the app that serves the queue, or else its file, as [admin.Open] does.
	// It is called again whenever the app went away, and every two seconds while there is
	// none, so it must be cheap. While Run shows the screen nobody else may write to the
	// terminal: what [admin.FileOptions.Notice] would be told goes to notice, which puts it
	// on the screen.
	Open func(ctx context.Context, notice func(string)) (admin.Admin, error)
}

// Options say how to show it. The zero value is right for a command.
type Options struct {
	Name     string        // of what is shown, until the statistics name it: a file or an address
	NoColor  bool          // also with a NO_COLOR that is not empty
	UTC      bool          // times of day in UTC, not in the time zone of this machine
	Refresh  time.Duration // between two readings of a live app; 0 means a second
	Patience time.Duration // for one reading or action; 0 means five seconds

	Input  *os.File         // nil means os.Stdin
	Output *os.File         // nil means os.Stdout
	Now    func() time.Time // nil means time.Now
}

// Run shows the queue until the user leaves, and returns nil then. When ctx ends or the
// process is told to by SIGINT, SIGTERM or SIGHUP, the error matches context.Canceled or
// what ctx ended with. [ErrNoTerminal] comes before anything is opened. Everything else is shown on the screen
// and ends nothing. The terminal is as it was before when Run returns, also after a panic.
func Run(ctx context.Context, source Source, opts Options) error {
	opts = opts.withDefaults()
	if !drawable(opts) {
		return ErrNoTerminal
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	l := &link{open: source.Open, patience: opts.Patience}
	// A reading may be under way. It ends with ctx, and the file or the connection is let
	// go of when it has.
	ctx, cancel := context.WithCancel(ctx)
	defer l.close()
	defer cancel()

	program := tea.NewProgram(newModel(ctx, l, opts),
		tea.WithContext(ctx),
		tea.WithInput(opts.Input),
		tea.WithOutput(opts.Output),
		tea.WithoutSignalHandler(),
		tea.WithEnvironment(environment(opts.NoColor)))
	_, err := program.Run()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("show queue: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("show queue: %w", err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Refresh <= 0 {
		o.Refresh = time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Second
	}
	if o.Input == nil {
		o.Input = os.Stdin
	}
	if o.Output == nil {
		o.Output = os.Stdout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func drawable(o Options) bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(o.Input.Fd())) && term.IsTerminal(int(o.Output.Fd()))
}

// environment is what the renderer finds out the colours from. It knows NO_COLOR by the
// words for true alone, while any value is meant to count (no-color.org).
func environment(noColor bool) []string {
	env := os.Environ()
	if noColor || os.Getenv("NO_COLOR") != "" {
		env = append(env, "NO_COLOR=1")
	}
	return env
}
