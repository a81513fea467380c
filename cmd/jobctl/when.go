package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

var (
	errCount  = errors.New("it must be a number, 0 or more")
	errAge    = errors.New("it must be a duration such as 90s, 5m, 2h or 7d")
	errMoment = errors.New("it must be an age such as 2h or 7d, a date such as 2026-03-01, or a time such as 2026-03-01T09:00:00Z")
)

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errCount
	}
	return n, nil
}

// parseAge reads a duration in Go's notation, or in days or weeks.
func parseAge(text string) (time.Duration, error) {
	for unit, hours := range map[string]time.Duration{"d": 24, "w": 7 * 24} {
		number, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n > math.MaxInt64/uint64(hours*time.Hour) {
			return 0, errAge
		}
		return time.Duration(n) * hours * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errAge
	}
	return d, nil
}

// parseMoment reads a time, a date, which means its beginning in the zone, or an age before now.
func parseMoment(text string, now time.Time, zone *time.Location) (time.Time, error) {
	return parseTime(text, now, -1, zone)
}

// parseFuture is parseMoment for future times: a duration counts from now.
func parseFuture(text string, now time.Time, zone *time.Location) (time.Time, error) {
	return parseTime(text, now, 1, zone)
}

func parseTime(text string, now time.Time, direction time.Duration, zone *time.Location) (time.Time, error) {
	if d, err := parseAge(text); err == nil {
		return now.Add(direction * d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errMoment
}

// stamp writes a time for programs: RFC 3339 in UTC, always with nine digits, so that texts sort
// as times do.
func stamp(t time.Time) string {
	return bounded(t).Format("2006-01-02T15:04:05.000000000Z07:00")
}

// moment writes a time for people, with its distance from now.
func (a *app) moment(t time.Time) string {
	return fmt.Sprintf("%s  (%s)", a.clock(t), relative(a.now(), t))
}

// clock writes a time for people.
func (a *app) clock(t time.Time) string {
	t = bounded(t)
	if here := t.In(a.location()); here.Year() >= 0 && here.Year() <= 9999 {
		t = here
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

// bounded limits a time to the years that RFC 3339 can express.
func bounded(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Year() < 0:
		return time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case t.Year() > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	}
	return t
}

// relative returns the distance between t and now: "3h ago", "in 12s".
func relative(now, t time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + plain.Span(d)
	}
	return plain.Span(d) + " ago"
}
