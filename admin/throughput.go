package admin

import (
	"context"

	"github.com/gopawl/pawl/driver"
)

// Metered is a [Store] that keeps the counts of the last week by minute, such as *bolt.Queue and *memory.Queue.
type Metered interface {
	// Throughput reports what happened to jobs in the last minutes, hours, or days.
	Throughput(ctx context.Context, q driver.ThroughputQuery) (driver.Throughput, error)
}

// Throughput is what happened to jobs, by minute, ten minutes, or hour.
type Throughput = driver.Throughput

// Period is a period of a [Throughput].
type Period = driver.Period

// Build is a build of the app, in a [Throughput].
type Build = driver.Build

// ThroughputQuery selects what a [Throughput] reports.
type ThroughputQuery = driver.ThroughputQuery

var opThroughput = define(operation[ThroughputQuery, Throughput]{
	path: "throughput", work: lists,
	do: func(ctx context.Context, a Admin, q *ThroughputQuery) (Throughput, error) {
		return a.Throughput(ctx, *q)
	},
	check: func(q *ThroughputQuery, t *Throughput) error {
		return driver.CheckThroughput(q, t)
	},
})

func (c *client) Throughput(ctx context.Context, q ThroughputQuery) (Throughput, error) {
	return ask(ctx, c, opThroughput, q)
}

func (d direct) Throughput(ctx context.Context, q ThroughputQuery) (Throughput, error) {
	return using(d, "throughput", func(store Metered) (Throughput, error) { return store.Throughput(ctx, q) })
}

// ThroughputView is a throughput in JSON.
type ThroughputView struct {
	Queue   *Text        `json:"queue"`
	Step    Span         `json:"step"`
	Periods []PeriodView `json:"periods"`
	Builds  []BuildView  `json:"builds"`
	Damaged int          `json:"damaged"`
}

// PeriodView is what happened in a step, in JSON.
type PeriodView struct {
	At        Stamp `json:"at"`
	Enqueued  int64 `json:"enqueued"`
	Succeeded int64 `json:"succeeded"`
	Retried   int64 `json:"retried"`
	Dead      int64 `json:"dead"`
}

// BuildView is a build in JSON.
type BuildView struct {
	At       Stamp `json:"at"`
	Version  Text  `json:"version"`
	Revision Text  `json:"revision"`
}

// ThroughputOf returns the throughput of a queue, or of all for "", in JSON.
func ThroughputOf(queue string, t Throughput) ThroughputView {
	return ThroughputView{
		Queue: textOrNull(queue), Step: Span(t.Step), Damaged: t.Damaged,
		Periods: each(t.Periods, func(p Period) PeriodView {
			return PeriodView{Stamp{p.At}, p.Enqueued, p.Succeeded, p.Retried, p.Died}
		}),
		Builds: each(t.Builds, func(b Build) BuildView { return BuildView{Stamp{b.At}, Text(b.Version), Text(b.Revision)} }),
	}
}
