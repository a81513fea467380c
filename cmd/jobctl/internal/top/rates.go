package top

import (
	"strings"
	"time"

	"github.com/gopawl/pawl/admin"
)

// rates record how many attempts per second ended in each queue. They are the difference of two
// readings, so they cost the app nothing.
type rates struct {
	process admin.Process // the process that counts; another process begins at zero
	last    map[string]admin.Done
	at      time.Time
	samples map[string][]sample // the newest last
}

// sample is the time between two readings.
type sample struct{ runs, failed float64 } // per second

const (
	keptSamples = 60
	meanOf      = 5                      // how many samples a rate averages
	shortest    = 200 * time.Millisecond // shortest time between two readings; a shorter one would show noise
)

// add adds a reading. Without a process there is nothing to count.
func (r *rates) add(s admin.Stats, at time.Time) {
	if s.Process == nil {
		*r = rates{}
		return
	}
	if s.Process.PID != r.process.PID || !s.Process.Started.Equal(r.process.Started) {
		*r = rates{process: *s.Process, last: s.Done, at: at, samples: map[string][]sample{}}
		return
	}
	passed := at.Sub(r.at)
	if passed < shortest {
		return
	}
	for _, q := range s.Queues {
		now, before := s.Done[q.Name], r.last[q.Name]
		failed := now.Failed - before.Failed
		runs := failed + now.Succeeded - before.Succeeded
		series := append(r.samples[q.Name], sample{
			runs:   max(float64(runs), 0) / passed.Seconds(),
			failed: max(float64(failed), 0) / passed.Seconds(),
		})
		r.samples[q.Name] = series[max(len(series)-keptSamples, 0):]
	}
	r.last, r.at = s.Done, at
}

// mean returns the rate of the last few seconds; ok is false while there is none.
func (r *rates) mean(queue string) (mean sample, ok bool) {
	series := r.samples[queue]
	series = series[max(len(series)-meanOf, 0):]
	for _, s := range series {
		mean.runs += s.runs / float64(len(series))
		mean.failed += s.failed / float64(len(series))
	}
	return mean, len(series) > 0
}

// sparkline draws the newest samples at the right, scaled to the highest.
func (r *rates) sparkline(queue string, width int) string {
	const levels = "▁▂▃▄▅▆▇█"
	series := r.samples[queue]
	series = series[max(len(series)-width, 0):]
	highest := 0.0
	for _, s := range series {
		highest = max(highest, s.runs)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", max(width-len(series), 0)))
	for _, s := range series {
		level := 0 // the lowest level means exactly zero
		if s.runs > 0 {
			level = 1 + int(s.runs/highest*6+0.5)
		}
		b.WriteString(string([]rune(levels)[level]))
	}
	return b.String()
}
