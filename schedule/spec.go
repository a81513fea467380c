package schedule

import (
	"math"
	"math/bits"
	"time"
)

// Spec is a schedule, made by [Parse] or [ParseNamed]. The zero Spec has no times.
type Spec struct {
	text string // in normal form; empty for the zero value
	name string // for H

	every, phase int64 // in seconds; every is 0 for an expression with fields
	open         bool  // it happens when the store is opened, and not by the clock

	sets        [numFields]uint64 // bit n for value n
	lastDays    uint32            // bit n for the nth day before the last
	nearest     uint32            // bit n for the weekday nearest to day n
	lastWeekday bool
	nth         uint64 // bit 7n+d for the nth day d of the week in the month, n = 0 for the last
	anyDay      bool   // either field of days has a *

	location *time.Location // nil if the expression names none
}

const (
	second = iota
	minute
	hour
	dayOfMonth
	month
	dayOfWeek
	numFields
)

const (
	allHours = 1<<24 - 1
	// farthest exceeds the difference in seconds between UTC and any local clock.
	farthest = 27 * 60 * 60
	never    = math.MaxInt64
	// latest leaves room for sums, in seconds from 1970.
	latest = 1 << 55
)

// String returns the expression in normal form, which [ParseNamed] accepts.
func (s Spec) String() string { return s.text }

// Zone returns the time zone that the expression names, or nil if it names none.
func (s Spec) Zone() *time.Location { return s.location }

// Next returns the first time, in whole seconds, at which s happens after the given time. The time
// zone is loc unless the expression names one; nil is UTC. Next returns the zero time for the zero Spec,
// for @open, and for a time more than a billion years from 1970.
func (s Spec) Next(after time.Time, loc *time.Location) time.Time {
	switch {
	case s.location != nil:
		loc = s.location
	case loc == nil:
		loc = time.UTC
	}
	t := after.Unix() + 1
	switch {
	case s.text == "" || s.open || t < -latest || t > latest:
		return time.Time{}
	case s.every > 0:
		t += mod(s.phase-t, s.every)
	case s.sets[hour] == allHours:
		t = s.nextElapsed(t, loc)
	default:
		t = s.nextOnDays(t, loc)
	}
	return time.Unix(t, 0).In(loc)
}

func mod(n, by int64) int64 { return ((n % by) + by) % by }

// nextElapsed returns the first time at or after t at which the clock shows a time of s. Times are in
// Unix seconds.
func (s *Spec) nextElapsed(t int64, loc *time.Location) int64 {
	for {
		at := stretchAt(t, loc)
		if next := s.nextClock(t+at.offset) - at.offset; next < at.end {
			return next
		}
		t = max(at.end, s.nextClock(at.end-farthest)-farthest) // no clock shows a time of s before that
	}
}

// nextOnDays returns the first time at or after t at which s happens on its days: when the clock first
// shows a time of s, or at the end of the gap that skips that time.
func (s *Spec) nextOnDays(t int64, loc *time.Location) int64 {
	now := stretchAt(t, loc)
	shown := int64(math.MinInt64) // end of the times that the clock showed before t
	if t > now.start {
		shown = t + now.offset
	}
	for before := now; before.start > t-2*farthest; {
		before = stretchAt(before.start-1, loc)
		shown = max(shown, before.end+before.offset)
	}
	clock := s.nextClock(shown)
	at := now
	if from := clock - farthest; from < now.start || from >= now.end {
		at = stretchAt(from, loc)
	}
	for ; ; at = stretchAt(at.end, loc) {
		switch {
		case clock < at.start+at.offset: // in the gap before this stretch
			return at.start
		case clock < at.end+at.offset:
			return clock - at.offset
		}
	}
}

// stretch is a period in which a zone keeps its offset. A local clock shows UTC plus the offset. All
// fields are in seconds.
type stretch struct{ start, end, offset int64 }

