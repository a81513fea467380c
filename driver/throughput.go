package driver

import (
	"strings"
	"time"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/ellipsis"
)

// Throughput is what happened to the jobs of a queue, or of all queues, in the last minutes, hours, or days. It is a
// statistic: a kill loses the counts since the last store, at most those of the last minute in which something
// happened, and damaged rows are left out.
type Throughput struct {
	Step    time.Duration // length of each period
	Periods []Period      // without a gap, the oldest first; the last one has not ended
	Builds  []Build       // that first ran jobs in these periods, and the one before; the oldest first
	Damaged int           // rows that could not be read
}

// Period is what happened in a step.
type Period struct {
	At time.Time // when it begins, in UTC
	Totals
}

// Build is the build of a program, stored when it leases jobs and the last build that did was another one.
type Build struct {
	At       time.Time
	Version  string // of the main module, "(devel)" if there is none
	Revision string // of the version control system; empty if it is not known
}

func (b *Build) same(o *Build) bool { return b.Version == o.Version && b.Revision == o.Revision }

// Name returns the version and the beginning of the revision, for people.
func (b *Build) Name() string {
	if len(b.Revision) < shortRevision || strings.Contains(b.Version, b.Revision[:shortRevision]) {
		return b.Version
	}
	return b.Version + " " + b.Revision[:shortRevision]
}

const shortRevision = 12 // as in the versions that Go makes of revisions

// BuildsIn returns the builds that were noted in period i.
func (t *Throughput) BuildsIn(i int) (builds []Build) {
	for _, b := range t.Builds {
		if since := b.At.Sub(t.Periods[i].At); since >= 0 && since < t.Step {
			builds = append(builds, b)
		}
	}
	return builds
}

// ThroughputQuery selects what [Throughput] reports.
type ThroughputQuery struct {
	Queue string        // "" for all queues
	Last  time.Duration // up to [ThroughputKept]; 0 means an hour
}

// ThroughputKept is how long counts are kept.
const ThroughputKept = 7 * 24 * time.Hour

// Step returns the length of the periods for a query: a minute for up to an hour, ten minutes for up to a day, and
// otherwise an hour. It returns a [*pawl.InvalidError] for a query that is not valid.
func (q *ThroughputQuery) Step() (step, last time.Duration, err error) {
	if q.Queue != "" {
		err = CheckQueue(q.Queue)
	}
	if q.Last < 0 || q.Last > ThroughputKept {
		err = &pawl.InvalidError{Field: "last", Reason: q.Last.String() + " is not from 0 to 168h"}
	}
	switch last = q.Last; {
	case last == 0:
		return time.Minute, time.Hour, err
	case last <= time.Hour:
		return time.Minute, last, err
	case last <= 24*time.Hour:
		return 10 * time.Minute, last, err
	}
	return time.Hour, last, err
}

// empty returns the report of a query at a time, without counts.
func (q *ThroughputQuery) empty(now time.Time) (t Throughput, err error) {
	step, last, err := q.Step()
	if err != nil {
		return t, err
	}
	n := int((last + step - 1) / step)
	t.Step, t.Periods = step, make([]Period, n)
	begin := now.UTC().Truncate(step).Add(step - time.Duration(n)*step)
	for i := range t.Periods {
		t.Periods[i].At = begin.Add(time.Duration(i) * step)
	}
	return t, nil
}

// add adds the counts of a minute since 1970, if a period contains it.
func (t *Throughput) add(minute int64, c Totals) {
	if since := time.Unix(minute*60, 0).Sub(t.Periods[0].At); since >= 0 && since/t.Step < time.Duration(len(t.Periods)) {
		t.Periods[since/t.Step].Add(c)
	}
}

// Total returns the sum over all periods.
func (t *Throughput) Total() (sum Totals) {
	for i := range t.Periods {
		sum.Add(t.Periods[i].Totals)
	}
	return sum
}

// CheckThroughput returns an error if a report cannot be the answer to a query.
func CheckThroughput(q *ThroughputQuery, t *Throughput) error {
	step, last, err := q.Step()
	if err == nil && (t.Step != step || len(t.Periods) != int((last+step-1)/step) || len(t.Builds) > maxBuilds+1) {
		err = &pawl.InvalidError{Field: "throughput", Reason: "it has other periods than were asked for, or too many builds"}
	}
	return err
}

// Tally counts the transitions of one transaction by queue. The zero value is empty. It must not be copied.
type Tally struct {
	Totals
	queues []queueTotals
	last   int            // the queue that was counted last
	few    [2]queueTotals // initial array of queues
}

type queueTotals struct {
	queue string
	Totals
}

// Count adds n transitions of a type.
func (t *Tally) Count(queue string, e pawl.EventType, n int64) {
	t.Totals.Count(e, n)
	t.of(queue).Count(e, n)
}

// of returns the counts of a queue. Those beyond a limit share the counts of the queue "".
func (t *Tally) of(queue string) *Totals {
	if t.last < len(t.queues) && t.queues[t.last].queue == queue {
		return &t.queues[t.last].Totals
	}
	if t.queues == nil {
		t.queues = t.few[:0]
	}
	for i := range t.queues {
		if t.queues[i].queue == queue {
			t.last = i
			return &t.queues[i].Totals
		}
	}
	if len(t.queues) > maxMetered && queue != "" {
		return t.of("")
	}
	t.last = len(t.queues)
	t.queues = append(t.queues, queueTotals{queue: queue})
	return &t.queues[t.last].Totals
}

// cutText shortens a text of a build.
func cutText(text string) string { return ellipsis.Abbreviate(text, maxBuildText) }
