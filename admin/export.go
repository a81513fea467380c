package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/workflow"
)

// ExportVersion is the version of exports that [Export] writes. It rises when a line contains
// more than an older [Import] understands: version 2 has workflow runs, version 3 schedules, and version 4
// groups. An older Import accepts an export without them, and rejects one with them.
const ExportVersion = 4

// ExportOptions configures an export; nil and the zero value mean the defaults.
type ExportOptions struct {
	// Filter selects the jobs. Only an export of all jobs contains the idempotency keys that
	// count as done, the paused queues that have no job, schedules, and groups.
	//
	// A workflow run is exported with its job, and so are the runs that it waits for. Most runs
	// that have ended have no job. They are exported if the filter is empty, or if it only
	// selects their queue or kind. Any other condition applies only to jobs.
	Filter Filter

	// Progress receives how many jobs were written, and how many there are; -1 if that is
	// unknown, because the filter asks for more than a queue and a state. Done never decreases,
	// and equals total in the last call of a successful export. Export calls it once per page of
	// jobs; it must return quickly.
	Progress func(done, total int64)
}

// Exported counts what an export contains.
type Exported struct {
	Queues, Jobs, Effects int64
	Runs                  int64 // of workflows; the jobs of open runs count among Jobs too
	Schedules, Groups     int64

	// Damaged is how many jobs, runs, schedules, groups and idempotency keys could not be read, so that the export
	// only names them. Damage describes the first [MaxDamage] of them.
	Damaged int64
	Damage  []Damage
}

// Damage describes a job, a run, a schedule, a group or an idempotency key that could not be read.
type Damage struct {
	ID  pawl.ID // of the job or the run; zero for a key, a schedule, or a group, and if the ID could not be read either
	Err error
}

// MaxDamage is how many of the damaged items a result describes.
const MaxDamage = 100

// Export writes jobs to w as JSON lines for [Import] and for other programs, with everything
// needed to store them again unchanged:
//
//	{"pawl_export":4,"at":"2026-01-02T15:04:05.000000000Z","path":"jobs.db","library":"v1.2.0"}
//	{"queue":{"name":"email","paused":true}}
//	{"schedule":{"name":"nightly","form":1, …}}
//	{"group":{"name":"import/7","form":1, …}}
//	{"job":{"id":"0190163d-8694-739b-aea5-966c26f8ad91","kind":"send", …}}
//	{"run":{"run":"0190163d-8694-739b-aea5-966c26f8ad91","form":1,"part":1,"last":true, …}}
//	{"damaged":{"id":"0190163d-8694-739b-aea5-966c26f8ad92","error":"corrupt data: …"}}
//	{"effect":{"kind":"send","key":"order 7","until":"2026-01-03T15:04:05.000000000Z"}}
//	{"end":{"queues":1,"jobs":1,"effects":1,"damaged":1,"runs":1,"schedules":1,"groups":1}}
//
// A job is a [Job] with its payload in base64 and its whole history. The last line counts the
// other lines, so that a truncated file is detected. A nil error means that w received
// everything. A job that cannot be read is named in the export and in the result, and is not an
// error.
//
// A workflow run has one or more consecutive lines with all its rows, after the line of its job.
// Both show the same moment. The rows are in base64; "Runs in an export" in
// docs/internals/format.md describes them. A run with a damaged row is only named, and so is its
// job. The memory used is proportional to the stored size of the largest run.
//
// A schedule has a line with its rows in base64, which "Schedules in an export" describes. While the
// app runs, schedules are read before the jobs. A tick that fires during the export may therefore
// fire again in the target, after its job was exported.
//
// A group has a line with its rows in base64, which "Groups in an export" describes. It is read before the jobs too,
// and its counts follow from the members that are stored.
//
// While the app runs, an export of jobs in any state has each job that exists from beginning to
// end exactly once, as it was at some moment in between; a job that arrives or leaves during the
// export may be missing. The keys that count as done are read after the jobs. An effect that
// happens during the export therefore appears as a waiting job, as a done key, or as both, in
// which case the job is skipped. With a state in the filter, a job that enters or leaves that
// state during the export may be missing. To export the whole queue at one moment, make a backup
// and export that.
func Export(ctx context.Context, a Admin, w io.Writer, opts *ExportOptions) (Exported, error) {
	if opts == nil {
		opts = new(ExportOptions)
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	x := exporter{from: a, to: json.NewEncoder(buffered), opts: opts, paused: make(map[string]bool), written: make(map[string]bool), carried: make(map[pawl.ID]bool)}
	x.to.SetEscapeHTML(false)
	err := x.all(ctx)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return x.done, fmt.Errorf("export: %w", err)
	}
	x.progress(true)
	return x.done, nil
}

// exporter is an export in progress.
type exporter struct {
	from    Admin
	to      *json.Encoder
	opts    *ExportOptions
	done    Exported
	total   int64            // jobs at the beginning, -1 if unknown
	paused  map[string]bool  // the queues of the file
	written map[string]bool  // the queues that have their line
	carried map[pawl.ID]bool // the runs that were written, or named as damaged
}

func (x *exporter) all(ctx context.Context) error {
	stats, err := x.from.Stats(ctx)
	if err != nil {
		return err
	}
	whole := x.opts.Filter.isZero()
	x.total = jobsChosen(stats, x.opts.Filter)
	err = x.to.Encode(exportHeader{ExportVersion, Stamp{time.Now()}, Text(stats.Path), libraryVersion()})
	for _, q := range stats.Queues {
		x.paused[q.Name] = q.Paused
		if err == nil && whole {
			err = x.queue(q.Name)
		}
	}
	if err != nil {
		return err
	}
	steps := []step{x.jobs, x.runs}
	if whole {
		steps = []step{x.schedules, x.groups, x.jobs, x.runs, x.effects}
	}
	if err := inOrder(ctx, steps...); err != nil {
		return err
	}
	d := x.done
	return x.to.Encode(exportLine{End: &exportEnd{d.Queues, d.Jobs, d.Effects, d.Damaged, d.Runs, d.Schedules, d.Groups}})
}

