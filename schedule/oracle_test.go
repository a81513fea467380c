package schedule

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var wholeOracle = flag.Bool("whole", false, "TestNextIsThatOfTheOracle compares every minute from 1990 to 2060, with two expressions for each zone")

// zones have all kinds of changes of the clock: by half an hour and by two hours, at midnight,
// twice a year around Ramadan, to another day, and none.
var zones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca", "Africa/Cairo",
	"Asia/Beirut", "Pacific/Apia", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Kathmandu", "Pacific/Chatham", "America/St_Johns",
	"Asia/Tehran", "Asia/Gaza", "America/Havana", "America/Santiago", "America/Asuncion", "Pacific/Kiritimati", "Pacific/Kwajalein",
	"Asia/Pyongyang", "America/Caracas", "Europe/Istanbul", "Europe/Dublin", "Europe/London", "Europe/Moscow", "Europe/Lisbon",
	"Africa/Juba", "Africa/Sao_Tome", "Africa/Windhoek", "Antarctica/Casey", "Antarctica/Macquarie", "America/Scoresbysund",
	"America/Nuuk", "Asia/Amman", "Asia/Dhaka", "Pacific/Fiji", "Pacific/Norfolk", "Pacific/Tongatapu",
}

// Rule: Next returns each time that a look at every minute finds, and no other.
func TestNextIsThatOfTheOracle(t *testing.T) {
	pairs, minutes := 60, 12*24*60
	if *wholeOracle {
		pairs, minutes = 2*len(zones), 70*365*24*60+17*24*60 // with the leap days
	}
	for n := range pairs {
		t.Run(fmt.Sprint("pair ", n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 0))
			text, zone := anyExpression(r), zones[n%len(zones)]
			s, err := Parse(text)
			if err != nil {
				require.ErrorContains(t, err, "no day matches", text)
				return
			}
			loc := load(t, zone)
			from := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
			if !*wholeOracle { // around a change of the clock, if there is one
				from = from.AddDate(r.IntN(70), r.IntN(12), 0)
				if _, change := from.In(loc).ZoneBounds(); !change.IsZero() {
					from = change.UTC().Truncate(time.Minute).Add(-time.Duration(r.IntN(minutes)) * time.Minute)
				}
			}
			compare(t, s, loc, from, minutes)
		})
	}
}

// compare requires the same times of an oracle and of s. It counts in seconds since 1970, since it looks at billions of
// minutes.
func compare(t *testing.T, s Spec, loc *time.Location, from time.Time, minutes int) {
	t.Helper()
	o, clocks := readOracle(s.String()), clocks{loc: loc}
	first := from.Unix()
	nextAfter := func(sec int64) int64 {
		next := s.Next(time.Unix(sec, 0), loc)
		require.Zero(t, next.Nanosecond())
		return next.Unix()
	}
	next := nextAfter(first - 1)
	shown := clocks.at(first - 60) // the latest that the clock has shown
	for back := range int64(3 * 24 * 60) {
		shown = max(shown, clocks.at(first-60*(back+1)))
	}
	everyHour := o.everyHour()
	for i := range int64(minutes) {
		at := first + 60*i
		clock := clocks.at(at)
		happens := false
		if everyHour {
			happens = o.matches(clock)
		} else {
			for c := shown + 1; c <= clock && !happens; c++ {
				happens = o.matches(c)
			}
		}
		shown = max(shown, clock)
		if happens != (next == at) {
			require.FailNow(t, "Next differs", "%q in %s at %s: happens: %t, Next: %s", s, loc, time.Unix(at, 0).In(loc), happens, time.Unix(next, 0))
		}
		if happens {
			next = nextAfter(at)
		}
	}
}

// clocks says what a clock shows. It looks into the zone once for each period without a change.
type clocks struct {
	loc        *time.Location
	start, end int64 // of the period, in seconds since 1970
	offset     int64
}

// at is what the clock shows at a time in seconds since 1970, in minutes since 1970.
func (c *clocks) at(sec int64) int64 {
	if sec < c.start || sec >= c.end {
		at := time.Unix(sec, 0).In(c.loc)
		_, offset := at.Zone()
		start, end := at.ZoneBounds()
		if c.start, c.end, c.offset = start.Unix(), end.Unix(), int64(offset); end.IsZero() {
			c.end = 1 << 40
		}
	}
	return (sec + c.offset) / 60
}

func load(t *testing.T, zone string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	return loc
}

// An oracle matches the five fields of an expression of anyExpression, in the plainest way.
type oracle struct {
	fields  [5]string
	minutes [60]bool
	hours   [24]bool

	day     int64 // the last one asked for, in days since 1970
	matched bool
}

func readOracle(text string) *oracle {
	o := &oracle{day: -1 << 40}
	copy(o.fields[:], strings.Fields(text))
	for n := range o.minutes {
		o.minutes[n] = matchesList(o.fields[0], n, 0, 59, nil, nil)
	}
	for n := range o.hours {
		o.hours[n] = matchesList(o.fields[1], n, 0, 23, nil, nil)
	}
	return o
}

