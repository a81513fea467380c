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
)

// ExportVersion is the version of exports that [Export] writes. It rises when a line has
// more to say than an older [Import] knows of: 2 has runs of workflows. An older one takes an
// export of this version that has none, and refuses one that has some.
const ExportVersion = 2

// ExportOptions are the settings of an export; nil and the zero value are the defaults.
type ExportOptions struct {
	// Filter chooses the jobs. Only an export of all jobs has the idempotency keys that
	// count as done, and the queues without a job that are paused.
	//
	// A run of a workflow goes with its job, and with it the runs that it waits for. Runs
	// without a job, which most that have ended are, go when the filter is empty, or asks for
	// a queue or a kind alone and they are of that; anything else it asks of jobs.
	Filter Filter

	// Progress is told how many jobs were written, and how many there are; -1 when that is
	// not known, because the filter asks for more than a queue and a state. Done never
	// falls, and is total in the last call of an export that came through. It is called
	// once for a page of jobs, and must be short.
	Progress func(done, total int64)
}

// Exported is what an export has.
type Exported struct {
	Queues, Jobs, Effects int64
	Runs                  int64 // of workflows; the jobs of open ones count among Jobs too

	// Damaged is how many jobs, runs and idempotency keys could not be read, so that the export
	// only names them, and Damage is what is wrong with the first [MaxDamage] of them.
	Damaged int64
	Damage  []Damage
}

// Damage is a job, a run or an idempotency key that could not be read.
type Damage struct {
	ID  pawl.ID // of the job or the run; zero for a key, and where not even that could be read
	Err error
}

// MaxDamage is how many damages a result has with their errors.
const MaxDamage = 100

// Export writes jobs to w, with all that is needed to store them again as they stand, as
// JSON lines for [Import] and for other programs:
//
//	{"pawl_export":2,"at":"2026-01-02T15:04:05.000000000Z","path":"jobs.db","library":"v1.2.0"}
//	{"queue":{"name":"email","paused":true}}
//	{"job":{"id":"0190163d-8694-739b-aea5-966c26f8ad91","kind":"send", …}}
//	{"run":{"run":"0190163d-8694-739b-aea5-966c26f8ad91","form":1,"part":1,"last":true, …}}
//	{"damaged":{"id":"0190163d-8694-739b-aea5-966c26f8ad92","error":"corrupt data: …"}}
//	{"effect":{"kind":"send","key":"order 7","until":"2026-01-03T15:04:05.000000000Z"}}
//	{"end":{"queues":1,"jobs":1,"effects":1,"damaged":1,"runs":1}}
//
// A job is a [Job] with its payload in base64 and its whole history. The last line counts
// the others, so a file that was cut is noticed. A nil error means that w got all of it.
// A job that cannot be read is named in the export and in the result, and is no error.
//
// A run of a workflow has one line or several, one behind the other, with all its rows; its
// job stands before them. Both are of one moment. The rows are in base64: "Runs in an export"
// in docs/internals/format.md says what is in them. A run of which a row is damaged is named only, with
// its job. Memory is bounded by what is stored of the largest run.
//
// While the app runs, an export of jobs in any state has each job once that is there from
// its beginning to its end, as it stood at some moment in between; one that comes or goes
// meanwhile may be missing. The keys that count as done are read after the jobs, so an
// effect that happens during the export is in it as a job that waits, or as a key that is
// done, or as both, and then the job is skipped. With a state in the filter, a job that
// leaves the state or comes to it meanwhile may be missing. For one moment of the whole
// queue, make a backup and export that.
func Export(ctx context.Context, a Admin, w io.Writer, opts *ExportOptions) (Exported, error) {
	if opts == nil {
		opts = new(ExportOptions)
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	x := exporter{from: a, to: json.NewEncoder(buffered), opts: opts, paused: make(map[string]bool), told: make(map[string]bool), carried: make(map[pawl.ID]bool)}
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

// exporter is an export under way.
type exporter struct {
	from    Admin
	to      *json.Encoder
	opts    *ExportOptions
	done    Exported
	total   int64            // jobs that there were at the beginning, -1 if not known
	paused  map[string]bool  // the queues of the file
	told    map[string]bool  // the queues that have their line
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
	if err := x.jobs(ctx, !whole); err != nil {
		return err
	}
	if err := x.runs(ctx); err != nil {
		return err
	}
	if whole {
		if err := x.effects(ctx); err != nil {
			return err
		}
	}
	d := x.done
	return x.to.Encode(exportLine{End: &exportEnd{d.Queues, d.Jobs, d.Effects, d.Damaged, d.Runs}})
}

// queue writes the line of a queue, once. In an export of some jobs it comes before the
// first job of the queue, and queues without one have no line: who imports three dead
// letters does not expect another queue to be paused.
func (x *exporter) queue(name string) error {
	if x.told[name] {
		return nil
	}
	x.told[name] = true
	x.done.Queues++
	return x.to.Encode(exportLine{Queue: &exportQueue{Text(name), x.paused[name]}})
}

// jobs writes the jobs. Those of a state come in an order in which a job that moves can
// be met again, so these are remembered (some 40 bytes each).
func (x *exporter) jobs(ctx context.Context, remember bool) error {
	seen := make(map[pawl.ID]struct{})
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

// jobOrRun writes a job, with its run where it is that of one.
func (x *exporter) jobOrRun(ctx context.Context, e *pawl.Envelope, damage error) error {
	if x.carried[e.ID] { // by a run that waits for it
		return nil
	}
	// A damaged job has no kind to tell it by, and its run is looked for all the same.
	if damage == nil && !strings.HasPrefix(e.Kind, runKind) || e.ID.IsZero() {
		return x.job(e, damage)
	}
	known, err := x.family(ctx, e.ID)
	if known || err != nil {
		return err
	}
	if damage == nil { // perhaps the run has ended and was removed since the jobs were listed
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

// effects writes the idempotency keys that count as done. One that cannot be read comes
// with the place behind it.
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

// progress tells how far the export is. Jobs that come while it goes on do not make it
// pass its total.
func (x *exporter) progress(end bool) {
	if x.opts.Progress == nil {
		return
	}
	done := x.done.Jobs + x.done.Damaged // which a damaged key makes larger in the last call alone
	switch {
	case end:
		x.opts.Progress(done, done)
	case x.total < 0:
		x.opts.Progress(done, -1)
	default:
		x.opts.Progress(done, max(done, x.total))
	}
}

// jobsChosen is how many jobs a filter chooses; -1 when the statistics do not say it.
func jobsChosen(stats Stats, f Filter) (n int64) {
	for _, q := range stats.Queues {
		if f.Queue != "" && f.Queue != q.Name || !anyOf(f.Queues, q.Name) {
			continue
		}
		for _, state := range pawl.States() {
			if (f.State == "" || f.State == state) && anyOf(f.States, state) {
				n += int64(*q.Of(state))
			}
		}
	}
	f.Queue, f.State, f.Queues, f.States = "", "", nil, nil
	if !f.isZero() {
		return -1
	}
	return n
}

// isZero reports whether the filter chooses all jobs, in any order.
func (f Filter) isZero() bool {
	return !f.lists() && f.State == "" && f.Queue == "" && f.Kind == "" && f.Reason == "" && f.DiedSince.IsZero() && f.DiedBefore.IsZero() &&
		f.Error == "" && len(f.Payload) == 0 && f.Since.IsZero() && f.Until.IsZero() && f.Before.IsZero()
}
