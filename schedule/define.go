package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/gopawl/pawl/workflow"
)

// MaxName is the maximum length of the name of a schedule in bytes.
const MaxName = 128

// Definition is a schedule with what each of its ticks does. Make one with [Job], [Flow],
// or [Envelope].
type Definition struct {
	name   string
	terms  Terms
	action action
	with   []pawl.Option
	err    error
}

// Option sets one property of a [Definition]. A later option overrides an earlier one.
type Option func(*Definition)

// In sets the time zone, by its IANA name. The default is UTC. The expression can name one as well,
// with the prefix TZ=.
func In(zone string) Option { return func(d *Definition) { d.terms.Zone = zone } }

// CatchUp sets how many late ticks fire after a time in which no process was running or the machine
// slept. If more ticks are due, the earlier ones are missed. The default is [Latest]: the job runs
// once, however many ticks were missed. With [None], a tick fires only if it is at most a minute
// late. More than [Latest] needs an overlap policy that does not drop these ticks: [Allow], or [Buffer]
// with a [BufferLimit] of at least ticks-1, since all but the first wait. If an earlier job is still
// alive, the first waits, too, and needs room.
func CatchUp(ticks int) Option { return func(d *Definition) { d.terms.CatchUp = ticks } }

// Window limits how late a tick fires. Later ticks are missed. The default, 0, is no limit.
func Window(limit time.Duration) Option { return func(d *Definition) { d.terms.Window = limit } }

// Overlap sets what happens to a tick while a job of an earlier tick is alive. The default is
// [Skip].
func Overlap(p OverlapPolicy) Option { return func(d *Definition) { d.terms.Overlap = p } }

// BufferLimit sets how many ticks can wait under the policy [Buffer]. Further ticks are skipped.
// The default is 1.
func BufferLimit(ticks int) Option { return func(d *Definition) { d.terms.Buffer = ticks } }

// Spread delays each tick by up to a duration, so that many schedules with the same expression do
// not fire at the same time. The delay depends on the name and the tick, not on chance. A spread
// is at most half of the interval between two ticks.
func Spread(limit time.Duration) Option { return func(d *Definition) { d.terms.Spread = limit } }

// With sets options of the jobs of a [Job]. A job of a schedule has no delay, no deadline, no
// unique key, and no idempotency key: the schedule decides when it runs, and an [OverlapPolicy]
// keeps jobs apart. It has no group either: a group ends, and a schedule does not.
func With(opts ...pawl.Option) Option {
	return func(d *Definition) { d.with = append(d.with, opts...) }
}

// Job defines a schedule that enqueues a job. The name identifies the schedule in its store; it has
// up to [MaxName] bytes, and neither a slash nor a NUL. The arguments are stored with the schedule.
// The handler gets the tick from [TickOf].
//
// [Scheduler.Sync] returns the errors of a definition.
func Job[T any](name, expression string, kind *pawl.Kind[T], args T, opts ...Option) Definition {
	d := define(name, expression, opts)
	if d.err == nil {
		var e *pawl.Envelope
		if e, d.err = kind.Envelope(args, d.with...); d.err == nil {
			d.job(e)
		}
	}
	return d.done()
}

// Envelope is [Job] for a program that has no [pawl.Kind], such as a tool for operators. The envelope
// needs at least a kind. Do not change it after the call.
func Envelope(name, expression string, e *pawl.Envelope, opts ...Option) Definition {
	d := define(name, expression, opts)
	if d.err == nil && len(d.with) > 0 {
		d.err = wrong("options", "set them in the envelope, and not by With")
	}
	if d.err == nil {
		d.job(e)
	}
	return d.done()
}

// Flow defines a schedule that starts a run of a workflow. The ID of the run is the name of the
// schedule, a slash, and the time of the tick, as in settle/2026-11-22T09:15:00Z. The input is stored
// with the schedule.
func Flow[In, Out any](name, expression string, flow *workflow.Flow[In, Out], in In, opts ...Option) Definition {
	d := define(name, expression, opts)
	if d.err == nil && len(d.with) > 0 {
		d.err = wrong("options", "a run of a workflow has those of its flow, and With is for jobs")
	}
	if d.err == nil {
		var t workflow.Template
		t, d.err = flow.Template(in)
		d.action = action{Run: &t}
	}
	return d.done()
}

// define makes a definition without an action.
func define(name, expression string, opts []Option) Definition {
	d := Definition{name: name, err: checkName(name), terms: Terms{Spec: expression, CatchUp: Latest, Overlap: Skip}}
	for _, opt := range opts {
		opt(&d)
	}
	return d
}

func checkName(name string) error {
	switch {
	case name == "":
		return wrong("schedule", "its name is empty")
	case len(name) > MaxName:
		return wrong("schedule", "the name %q is longer than %d bytes", ellipsis.Abbreviate(name, 32), MaxName)
	case strings.ContainsAny(name, "\x00/"):
		return wrong("schedule", "the name %q has a NUL or a slash", name)
	}
	return nil
}

// job sets the job of each tick.
func (d *Definition) job(e *pawl.Envelope) {
	refused := ""
	switch {
	case !e.ID.IsZero():
		refused = "an ID"
	case e.Delay != 0 || !e.NotBefore.IsZero():
		refused = "a delay"
	case !e.Deadline.IsZero():
		refused = "a deadline"
	case driver.Waits(e):
		refused = "prerequisites"
	case e.Group != "":
		refused = "a group"
	case e.UniqueKey != "":
		refused = "a unique key"
	case e.IdempotencyKey != "":
		refused = "an idempotency key"
	case len(e.Signature) > 0:
		refused = "a signature"
	}
	if refused != "" {
		d.err = wrong("job", "it has %s, which a job of a schedule cannot have", refused)
		return
	}
	sample := withTick(e, &Tick{Schedule: d.name, Nominal: farTime, Actual: farTime, Missed: MaxMissed, CaughtUp: true, Manual: true})
	if d.err = driver.CheckEnvelope(sample); d.err == nil {
		d.action = action{Job: driver.AppendRecord(nil, e, 0)}
	}
}

// farTime has as many digits as any time.
var farTime = time.Date(2026, 12, 31, 23, 59, 59, 123456789, time.UTC)

// done completes a definition and checks it.
func (d Definition) done() Definition {
	if d.terms.Overlap == Buffer && d.terms.Buffer == 0 {
		d.terms.Buffer = 1
	}
	if d.err == nil {
		d.err = d.terms.check(d.name, d.action.Run != nil)
	}
	if d.err != nil {
		d.err = fmt.Errorf("schedule %q: %w", d.name, d.err)
		return d
	}
	d.terms.Spec = d.terms.normal(d.name)
	return d
}
