package main

import (
	"context"

	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
	"github.com/gopawl/pawl/driver"
)

// bar shows the progress of long work on a terminal, and nothing elsewhere. Stop it before
// writing anything else.
func (a *app) bar(title string, unit progress.Unit) *progress.Bar {
	if !a.bars {
		return nil
	}
	return progress.Start(a.stderr, title, unit, a.colored(true))
}

// barFor returns a bar for work that reports its progress to a context.
func (a *app) barFor(ctx context.Context, title string, unit progress.Unit) (context.Context, *progress.Bar) {
	bar := a.bar(title, unit)
	if bar == nil {
		return ctx, nil
	}
	return driver.WithProgress(ctx, bar.Set), bar
}
