package schedule

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/gopawl/pawl"
)

// Terms say when the ticks of a schedule are, and what happens to a tick that comes late, or while an
// earlier job is alive. A tick is one of the times of a schedule.
type Terms struct {
	Spec    string        // an expression; see the package comment
	Zone    string        // an IANA time zone; "" is UTC
	Spread  time.Duration // see [Spread]
	CatchUp int           // see [CatchUp]
	Window  time.Duration // see [Window]; 0 is no limit
	Overlap OverlapPolicy
	Buffer  int // the limit of ticks that wait, if Overlap is Buffer
}

// Values for [CatchUp]. Any other number up to MaxCatchUp is possible.
const (
	None   = 0 // no tick that is more than a minute late fires
	Latest = 1 // the latest of several late ticks fires

	MaxCatchUp = 10_000
)

// grace is how late a tick may be without counting as late.
const grace = time.Minute

// OverlapPolicy says what happens to a tick while a job of an earlier tick is alive. A job is alive
// until it succeeds or is dead, even while it waits for a retry. A run of a workflow is alive until
// it ends.
type OverlapPolicy string

const (
	Skip           OverlapPolicy = "skip"      // the tick does not fire
	Allow          OverlapPolicy = "allow"     // the tick fires
	Buffer         OverlapPolicy = "buffer"    // the tick waits for the end of the job
	CancelOther    OverlapPolicy = "cancel"    // the job is cancelled, and the tick waits for its end
	TerminateOther OverlapPolicy = "terminate" // the run of a workflow is terminated, and the tick waits for its end
)

// MaxBuffer is the maximum number of buffered ticks.
const MaxBuffer = 1000

// check returns what is wrong with the terms of a schedule.
func (t *Terms) check(name string, flow bool) error {
	c, err := t.calendar(name)
	if err != nil {
		return err
	}
	fields := c.spec.location
	switch {
	case fields != nil && t.Zone != "" && fields.String() != t.Zone:
		return invalid("names the time zone %s, and the schedule names %s; leave one out", fields, t.Zone)
	case t.CatchUp < 0 || t.CatchUp > MaxCatchUp:
		return wrong("catch-up", "%d is not between 0 and %d ticks", t.CatchUp, MaxCatchUp)
	case t.Window < 0:
		return wrong("window", "%v is negative", t.Window)
	case t.Buffer != 0 && t.Overlap != Buffer:
		return wrong("buffer", "ticks are buffered with overlap policy %s alone", Buffer)
	case t.Spread < 0:
		return wrong("spread", "%v is negative", t.Spread)
	}
	switch t.Overlap {
	case Buffer:
		if t.Buffer < 1 || t.Buffer > MaxBuffer {
			return wrong("buffer", "%d is not between 1 and %d ticks", t.Buffer, MaxBuffer)
		}
	case TerminateOther:
		if !flow {
			return wrong("overlap", "only a run of a workflow can be terminated; use %s", CancelOther)
		}
	case Skip, Allow, CancelOther:
	default:
		return wrong("overlap", "%q is not one of %s, %s, %s, %s, and %s", t.Overlap, Skip, Allow, Buffer, CancelOther, TerminateOther)
	}
	if t.CatchUp > Latest && t.Overlap != Allow && t.Overlap != Buffer {
		return wrong("catch-up", "with overlap policy %s, only one of %d late ticks would fire; use %s or %s", t.Overlap, t.CatchUp, Allow, Buffer)
	}
	if most := t.Buffer + 1; t.Overlap == Buffer && t.CatchUp > most {
		return wrong("catch-up", "with a buffer of %d, only %d of %d late ticks would fire; use %s, or make the buffer at least %d", t.Buffer, most, t.CatchUp, Allow, t.CatchUp-1)
	}
	if c.spec.open && t.Spread != 0 {
		return wrong("spread", "%v has no effect on %s", t.Spread, atOpen)
	}
	return c.checkSpread()
}

// normal returns the expression of correct terms in normal form.
func (t *Terms) normal(name string) string {
	spec, _ := ParseNamed(name, t.Spec)
	return spec.String()
}

