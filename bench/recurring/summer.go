package recurring

import (
	"fmt"
	"strconv"
	"time"
)

// The days on which summer time begins and ends in New York in 2026, where the clock skips the hour after 2:00 and
// repeats the one after 1:00.
const summerZone = "America/New_York"

var (
	spring = day{2026, time.March, 8}
	autumn = day{2026, time.November, 1}
)

type day struct {
	year  int
	month time.Month
	day   int
}

// summer counts the times of a daily job that the change concerns, and of an hourly job.
func summer() ([]row, error) {
	zone, err := time.LoadLocation(summerZone)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, s := range contenders() {
		r := row{s.name}
		for _, c := range []struct {
			expression string
			on         day
		}{{"30 2 * * *", spring}, {"30 1 * * *", autumn}, {"0 * * * *", spring}, {"0 * * * *", autumn}} {
			next, err := s.times(c.expression, zone)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			r = append(r, strconv.Itoa(timesOn(next, c.on, zone)))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// timesOn counts the times of a schedule on a day.
func timesOn(next func(time.Time) time.Time, on day, zone *time.Location) (n int) {
	begin := time.Date(on.year, on.month, on.day, 0, 0, 0, 0, zone)
	end := time.Date(on.year, on.month, on.day+1, 0, 0, 0, 0, zone)
	for t := next(begin.Add(-time.Nanosecond)); !t.IsZero() && t.Before(end); t = next(t) {
		n++
	}
	return n
}
