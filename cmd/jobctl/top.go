package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/top"
)

func (a *app) topCommand() *cobra.Command {
	return a.command(&spec{
		use: "top", short: "a screen of queues, jobs, dead jobs, and runs",
		long: `Shows queues with their rates, jobs, dead jobs, and workflow runs on the whole
screen. It reads a running app once a second. For a stopped app it shows a snapshot,
and releases the file between readings. ? lists the keys: those that change something
are upper case, and ask first. Without a terminal it prints what 'jobctl stats' does,
once.`,
		example: "  jobctl --db jobs.db top",
		run:     func(ctx context.Context, _ []string) error { return a.top(ctx) },
	})
}

func (a *app) top(ctx context.Context) error {
	if !a.people() || !a.terminal || !a.screen {
		return a.stats(ctx, &statsFlags{})
	}
	err := top.Run(ctx, top.Source{Open: a.openFor}, top.Options{
		Name: a.place(), NoColor: !a.colors(), UTC: a.flags.utc, Timeout: a.flags.timeout, Now: a.now,
	})
	if errors.Is(err, top.ErrNoTerminal) {
		return a.stats(ctx, &statsFlags{})
	}
	return err
}

// openFor is open for a screen that shows notes itself.
func (a *app) openFor(ctx context.Context, note func(string)) (admin.Admin, error) {
	screen := *a
	screen.note = note
	return screen.open(ctx)
}
