package schedule

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mostTimes is the maximum number of times of a day that are listed one by one.
const mostTimes = 6

// Words describes in English when s happens, as in "at 02:30 from Monday to Friday". The text is for
// people and can change.
func (s Spec) Words() string {
	if s.text == "" {
		return "never"
	}
	if s.open {
		return "whenever the program starts"
	}
	if s.every > 0 {
		text := "every " + duration(s.every)
		if s.phase > 0 {
			text += ", shifted by " + duration(s.phase)
		}
		return text
	}
	parts := []string{s.timeWords()}
	if days := s.dayWords(); days != "" {
		parts = append(parts, days)
	}
	if months := s.sets[month]; months != 1<<13-2 {
		parts = append(parts, spans(months, "in ", "from ", func(n int) string { return time.Month(n).String() }))
	}
	text := strings.Join(parts, " ")
	if s.location != nil {
		text += ", time zone " + s.location.String()
	}
	return text
}

func duration(seconds int64) string {
	text := (time.Duration(seconds) * time.Second).String()
	if short, cut := strings.CutSuffix(text, "m0s"); cut {
		text = short + "m"
	}
	if short, cut := strings.CutSuffix(text, "h0m"); cut {
		text = short + "h"
	}
	return text
}

// timeWords says at which times of the day s happens.
func (s *Spec) timeWords() string {
	seconds, minutes, hours := s.sets[second], s.sets[minute], s.sets[hour]
	if bits.OnesCount64(seconds)*bits.OnesCount64(minutes)*bits.OnesCount64(hours) <= mostTimes {
		return "at " + list(s.times())
	}
	var parts []string
	if seconds != 1 {
		parts = append(parts, steps(seconds, 60, "second"))
	}
	if seconds == 1 || minutes != 1<<60-1 {
		parts = append(parts, steps(minutes, 60, "minute"))
	}
	if hours != allHours || len(parts) == 1 && !strings.HasPrefix(parts[0], "every") {
		parts = append(parts, steps(hours, 24, "hour"))
	}
	return strings.Join(parts, " of ")
}

// times returns all times of a day.
func (s *Spec) times() (times []string) {
	for from := s.inDay(0); from >= 0; from = s.inDay(from + 1) {
		text := fmt.Sprintf("%02d:%02d", from/3600, from/60%60)
		if s.sets[second] != 1 {
			text += fmt.Sprintf(":%02d", from%60)
		}
		times = append(times, text)
		if from == 24*60*60-1 {
			break
		}
	}
	return times
}

// steps describes which values of a unit, from 0 up to a limit, are in a set.
func steps(set uint64, limit int, unit string) string {
	all := uint64(1)<<limit - 1
	if set == all {
		return "every " + unit
	}
	for by := 2; by <= limit/2; by++ {
		every := uint64(0)
		for n := 0; n < limit; n += by {
			every |= 1 << n
		}
		if limit%by == 0 && set == every {
			return fmt.Sprintf("every %d %ss", by, unit)
		}
	}
	if bits.OnesCount64(set) > 1 {
		unit += "s"
	}
	return spans(set, unit+" ", unit+" ", strconv.Itoa)
}

// dayWords says on which days s happens, "" for all.
func (s *Spec) dayWords() string {
	ofMonth, ofWeek := s.ofMonthWords(), s.ofWeekWords()
	switch {
	case ofMonth == "" || ofWeek == "":
		return ofMonth + ofWeek
	case s.anyDay:
		return ofMonth + " if that is " + strings.TrimPrefix(ofWeek, "on ")
	}
	return ofMonth + " or " + ofWeek
}

func (s *Spec) ofMonthWords() string {
	var parts []string
	if set := s.sets[dayOfMonth]; set == 1<<32-2 {
		return ""
	} else if set != 0 {
		unit := "day "
		if bits.OnesCount64(set) > 1 {
			unit = "days "
		}
		parts = append(parts, spans(set, unit, unit, strconv.Itoa))
	}
	for set := s.nearest; set != 0; set &= set - 1 {
		parts = append(parts, fmt.Sprintf("the weekday nearest to day %d", bits.TrailingZeros32(set)))
	}
	if s.lastWeekday {
		parts = append(parts, "the last weekday")
	}
	for set := s.lastDays; set != 0; set &= set - 1 {
		switch n := bits.TrailingZeros32(set); n {
		case 0:
			parts = append(parts, "the last day")
		case 1:
			parts = append(parts, "the day before the last")
		default:
			parts = append(parts, fmt.Sprintf("the day %d days before the last", n))
		}
	}
	return "on " + list(parts) + " of the month"
}

func (s *Spec) ofWeekWords() string {
	set := s.sets[dayOfWeek]
	if set == 1<<7-1 {
		return ""
	}
	var parts []string
	if set != 0 {
		parts = append(parts, spans(set&^1|set&1<<7, "on ", "from ", weekday)) // a week ends with Sunday
	}
	for d := range 7 {
		for n, ordinal := range []string{"last", "first", "second", "third", "fourth", "fifth"} {
			if s.nth&(1<<(7*n+d)) != 0 {
				parts = append(parts, fmt.Sprintf("on the %s %s of the month", ordinal, weekday(d)))
			}
		}
	}
	return list(parts)
}

func weekday(n int) string { return time.Weekday(n % 7).String() }

// spans describes the values in a set: a single range as "from a to b", and any other set as a list
// of values and ranges.
func spans(set uint64, on, from string, name func(n int) string) string {
	var parts []string
	only := false // the set is one range of three values or more
	for rest := set; rest != 0; {
		first := bits.TrailingZeros64(rest)
		n := bits.TrailingZeros64(^(rest >> first))
		if n > 2 {
			parts = append(parts, name(first)+" to "+name(first+n-1))
			only = rest == set
		} else {
			for i := range n {
				parts = append(parts, name(first+i))
			}
		}
		rest = rest >> (first + n) << (first + n)
		only = only && rest == 0
	}
	if only {
		return from + parts[0]
	}
	return on + list(parts)
}

// list joins parts as in "a, b, and c".
func list(parts []string) string {
	switch n := len(parts); n {
	case 0, 1, 2:
		return strings.Join(parts, " and ")
	default:
		return strings.Join(slices.Concat(parts[:n-1:n-1], []string{"and " + parts[n-1]}), ", ")
	}
}
