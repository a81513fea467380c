package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/admin"
	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/pages"
)

// infoView is the object of `db info`.
type infoView struct {
	Path      string       `json:"path"`
	Format    int          `json:"format"`
	Process   *processView `json:"process"`
	FileBytes *int64       `json:"file_bytes"`
	SizeBytes int64        `json:"size_bytes"`
	FreeBytes *int64       `json:"free_bytes"`
	MaxBytes  *int64       `json:"max_bytes"`
	PageBytes *int64       `json:"page_bytes"`
	Pages     *int64       `json:"pages"`
	Queues    int          `json:"queues"`
	Jobs      int          `json:"jobs"`
}

func (a *app) dbInfoCommand() *cobra.Command {
	return a.command(&spec{
		use: "info", short: "format, sizes and pages, and the process that has the file",
		long: `Prints the version of the file's format, its size, how much of it is free for reuse,
its pages, how many jobs it has, and which process has it open.`,
		example: "  jobctl --db jobs.db db info",
		json: `one object with
  path, format
  process (null: no app has the file): pid, name, version, started_at
  file_bytes (on the disk), size_bytes (in use, or free for reuse), free_bytes
    (of those; null if the file has no list of its free pages)
  max_bytes (in use, at which new jobs are refused; null if there is no bound,
    or if no app has the file open)
  page_bytes, pages; null, as file_bytes is, for a file on another machine
  queues, jobs (how many)
`,
		run: func(ctx context.Context, _ []string) error { return a.info(ctx) },
	})
}

func (a *app) info(ctx context.Context) error {
	s, err := read(ctx, a.with, func(queue admin.Admin) (admin.Stats, error) { return queue.Stats(ctx) })
	if err != nil {
		return err
	}
	all := viewOfStats(&s, a.now())
	v := infoView{
		Path: s.Path, Format: s.Format, Process: all.Process, SizeBytes: s.Size, FreeBytes: all.FreeBytes, MaxBytes: all.MaxBytes,
		Queues: len(s.Queues), Jobs: jobsOf(&s),
	}
	if a.flags.addr == "" && a.flags.server == "" {
		v.measure(a.flags.db)
	}
	if !a.people() {
		return a.print(v)
	}
	a.printInfo(&v, &s)
	return nil
}

// measure reads properties of the file itself, in a way that does not disturb a process that has
// it open.
func (v *infoView) measure(path string) {
	f, err := os.Open(path)
	if err != nil {
		return // the data from the app suffices
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		size := info.Size()
		v.FileBytes = &size
	}
	if meta, err := pages.Newest(f); err == nil {
		size := int64(meta.PageSize)
		count := v.SizeBytes / size
		v.PageBytes, v.Pages = &size, &count
	}
}

func (a *app) printInfo(v *infoView, s *admin.Stats) {
	a.fact("path", "%s", plain.Text(v.Path))
	if p := v.Process; p != nil {
		state := fmt.Sprintf("live, pid %d (%s), pawl %s, since %s", p.PID, plain.Text(p.Name), plain.Text(p.Version), p.StartedAt)
		if p.PID == 0 { // the apps of a server
			state = "live, " + p.Name
		}
		a.fact("state", "%s", state)
	} else {
		a.fact("state", "stopped: no app has it open")
	}
	a.fact("format", "%d", v.Format)
	if v.FileBytes != nil {
		a.fact("file", "%s on the disk", plain.Size(*v.FileBytes))
	}
	a.fact("in use", "%s%s", plain.Size(s.Size), space(s.Storage))
	if v.Pages != nil {
		a.fact("pages", "%d of %s", *v.Pages, plain.Size(*v.PageBytes))
	}
	a.fact("jobs", "%s in %s", plural(v.Jobs, "job"), plural(v.Queues, "queue"))
}

// jobsOf returns the total number of jobs.
func jobsOf(s *admin.Stats) (n int) {
	var all pawl.Counts
	for _, q := range s.Queues {
		driver.AddCounts(&all, q.Counts)
	}
	return sum(&all)
}

// sum returns the number of jobs in all states.
func sum(c *pawl.Counts) (n int) {
	for _, state := range pawl.States() {
		n += *driver.CountOf(c, state)
	}
	return n
}