func (o *oracle) everyHour() bool {
	for _, matches := range o.hours {
		if !matches {
			return false
		}
	}
	return true
}

func (o *oracle) matches(clock int64) bool {
	if !o.minutes[clock%60] || !o.hours[clock/60%24] {
		return false
	}
	if day := clock / 60 / 24; day != o.day {
		o.day, o.matched = day, o.matchesDay(time.Unix(clock*60, 0).UTC())
	}
	return o.matched
}

func (o *oracle) matchesDay(at time.Time) bool {
	if !matchesList(o.fields[3], int(at.Month()), 1, 12, fields[month].names, nil) {
		return false
	}
	last := time.Date(at.Year(), at.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
	ofMonth := matchesList(o.fields[2], at.Day(), 1, 31, nil, func(part string) (special, matches bool) {
		day, workday := strings.CutSuffix(part, "W")
		switch {
		case part == "LW":
			return true, at.Day() == nearest(at, last)
		case part == "L":
			return true, at.Day() == last
		case strings.HasPrefix(part, "L-"):
			return true, at.Day() == last-atoi(part[2:])
		case workday:
			return true, atoi(day) <= last && at.Day() == nearest(at, atoi(day))
		}
		return false, false
	})
	ofWeek := matchesList(o.fields[4], int(at.Weekday()), 0, 6, fields[dayOfWeek].names, func(part string) (special, matches bool) {
		if day, n, found := strings.Cut(part, "#"); found {
			return true, valueOf(day, fields[dayOfWeek].names, 0) == int(at.Weekday()) && (at.Day()+6)/7 == atoi(n)
		}
		day, found := strings.CutSuffix(part, "L")
		return found, found && valueOf(day, fields[dayOfWeek].names, 0) == int(at.Weekday()) && at.Day()+7 > last
	})
	if strings.Contains(o.fields[2]+o.fields[4], "*") {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// nearest looks for the nearest weekday of a day in the month of a time.
func nearest(month time.Time, day int) int {
	for _, by := range []int{0, -1, 1, -2, 2} {
		at := month.AddDate(0, 0, day+by-month.Day())
		if at.Month() == month.Month() && at.Weekday() != time.Saturday && at.Weekday() != time.Sunday {
			return at.Day()
		}
	}
	panic("no weekday is near")
}

func matchesList(list string, n, low, high int, names []string, ofDays func(part string) (special, matches bool)) bool {
	for part := range strings.SplitSeq(list, ",") {
		if ofDays != nil {
			if special, matches := ofDays(part); matches {
				return true
			} else if special {
				continue
			}
		}
		values, by, stepped := strings.Cut(part, "/")
		first, last := low, high
		if values != "*" {
			from, to, ranged := strings.Cut(values, "-")
			first = valueOf(from, names, low)
			switch {
			case ranged:
				last = valueOf(to, names, low)
			case !stepped:
				last = first
			}
		}
		step := 1
		if stepped {
			step = atoi(by)
		}
		for k, value := 0, first; ; k++ {
			if k%step == 0 && value == n {
				return true
			}
			if value == last {
				break
			}
			if value++; value > high {
				value = low
			}
		}
	}
	return false
}

func valueOf(text string, names []string, low int) int {
	for i, name := range names {
		if name == text {
			return low + i
		}
	}
	return atoi(text)
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// anyExpression makes an expression of five fields.
func anyExpression(r *rand.Rand) string {
	words := make([]string, 5)
	for i := range words {
		f := &fields[i+1]
		stars := 2
		if i == 1 || i > 2 { // few hours, and many months and days
			stars = 5
		}
		if r.IntN(8) < stars {
			words[i] = "*"
			continue
		}
		parts := make([]string, 1+r.IntN(3)*r.IntN(2))
		for k := range parts {
			parts[k] = anyPart(r, i+1, f)
		}
		words[i] = strings.Join(parts, ",")
	}
	return strings.Join(words, " ")
}

func anyPart(r *rand.Rand, i int, f *field) string {
	value := func() string {
		n := f.min + r.IntN(f.max-f.min+1)
		if f.names != nil && r.IntN(2) == 0 {
			return f.names[n-f.min]
		}
		return strconv.Itoa(n)
	}
	switch k := r.IntN(8); {
	case k == 0:
		return fmt.Sprintf("*/%d", 1+r.IntN(f.max))
	case k == 1:
		return fmt.Sprintf("%s/%d", value(), 1+r.IntN(f.max))
	case k == 2:
		return fmt.Sprintf("%s-%s/%d", value(), value(), 1+r.IntN(f.max))
	case k == 3:
		return value() + "-" + value()
	case k == 4 && i == dayOfMonth:
		return []string{"L", "LW", "L-" + strconv.Itoa(r.IntN(31)), value() + "W"}[r.IntN(4)]
	case k == 4 && i == dayOfWeek:
		return []string{value() + "L", value() + "#" + strconv.Itoa(1+r.IntN(5))}[r.IntN(2)]
	}
	return value()
}