// step is a part of an export or an import.
type step func(ctx context.Context) error

// inOrder carries out steps up to the first error.
func inOrder(ctx context.Context, steps ...step) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// queue writes the line of a queue, once. In an export of some jobs, it comes before the first
// job of the queue, and queues without a job have no line: a user who imports three dead jobs
// does not expect another queue to be paused.
func (x *exporter) queue(name string) error {
	if x.written[name] {
		return nil
	}
	x.written[name] = true
	x.done.Queues++
	return x.to.Encode(exportLine{Queue: &exportQueue{Text(name), x.paused[name]}})
}

// jobs writes the jobs. Jobs of one state are listed in an order in which a job that moves may
// appear twice, so jobs remembers them (about 40 bytes each), except in an export of all.
func (x *exporter) jobs(ctx context.Context) error {
	remember, seen := !x.opts.Filter.isZero(), make(map[pawl.ID]struct{})
	for page, err := range pagesOf(ctx, x.from, Query{Filter: x.opts.Filter, Detail: Whole, Limit: MaxLimit}) {
		if err != nil {
			return err
		}
		for _, listed := range page.Jobs {
			if remember {
				if _, again := seen[listed.Job.ID]; again && !listed.Job.ID.IsZero() {
					continue
				}
				seen[listed.Job.ID] = struct{}{}
			}
			if err := x.jobOrRun(ctx, listed.Job, listed.Err); err != nil {
				return err
			}
		}
		x.progress(false)
	}
	return nil
}

// jobOrRun writes a job, with its run if it belongs to one.
func (x *exporter) jobOrRun(ctx context.Context, e *pawl.Envelope, damage error) error {
	if x.carried[e.ID] { // a run that waits for it wrote it already
		return nil
	}
	// A damaged job has no kind to recognize it by, so look for its run anyway.
	if damage == nil && !strings.HasPrefix(e.Kind, workflow.KindPrefix) || e.ID.IsZero() {
		return x.job(e, damage)
	}
	known, err := x.family(ctx, e.ID)
	if known || err != nil {
		return err
	}
	if damage == nil { // the run may have ended and been removed since the jobs were listed
		if _, err := x.from.Job(ctx, e.ID); errors.Is(err, pawl.ErrNotFound) {
			return nil
		}
	}
	return x.job(e, damage)
}

func (x *exporter) job(e *pawl.Envelope, damage error) error {
	if damage != nil {
		return x.damage(e.ID, damage)
	}
	if err := x.queue(e.Queue); err != nil {
		return err
	}
	job := JobOf(e, PayloadBase64)
	x.done.Jobs++
	return x.to.Encode(exportLine{Job: &job})
}

// effects writes the idempotency keys that count as done. An unreadable key comes with the
// position after it.
func (x *exporter) effects(ctx context.Context) error {
	for after := ""; ; {
		effects, next, damage := x.from.Effects(ctx, after)
		if damage != nil && !errors.Is(damage, pawl.ErrCorrupt) {
			return damage
		}
		for _, effect := range effects {
			line := exportLine{Effect: &exportEffect{Text(effect.Kind), Text(effect.Key), Stamp{effect.Until}}}
			if err := x.to.Encode(line); err != nil {
				return err
			}
			x.done.Effects++
		}
		if damage != nil {
			if next == "" {
				damage = fmt.Errorf("%w; idempotency keys behind it may be missing", damage)
			}
			if err := x.damage(pawl.ID{}, damage); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			return nil
		}
	}
}

// damage writes that something could not be read.
func (x *exporter) damage(id pawl.ID, err error) error {
	x.done.Damaged++
	if len(x.done.Damage) < MaxDamage {
		x.done.Damage = append(x.done.Damage, Damage{id, err})
	}
	d := exportDamage{Error: Text(err.Error())}
	if !id.IsZero() {
		d.ID = &id
	}
	return x.to.Encode(exportLine{Damaged: &d})
}

// progress reports how far the export is. Jobs that arrive during the export do not move it past
// its total.
func (x *exporter) progress(end bool) {
	if x.opts.Progress == nil {
		return
	}
	done := x.done.Jobs + x.done.Damaged // a damaged key increases it in the last call only
	switch {
	case end:
		x.opts.Progress(done, done)
	case x.total < 0:
		x.opts.Progress(done, -1)
	default:
		x.opts.Progress(done, max(done, x.total))
	}
}

// jobsChosen returns how many jobs a filter selects; -1 if the statistics do not contain it.
func jobsChosen(stats Stats, f Filter) (n int64) {
	for _, q := range stats.Queues {
		if !inQueue(&f, q.Name) {
			continue
		}
		for _, state := range pawl.States() {
			if (f.State == "" || f.State == state) && anyOf(f.States, state) {
				n += int64(*driver.CountOf(&q.Counts, state))
			}
		}
	}
	f.Queue, f.State, f.Queues, f.States = "", "", nil, nil
	if !f.isZero() {
		return -1
	}
	return n
}

// isZero reports whether the filter selects all jobs, in any order.
func (f Filter) isZero() bool {
	return !f.lists() && f.State == "" && f.Queue == "" && f.Kind == "" && f.Group == "" && f.Reason == "" &&
		f.DiedSince.IsZero() && f.DiedBefore.IsZero() && f.Error == "" && len(f.Payload) == 0 && f.Since.IsZero() && f.Until.IsZero() && f.Before.IsZero()
}
