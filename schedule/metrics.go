package schedule

import (
	"context"
	"time"

	"github.com/gopawl/pawl/metrics"
)

var _ metrics.Producer = (*Reader)(nil)

// maxLabels is how many schedules have their own series. The others are counted together.
const maxLabels = 200

// Families returns metrics of all schedules for [metrics.Handler]:
//
//   - pawl_schedule_ticks_total{schedule, decision}: ticks that were fired, buffered, skipped, missed, paused, or
//     failed. The counts are those of the store, so a restart of the process does not reset them.
//   - pawl_schedule_late_seconds{schedule}: for how long the next tick has been due and undecided, by the clock of
//     this process; 0 if it is not due. A paused or retired schedule has none.
//
// The first 200 schedules in the order of their names have series of their own. The others share
// the label [metrics.Other], with the sum of their ticks and the greatest of their delays.
func (r *Reader) Families(ctx context.Context) ([]metrics.Family, error) {
	ticks := metrics.NewFamily("pawl_schedule_ticks_total", "counter", "Ticks of schedules by what became of them.", "schedule", "decision")
	late := metrics.NewFamily("pawl_schedule_late_seconds", "gauge", "How long the next tick has been due and undecided.", "schedule")
	var rest figures
	named, others := 0, false
	for after := ""; ; {
		list, err := r.List(ctx, after, MaxListed)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		for i := range list {
			one := figuresOf(&list[i], now)
			if named++; named > maxLabels || list[i].Name == metrics.Other {
				rest.add(one)
				others = true
				continue
			}
			one.write(list[i].Name, &ticks, &late)
		}
		if len(list) < MaxListed {
			break
		}
		after = list[len(list)-1].Name
	}
	if others {
		rest.write(metrics.Other, &ticks, &late)
	}
	return []metrics.Family{ticks, late}, nil
}

// figures are the metrics of one schedule, or of several.
type figures struct {
	Counts
	late   time.Duration
	active bool // it is neither paused nor retired
}

func figuresOf(s *Info, now time.Time) figures {
	f := figures{Counts: s.Counts, active: s.Paused.IsZero() && s.Retired.IsZero() && s.Broken == ""}
	if f.active && !s.Next.IsZero() {
		f.late = max(0, now.Sub(s.Next))
	}
	return f
}

func (f *figures) add(one figures) {
	f.Fired += one.Fired
	f.Buffered += one.Buffered
	f.Skipped += one.Skipped
	f.Missed += one.Missed
	f.Counts.Paused += one.Counts.Paused
	f.Failed += one.Failed
	f.late, f.active = max(f.late, one.late), f.active || one.active
}

func (f *figures) write(name string, ticks, late *metrics.Family) {
	for _, one := range [...]struct {
		decision Decision
		ticks    uint64
	}{
		{Fired, f.Fired}, {Buffered, f.Buffered}, {Skipped, f.Skipped}, {Missed, f.Missed}, {Paused, f.Counts.Paused}, {Failed, f.Failed},
	} {
		ticks.Add(float64(one.ticks), name, string(one.decision))
	}
	if f.active {
		late.Add(f.late.Seconds(), name)
	}
}