func wrong(field, format string, args ...any) error {
	return &pawl.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// calendar computes the ticks of a schedule. Times are nanoseconds since 1970, and 0 is none.
type calendar struct {
	name   string
	spec   Spec
	zone   *time.Location
	spread time.Duration
}

// calendar returns an error for an invalid expression or an unknown time zone.
func (t *Terms) calendar(name string) (*calendar, error) {
	c := &calendar{name: name, spread: t.Spread}
	var err error
	if c.spec, err = ParseNamed(name, t.Spec); err != nil {
		return nil, err
	}
	if c.zone, err = Location(t.Zone); err != nil {
		return nil, wrong("time zone", "%v", err)
	}
	return c, nil
}

var locations sync.Map // by name

// Location returns a time zone by its IANA name; "" is UTC. It refuses Local, which differs between
// machines. The error for an unknown name contains the known name that is nearest to it.
func Location(name string) (*time.Location, error) {
	if known, ok := locations.Load(name); ok {
		return known.(*time.Location), nil
	}
	if name == "Local" {
		return nil, fmt.Errorf("%q differs between machines; name one, as in Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		if near := nearestZone(name); near != "" {
			return nil, fmt.Errorf("%q is unknown; %s?", name, near)
		}
		return nil, fmt.Errorf("%q is unknown; use an IANA name, as in Europe/Berlin, and import time/tzdata where the system has no time zones", name)
	}
	locations.Store(name, loc)
	return loc, nil
}

// next returns the first tick after a time.
func (c *calendar) next(after int64) int64 {
	t := c.spec.Next(time.Unix(0, after), c.zone)
	if t.IsZero() || t.Year() > lastYear {
		return 0
	}
	return t.UnixNano()
}

// lastYear is the last whole year that fits in nanoseconds since 1970.
const lastYear = 2261

// actual returns when a tick is decided.
func (c *calendar) actual(nominal int64) int64 {
	if c.spread == 0 {
		return nominal
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", c.name, nominal)
	return nominal + int64(h.Sum64()%uint64(c.spread))
}

// checkSpread refuses a spread of more than half of the interval between two ticks. It looks at the
// next ticks.
func (c *calendar) checkSpread() error {
	const looks = 100
	last := c.next(spreadFrom)
	for range looks {
		next := c.next(last)
		if next == 0 || c.spread == 0 {
			break
		}
		if interval := time.Duration(next - last); c.spread > interval/2 {
			return wrong("spread", "%v is more than half of the interval of %v between two ticks", c.spread, interval)
		}
		last = next
	}
	return nil
}

// spreadFrom is an arbitrary time: the ticks of other years have the same intervals.
var spreadFrom = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// overdue are the ticks of a schedule that can be decided.
type overdue struct {
	missed span
	ticks  []int64 // ticks to decide one by one, after the missed ones
}

// span is a sequence of ticks.
type span struct {
	first, last int64
	n           int
}

func (s *span) add(tick int64) {
	if s.n++; s.n == 1 {
		s.first = tick
	}
	s.last = tick
}

// MaxMissed is the maximum number of missed ticks that are counted. It also stands for any larger
// number.
const MaxMissed = 100_000

// overdue returns the due ticks after last. The latest ones are decided one by one: at most keep
// ticks, and none that is more than oldest late. A zero keep or oldest is no limit.
func (c *calendar) overdue(last, now int64, keep int, oldest time.Duration) (o overdue) {
	missed := func(queue []int64) bool {
		return keep > 0 && len(queue) > keep || oldest > 0 && now-c.actual(queue[0]) > int64(oldest)
	}
	var queue []int64
	for t := c.next(last); t != 0 && c.actual(t) <= now; t = c.next(t) {
		queue = append(queue, t)
		for len(queue) > 0 && missed(queue) {
			o.missed.add(queue[0])
			queue = queue[1:]
		}
		if o.missed.n == MaxMissed {
			if len(queue) > 0 {
				t = queue[0] - 1
			}
			queue = c.latest(t, now, max(keep, 1))
			for len(queue) > 0 && missed(queue) {
				o.missed.last, queue = queue[0], queue[1:]
			}
			break
		}
	}
	o.ticks = queue
	return o
}

// latest returns at least the latest n ticks between two times, or all of them.
func (c *calendar) latest(after, now int64, n int) (ticks []int64) {
	for back := max(int64(n)*int64(time.Second), int64(grace)); ; back *= 4 {
		from := max(after, now-back)
		ticks = ticks[:0]
		for t := c.next(from); t != 0 && c.actual(t) <= now; t = c.next(t) {
			ticks = append(ticks, t)
		}
		if len(ticks) > n || from == after || back > int64(1)<<60 {
			return ticks
		}
	}
}

// words returns the times in English.
func (t *Terms) words(name string) string {
	c, err := t.calendar(name)
	if err != nil {
		return ""
	}
	words := c.spec.Words()
	if t.Zone != "" && !strings.Contains(words, ", time zone ") {
		words += ", time zone " + t.Zone
	}
	return words
}
