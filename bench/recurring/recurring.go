// Package recurring compares what becomes of the ticks of recurring jobs when a program is restarted and when
// summer time begins and ends, and how well limits of a rate hold.
package recurring

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options bound a comparison.
type Options struct {
	Quick bool   // fewer restarts and jobs
	Disk  string // a folder on the disk to use
}

// Compare prints three tables. All systems of a table run at the same time.
func Compare(ctx context.Context, out io.Writer, o Options) error {
	dir, err := os.MkdirTemp(o.Disk, "pawl-recurring-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // a server is another user if this one is root
		return err
	}

	restarts := plan{restarts: 10, up: 12 * time.Second, down: 3 * time.Second, last: time.Minute}
	rates := load{Jobs: 400, Starts: 20, Per: time.Second}
	if o.Quick {
		restarts, rates = plan{restarts: 1, up: 3 * time.Second, down: 2 * time.Second, last: 3 * time.Second}, load{Jobs: 40, Starts: 20, Per: time.Second}
	}
	ticked, err := each(contenders(), func(s contender) (row, error) { return s.restarted(ctx, dir, restarts) })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Ticks of a schedule of each second over %d restarts, half of them by SIGKILL, each %v after the start, with pauses of %v:\n\n",
		restarts.restarts, restarts.up, restarts.down)
	print(out, row{"system", "ticks", "lost", "doubled"}, ticked)

	fmt.Fprintf(out, "\nTimes on a day when summer time begins or ends, where a daily job should have one and an hourly one 23 or 25:\n\n")
	summers, err := summer()
	if err != nil {
		return err
	}
	print(out, row{"system", "daily, spring", "daily, autumn", "hourly, spring", "hourly, autumn"}, summers)

	var limited []contender
	for _, s := range contenders() {
		if s.rate != nil {
			limited = append(limited, s)
		}
	}
	started, err := each(limited, func(s contender) (row, error) { return s.limited(ctx, dir, rates) })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nStarts of %d jobs with a limit of %d in %v:\n\n", rates.Jobs, rates.Starts, rates.Per)
	print(out, row{"system", "processes", "most in a period", "jobs/s"}, started)
	return nil
}

type row []string

// each calls measure for all systems at the same time, and returns the rows in their order.
func each(of []contender, measure func(contender) (row, error)) ([]row, error) {
	rows := make([]row, len(of))
	var group errgroup.Group
	for i, s := range of {
		group.Go(func() (err error) {
			if rows[i], err = measure(s); err != nil {
				err = fmt.Errorf("%s: %w", s.name, err)
			}
			return err
		})
	}
	err := group.Wait()
	return rows, err
}

// print writes a table in Markdown.
func print(out io.Writer, heads row, rows []row) {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.Debug)
	rule := make(row, len(heads))
	for i := range rule {
		rule[i] = "---"
	}
	for _, r := range append([]row{heads, rule}, rows...) {
		fmt.Fprintf(w, "\t %s\t\n", strings.Join(r, "\t "))
	}
	_ = w.Flush() // into memory
	_, _ = io.Copy(out, &b)
}