func stretchAt(t int64, loc *time.Location) stretch {
	at := time.Unix(t, 0).In(loc)
	_, offset := at.Zone()
	s := stretch{math.MinInt64 / 2, math.MaxInt64 / 2, int64(offset)}
	start, end := at.ZoneBounds()
	if !start.IsZero() {
		s.start = start.Unix()
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= t { // the last day of a leap year: https://go.dev/issue/81583
		s.end += 24 * 60 * 60
	}
	return s
}

// monthsOfCycle is the number of months after which the calendar repeats itself, with its days
// of the week.
const monthsOfCycle = 400 * 12

// nextClock returns the first time of s at or after from, on a clock that never changes. Both are in
// seconds since the clock showed the start of 1970. It returns never if there is no such time.
func (s *Spec) nextClock(from int64) int64 {
	at := time.Unix(from, 0).UTC()
	year, m, day := at.Date()
	clock := int(mod(from, 24*60*60))
	for range monthsOfCycle + 1 {
		if s.sets[month]&(1<<m) != 0 {
			for days := s.days(year, m) >> day << day; days != 0; days &= days - 1 {
				d := bits.TrailingZeros32(days)
				if d > day {
					clock = 0
				}
				if c := s.inDay(clock); c >= 0 {
					return time.Date(year, m, d, 0, 0, c, 0, time.UTC).Unix()
				}
			}
		}
		if m++; m > time.December {
			year, m = year+1, time.January
		}
		day, clock = 1, 0
	}
	return never
}

// inDay returns the first time of day of s at or after from, in seconds, or -1 if there is none.
func (s *Spec) inDay(from int) int {
	fromHour, fromMinute, fromSecond := from/3600, from/60%60, from%60
	for h := following(s.sets[hour], fromHour); h >= 0; h = following(s.sets[hour], h+1) {
		if h > fromHour {
			fromMinute, fromSecond = 0, 0
		}
		for m := following(s.sets[minute], fromMinute); m >= 0; m = following(s.sets[minute], m+1) {
			if m > fromMinute {
				fromSecond = 0
			}
			if sec := following(s.sets[second], fromSecond); sec >= 0 {
				return h*3600 + m*60 + sec
			}
		}
	}
	return -1
}

// following returns the first member of a set that is at least n, or -1 if there is none.
func following(set uint64, n int) int {
	if set = set >> n << n; set == 0 {
		return -1
	}
	return bits.TrailingZeros64(set)
}

// days returns the matching days of a month as a set.
func (s *Spec) days(year int, m time.Month) uint32 {
	first := int(time.Date(year, m, 1, 0, 0, 0, 0, time.UTC).Weekday())
	last := time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
	weekday := func(day int) int { return (first + day - 1) % 7 }
	all := uint32(1)<<(last+1) - 2

	ofMonth := uint32(s.sets[dayOfMonth])
	for set := s.lastDays; set != 0; set &= set - 1 {
		if day := last - bits.TrailingZeros32(set); day > 0 {
			ofMonth |= 1 << day
		}
	}
	for set := s.nearest & all; set != 0; set &= set - 1 {
		ofMonth |= 1 << nearestWeekday(bits.TrailingZeros32(set), last, weekday)
	}
	if s.lastWeekday {
		ofMonth |= 1 << nearestWeekday(last, last, weekday)
	}

	const weekly = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
	ofWeek := uint32(0)
	for d := range 7 {
		firstOf := 1 + (d-first+7)%7
		if s.sets[dayOfWeek]&(1<<d) != 0 {
			ofWeek |= weekly << firstOf
		}
		for n := 1; n <= 5 && s.nth != 0; n++ {
			if s.nth&(1<<(7*n+d)) != 0 {
				ofWeek |= 1 << (firstOf + 7*(n-1)) & all
			}
		}
		if s.nth&(1<<d) != 0 {
			ofWeek |= 1 << (firstOf + (last-firstOf)/7*7)
		}
	}
	if s.anyDay {
		return ofMonth & ofWeek & all
	}
	return (ofMonth | ofWeek) & all
}

// nearestWeekday returns the weekday, Monday to Friday, that is nearest to a day and in the same month.
func nearestWeekday(day, last int, weekday func(day int) int) int {
	switch {
	case weekday(day) == int(time.Saturday) && day > 1:
		return day - 1
	case weekday(day) == int(time.Saturday):
		return day + 2
	case weekday(day) == int(time.Sunday) && day < last:
		return day + 1
	case weekday(day) == int(time.Sunday):
		return day - 2
	}
	return day
}
