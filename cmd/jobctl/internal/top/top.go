// Package top is the screen of jobctl top: the queues of a file with their rates, the jobs that
// run, wait and are dead, and an operator's actions on them.
//
// A model holds what is shown. It never waits: everything that takes time is a reading or an
// action. The link carries these out, one at a time; only the link uses an admin.Admin, and its
// reply arrives as a message. While an app serves its queue, a reading follows every second. It
// contains the statistics and the visible rows, never a stream of all events, which would cost
// the queue time for every job. For a stopped app there is a snapshot: the file is closed after
// each reading, so that the app can start at any time, and every two seconds the screen checks
// whether it did.
//
// All text from the file is made safe before it reaches the terminal: see safe.
package top

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/gopawl/pawl/admin"
)

// ErrNoTerminal means that there is no terminal to draw on: input or output is something else,
// or a terminal that can only write one line after another (TERM=dumb). Print the statistics
// once instead.
var ErrNoTerminal = errors.New("no terminal to draw on")

// Source finds the process that has the queue.
type Source struct {
	// Open returns the app that serves the queue, or else its file, as [admin.Open] does. It is
	// called again whenever the app disconnects, and every two seconds while there is no app,
	// so it must be cheap. While Run shows the screen, nothing else may write to the terminal:
	// pass the sentences of offline.Options.Notice to notice, which puts them on the screen.
	Open func(ctx context.Context, notice func(string)) (admin.Admin, error)
}

// Options configures the screen. The zero value is right for a command.
type Options struct {
	Name    string        // shown until the statistics name the file or the address
	NoColor bool          // no colors, even if NO_COLOR is not set
	UTC     bool          // times of day in UTC, not in the time zone of this machine
	Refresh time.Duration // between two readings of a live app; 0 means a second
	Timeout time.Duration // for one reading or action; 0 means five seconds

	Input  *os.File         // nil means os.Stdin
	Output *os.File         // nil means os.Stdout
	Now    func() time.Time // nil means time.Now
}

// Run shows the queue until the user quits, and then returns nil. If ctx ends, or the process
// receives SIGINT, SIGTERM or SIGHUP, the error matches context.Canceled or the cause of ctx.
// Run returns [ErrNoTerminal] before it opens anything. It shows every other error on the screen
// and continues. When Run returns, even after a panic, the terminal is restored.
func Run(ctx context.Context, source Source, opts Options) error {
	opts = opts.withDefaults()
	if !drawable(opts) {
		return ErrNoTerminal
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	l := &link{open: source.Open, timeout: opts.Timeout}
	// A reading may be in progress. It ends with ctx, and then closes the file or the
	// connection.
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
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	o.Input, o.Output = cmp.Or(o.Input, os.Stdin), cmp.Or(o.Output, os.Stdout)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func drawable(o Options) bool {
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(o.Input.Fd())) && term.IsTerminal(int(o.Output.Fd()))
}

// environment returns the variables from which the renderer derives the colors.
func environment(noColor bool) []string {
	env := slices.DeleteFunc(os.Environ(), func(one string) bool { return strings.HasPrefix(one, "NO_COLOR=") })
	if noColor {
		env = append(env, "NO_COLOR=1")
	}
	return env
}
