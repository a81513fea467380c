// Package workflows compares pawl's durable workflows with other libraries. Every engine takes its turn
// in every round, in its own process, so that they share the machine's conditions.
package workflows

import (
	"context"
	"io"
)

// Options choose what a comparison runs. Zero fields mean the defaults.
type Options struct {
	Quick    bool   // a short window and one round
	Only     string // regular expression of engines
	Callers  int    // only this number of callers
	Rounds   int
	Disk     string // a folder on the disk to measure
	Profiles string // a folder for CPU profiles
}

// New returns a comparison, or an error if no engine is chosen.
func New(o Options) (*Runner, error) {
	r := &Runner{size: fullSize, disk: o.Disk, profiles: o.Profiles}
	if o.Quick {
		r.size = quickSize
	}
	return r, r.choose(o.Only, o.Callers, o.Rounds)
}

// Compare runs the comparison and prints it as tables, or as JSON lines. It writes the report to page
// unless page is "" or the output is JSON. It fails if pawl failed; peers may.
func (r *Runner) Compare(ctx context.Context, w io.Writer, asJSON bool, page string) error {
	if err := r.run(ctx); err != nil {
		return err
	}
	c := comparison{results: r.results, engines: r.engines, size: r.size, failed: r.failed, untraced: r.untraced, load: r.load}
	if asJSON {
		if err := c.results.JSON(w); err != nil {
			return err
		}
		return c.own()
	}
	c.table(w)
	if err := c.own(); err != nil || page == "" {
		return err
	}
	return c.write(page, r.disk)
}
