package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/bolt"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/cmd/jobctl/internal/progress"
	"github.com/gopawl/pawl/internal/pages"
)

// checkView is the object of `db check`.
type checkView struct {
	Path         string  `json:"path"`
	Sound        bool    `json:"sound"`
	PagesChecked bool    `json:"pages_checked"`
	Jobs         *int    `json:"jobs"`
	Error        *string `json:"error"`
}

func (a *app) dbCheckCommand() *cobra.Command {
	return a.command(&spec{
		use: "check", short: "compare every row of the file with every other",
		long: `Checks that every job is in exactly one state, that all indexes and counts agree,
that runs and schedules can be read, and all checksums. For a stopped app it first checks every page of the file; a
running app has its pages in use. The exit code is 5 if anything is wrong. While
the app runs, the check reads the file as of one moment, and pages that are freed
during the check are not reused until it ends.`,
		example: "  jobctl --db jobs.db db check",
		json:    "one object with path, sound, pages_checked, jobs (null if it is not\n  sound), error (null if it is)\n",
		run:     func(ctx context.Context, _ []string) error { return a.check(ctx) },
	})
}

func (a *app) check(ctx context.Context) error {
	if err := a.fileOnly("db check", "the server checks its own pages"); err != nil {
		return err
	}
	v := checkView{Path: a.place()}
	found := a.with(ctx, func(queue admin.Admin) error {
		s, err := queue.Stats(ctx) // this opens the file, and keeps others out of it
		if err != nil {
			return err
		}
		jobs := jobsOf(&s)
		v.Jobs = &jobs
		if s.Process == nil {
			if err := checkPages(ctx, a.flags.db); err != nil {
				return err
			}
			v.PagesChecked = true
		}
		ctx, bar := a.barFor(ctx, "checking "+a.place(), progress.Unit("steps"))
		defer bar.Stop()
		return queue.Check(ctx)
	})
	switch {
	case found == nil:
		v.Sound = true
	case !errors.Is(found, pawl.ErrCorrupt):
		return found // the check could not run
	default:
		text := found.Error()
		v.Error, v.Jobs = &text, nil
	}
	if !a.people() {
		return errors.Join(a.print(v), found)
	}
	if v.Sound {
		also := ""
		if v.PagesChecked {
			also = " and its pages"
		}
		fmt.Fprintf(a.stdout, "%s is sound: %s%s\n", plain.Text(v.Path), plural(*v.Jobs, "job"), also)
	}
	return found
}

// checkPages checks every page. The file must be open, so that no process writes to it.
func checkPages(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch err := pages.Check(ctx, f, info.Size()); {
	case errors.Is(err, pages.ErrForeign):
		return fmt.Errorf("%w: %w", bolt.ErrNotQueue, err)
	case errors.Is(err, pages.ErrDamaged):
		return fmt.Errorf("%w: %w", pawl.ErrCorrupt, err)
	default:
		return err
	}
}
