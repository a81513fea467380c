package main

import (
	"fmt"
	"time"
)

// stamp writes a time for programs: RFC 3339 in UTC, always with nine digits of
// nanoseconds, so that texts sort as times do.
func stamp(t time.Time) string {
	return bounded(t).Format("2006-01-02T15:04:05.000000000Z07:00")
}

// moment writes a time for people, with its distance from now.
func moment(now, t time.Time) string {
	return fmt.Sprintf("%s  (%s)", bounded(t).Format("2006-01-02T15:04:05.000Z07:00"), relative(now, t))
}

// bounded cuts a time to the years that RFC 3339 can write.
func bounded(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Year() < 0:
		return time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	}
	return t
}

// span writes a length of time in at most two units: 12s, 4m02s, 3h, 2d.
func span(d time.Duration) string {
	d = d.Abs()
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// relative says how far t is from now: "3h ago", "in 12s".
func relative(now, t time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + span(d)
	}
	return span(d) + " ago"
}

// byteSize writes a size: 12 B, 3.4 KiB, 12.4 MiB.
func byteSize(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/(1<<10), "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, next
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}
