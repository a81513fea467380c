package schedule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// known are times that the documentation promises, on all days on which a clock is changed.
var known = []struct {
	rule, text, zone, after string
	next                    []string
}{
	{"half past two is skipped, and counts at the end of the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00+01:00",
		[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
	{"half past two is shown twice, and counts once", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00",
		[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
	{"all times of a gap count once, with a time at its end", "0,30 2,3 * * *", "America/New_York", "2026-03-07T12:00:00-05:00",
		[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:00:00-04:00"}},
	{"every half hour follows elapsed time over a skipped hour", "*/30 * * * *", "America/New_York", "2026-03-08T01:15:00-05:00",
		[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00"}},
	{"and over a repeated one", "30 * * * *", "America/New_York", "2026-11-01T00:45:00-04:00",
		[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"}},
	{"a gap of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
		[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
	{"half an hour that is repeated", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00",
		[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
	{"a gap of two hours", "0 2 * * *", "Antarctica/Troll", "2026-03-28T12:00:00+00:00",
		[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"}},
	{"the clock goes back for Ramadan", "30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00+01:00",
		[]string{"2026-02-15T02:30:00+01:00", "2026-02-16T02:30:00+00:00"}},
	{"midnight is skipped", "@daily", "Africa/Cairo", "2026-04-23T12:00:00+02:00",
		[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"}},
	{"midnight is skipped in Beirut too", "@daily", "Asia/Beirut", "2026-03-28T12:00:00+02:00",
		[]string{"2026-03-29T01:00:00+03:00", "2026-03-30T00:00:00+03:00"}},
	{"a day that was skipped counts at the start of the next", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00-10:00",
		[]string{"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"}},
	{"either field of days matches if both are restricted", "0 0 13 * FRI", "UTC", "2026-11-07T00:00:00Z",
		[]string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z", "2026-12-04T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z"}},
	{"both match if one has a star", "0 0 */2 * MON", "UTC", "2026-11-01T00:00:00Z",
		[]string{"2026-11-09T00:00:00Z", "2026-11-23T00:00:00Z", "2026-12-07T00:00:00Z"}},
	{"ranges wrap around", "0 22-1 * * SAT-SUN", "UTC", "2026-11-21T12:00:00Z",
		[]string{"2026-11-21T22:00:00Z", "2026-11-21T23:00:00Z", "2026-11-22T00:00:00Z", "2026-11-22T01:00:00Z", "2026-11-22T22:00:00Z"}},
	{"0 and 7 are Sunday", "0 0 * * 5-7,0", "UTC", "2026-11-26T12:00:00Z",
		[]string{"2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z", "2026-12-04T00:00:00Z"}},
	{"7-7 is Sunday alone", "0 0 * * 7-7", "UTC", "2026-11-26T12:00:00Z", []string{"2026-11-29T00:00:00Z", "2026-12-06T00:00:00Z"}},
	{"the last day, and days before it", "0 0 L,L-2 2 ?", "UTC", "2027-01-01T00:00:00Z",
		[]string{"2027-02-26T00:00:00Z", "2027-02-28T00:00:00Z", "2028-02-27T00:00:00Z", "2028-02-29T00:00:00Z"}},
	{"the weekday nearest to a day stays in the month", "0 0 1W,31W * ?", "UTC", "2026-08-01T00:00:00Z",
		[]string{"2026-08-03T00:00:00Z", "2026-08-31T00:00:00Z", "2026-09-01T00:00:00Z", "2026-10-01T00:00:00Z", "2026-10-30T00:00:00Z"}},
	{"the second and the last Friday", "0 0 ? * FRI#2,5L", "UTC", "2026-11-01T00:00:00Z",
		[]string{"2026-11-13T00:00:00Z", "2026-11-27T00:00:00Z", "2026-12-11T00:00:00Z", "2026-12-25T00:00:00Z"}},
	{"a leap day that is a Monday", "0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
	{"an interval is anchored at 1970", "@every 90s/30s", "UTC", "2026-11-23T00:00:10.5Z",
		[]string{"2026-11-23T00:00:30Z", "2026-11-23T00:02:00Z"}},
	{"seconds come first", "*/20 59 23 31 12 *", "UTC", "2026-12-31T23:59:20Z",
		[]string{"2026-12-31T23:59:40Z", "2027-12-31T23:59:00Z"}},
	{"the time zone of an expression comes first", "CRON_TZ=Asia/Tokyo 0 9 * * * # the office opens", "UTC", "2026-11-23T00:00:00Z",
		[]string{"2026-11-24T09:00:00+09:00"}},
	{"a fraction of a second later is later", "* * * * * *", "UTC", "2026-11-23T00:00:00.999Z", []string{"2026-11-23T00:00:01Z"}},
	{"the last day of a leap year, in a zone with a rule for all years to come", "0 12 * * *", "Antarctica/Troll", "2040-12-30T12:00:00Z",
		[]string{"2040-12-31T12:00:00Z", "2041-01-01T12:00:00Z"}},
	{"the same by the hour", "0 * * * *", "America/New_York", "2096-12-31T23:00:00Z",
		[]string{"2097-01-01T00:00:00Z", "2097-01-01T01:00:00Z"}},
	{"before 1970", "0 0 * * *", "UTC", "1968-12-30T23:59:59.5Z", []string{"1968-12-31T00:00:00Z", "1969-01-01T00:00:00Z"}},
}

func TestKnownTimes(t *testing.T) {
	for _, test := range known {
		t.Run(test.rule, func(t *testing.T) {
			s, err := Parse(test.text)
			require.NoError(t, err)
			at, err := time.Parse(time.RFC3339, test.after)
			require.NoError(t, err)
			for _, want := range test.next {
				next, err := time.Parse(time.RFC3339, want)
				require.NoError(t, err)
				at = s.Next(at, load(t, test.zone))
				require.Equal(t, next.UTC(), at.UTC(), "it is %s", at)
			}
		})
	}
}

// Rule: Next does not depend on where it starts: from any moment it returns the first time
// behind it of those found one after the other.
func TestNextFromAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		s, err := Parse(anyExpression(r))
		if err != nil {
			continue
		}
		loc := load(t, zones[r.IntN(len(zones))])
		at := time.Date(1990+r.IntN(70), time.Month(r.IntN(12)), r.IntN(28), 0, 0, 0, 0, time.UTC)
		for range 50 {
			next := s.Next(at, loc)
			require.True(t, next.After(at))
			between := at.Add(time.Duration(r.Int64N(int64(next.Sub(at)))))
			require.Equal(t, next, s.Next(between, loc), "%q from %s", s, between)
			at = next
		}
	}
}

// Rule: the zero Spec never happens.
func TestZeroSpec(t *testing.T) {
	require.True(t, Spec{}.Next(time.Now(), time.UTC).IsZero())
	require.Equal(t, "never", Spec{}.Words())
}

// Rule: Next ends for every time. Where the calendar has no room left it returns the zero time.
func TestExtremeTimes(t *testing.T) {
	for _, text := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "@every 90s"} {
		s, err := Parse(text)
		require.NoError(t, err)
		for _, at := range []time.Time{time.Unix(1<<62, 0), time.Unix(1<<63-62135596801, 0), time.Unix(-1<<62, 0), time.Unix(1<<55, 0)} {
			require.True(t, s.Next(at, load(t, "Europe/Berlin")).IsZero(), "%q after %d", text, at.Unix())
		}
		for _, at := range []time.Time{{}, time.Unix(1<<54, 0), time.Unix(-1<<54, 0)} {
			require.True(t, s.Next(at, load(t, "Europe/Berlin")).After(at), "%q after %d", text, at.Unix())
		}
		require.Equal(t, s.Next(time.Unix(0, 0), time.UTC), s.Next(time.Unix(0, 0), nil))
	}
}

// Rule: H stands for a value that follows from the name, in its range, and names spread.
func TestNamed(t *testing.T) {
	minutes := make(map[int]bool)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s, err := ParseNamed(name, "H H(1-5) * * *")
		require.NoError(t, err)
		again, err := ParseNamed(name, s.String())
		require.NoError(t, err)
		at := s.Next(time.Unix(0, 0), time.UTC)
		require.Equal(t, at, again.Next(time.Unix(0, 0), time.UTC))
		require.Equal(t, at.AddDate(0, 0, 1), s.Next(at, time.UTC))
		require.Contains(t, []int{1, 2, 3, 4, 5}, at.Hour())
		minutes[at.Minute()] = true
	}
	require.Greater(t, len(minutes), 4)

	s, err := ParseNamed("a", "H/15 * * * *")
	require.NoError(t, err)
	first := s.Next(time.Unix(0, 0), time.UTC)
	require.Less(t, first.Minute(), 15)
	require.Equal(t, first.Add(15*time.Minute), s.Next(first, time.UTC))

	s, err = ParseNamed("a", "0 0 H 2 *")
	require.NoError(t, err)
	require.LessOrEqual(t, s.Next(time.Unix(0, 0), time.UTC).Day(), 28)
}

// Rule: what cannot be a schedule is refused with the reason and the column.
func TestRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"":                                      "is empty",
		"  # a comment":                         "is empty",
		"TZ=UTC":                                "is empty",
		"* * * *":                               "has 4 fields; it needs 5, or 6 with seconds first",
		"*":                                     "has 1 field; it needs 5, or 6 with seconds first",
		"* * * * * * *":                         "has 7 fields; it needs 5, or 6 with seconds first",
		"61 * * * *":                            "minute: 61 is not in 0-59 (column 1)",
		"0 0,24 * * *":                          "hour: 24 is not in 0-23 (column 5)",
		"0 0 0 * *":                             "day of the month: 0 is not in 1-31 (column 5)",
		"0 0 * FOO *":                           `month: "FOO" is not a number or a name such as JAN (column 7)`,
		"0 x * * *":                             `hour: "X" is not a number (column 3)`,
		"0 0 * * 8":                             "day of the week: 8 is not in 0-6 (column 9)",
		"0 0 1--100000000 * *":                  `day of the month: "-100000000" is not a number (column 7)`,
		"0 ,1 * * *":                            `hour: "" is not a number (column 3)`,
		"0 0 * * MON-":                          `day of the week: "" is not a number or a name such as SUN (column 13)`,
		"*/0 * * * *":                           `minute: the step "0" is not in 1-59 (column 3)`,
		"*/60 * * * *":                          `minute: the step "60" is not in 1-59 (column 3)`,
		"0 0 * * L":                             "day of the week: say the last of which day, as in FRIL (column 9)",
		"0 0 * * FRI#6":                         "day of the week: a number from 1 to 5 follows # (column 13)",
		"0 0 L3 * *":                            "day of the month: L stands alone, or a number up to 30 follows, as in L-3 (column 5)",
		"0 0 W * *":                             `day of the month: "" is not a number (column 5)`,
		"? * * * *":                             `minute: "?" is not a number (column 1)`,
		"H(5-1) * * * *":                        "minute: a range behind H does not wrap around (column 5)",
		"H(5 * * * *":                           "minute: a range in parentheses may follow H, as in H(1-5) (column 2)",
		"0 0 31 2 *":                            "no day matches it",
		"0 0 31W 2,4,6,9,11 ?":                  "no day matches it",
		"@every":                                "@every needs one interval, as in @every 90s (column 1)",
		"@every 0s":                             "the interval is at least 1s (column 8)",
		"@every 1500ms":                         `"1500ms" is not a whole number of seconds (column 8)`,
		"@every soon":                           `"soon" is not a duration such as 90s or 1h30m (column 8)`,
		"@every 1m/1m":                          "the part behind / is at least 0s and less than the interval (column 11)",
		"@sometimes":                            `"@sometimes" is not @every, @open, or one of @yearly, @monthly, @weekly, @daily, and @hourly (column 1)`,
		"@open 5":                               "nothing may follow @open (column 7)",
		"@daily 5":                              "nothing may follow @daily (column 8)",
		"ZONE=UTC * * * * *":                    `"ZONE" is not TZ or CRON_TZ (column 1)`,
		"TZ= * * * * *":                         "name a time zone, as in TZ=Europe/Berlin (column 4)",
		"TZ=Europe/Berlim * * * * *":            `the time zone "Europe/Berlim" is unknown; Europe/Berlin? (column 4)`,
		strings.Repeat("1,", 600) + "1 * * * *": "has 1209 bytes, and may have 1024",
	} {
		_, err := Parse(text)
		require.ErrorIs(t, err, pawl.ErrInvalid, text)
		require.EqualError(t, err, "invalid schedule: "+reason, text)
	}
}

func TestWords(t *testing.T) {
	for text, words := range map[string]string{
		"30 2 * * MON-FRI":         "at 02:30 from Monday to Friday",
		"* * * * *":                "every minute",
		"*/15 * * * *":             "every 15 minutes",
		"*/10 * * * * *":           "every 10 seconds",
		"5 * * * *":                "minute 5 of every hour",
		"5,35 9-17 * * *":          "minutes 5 and 35 of hours 9 to 17",
		"* 9-17 * * *":             "every minute of hours 9 to 17",
		"30 */6 * * *":             "at 00:30, 06:30, 12:30, and 18:30",
		"15 30 2 * * *":            "at 02:30:15",
		"59 59 23 * * *":           "at 23:59:59",
		"@monthly":                 "at 00:00 on day 1 of the month",
		"0 0 1,15 * FRI":           "at 00:00 on days 1 and 15 of the month or on Friday",
		"0 0 1-7 * */2":            "at 00:00 on days 1 to 7 of the month if that is Tuesday, Thursday, Saturday, and Sunday",
		"0 9 L-3,LW,15W JAN-MAR *": "at 09:00 on the weekday nearest to day 15, the last weekday, and the day 3 days before the last of the month from January to March",
		"0 9 L,L-1 6,12 ?":         "at 09:00 on the last day and the day before the last of the month in June and December",
		"0 9 * * FRI-MON":          "at 09:00 on Monday and Friday to Sunday",
		"0 9 * * MON#1,FRIL":       "at 09:00 on the first Monday of the month and on the last Friday of the month",
		"@every 90s/30s":           "every 1m30s, shifted by 30s",
		"@every 2h":                "every 2h",
		"@open":                    "whenever the program starts",
		"TZ=Asia/Tokyo 0 9 * * *":  "at 09:00, time zone Asia/Tokyo",
	} {
		s, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, words, s.Words(), text)
	}
}

// Rule: whatever is parsed ends soon, has a normal form that means the same, and a next time.
func FuzzParse(f *testing.F) {
	for _, test := range known {
		f.Add(test.text, int64(0))
	}
	for _, text := range []string{"H H(1-5) * * *", "H/15 * * * *", "@daily", "@open", "0 0 29 2 MON#5", "0 0 1--100000000 * *", "TZ=../etc 0 0 * * *"} {
		f.Add(text, int64(1<<40))
	}
	f.Fuzz(func(t *testing.T, text string, at int64) {
		s, err := Parse(text)
		if err != nil {
			require.ErrorIs(t, err, pawl.ErrInvalid)
			return
		}
		again, err := Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s.String(), again.String())
		require.Equal(t, s.Words(), again.Words())
		from := time.Unix(at%(1<<40), 0)
		next := s.Next(from, time.UTC)
		require.True(t, next.After(from) || next.IsZero() && strings.HasSuffix(s.String(), "@open"))
		require.True(t, next.Equal(again.Next(from, time.UTC)))
	})
}

// BenchmarkParse and BenchmarkNext measure expressions that need the longest search.
func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("0 0 31W 2,4,6,9,11 ?"); err == nil {
			b.Fatal("it was not refused")
		}
	}
}

func BenchmarkNext(b *testing.B) {
	s, err := Parse("0 0 29 2 *")
	require.NoError(b, err)
	loc, err := time.LoadLocation("America/New_York")
	require.NoError(b, err)
	from := time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		s.Next(from, loc)
	}
}

// Rule: the error for an unknown zone names the nearest known one, and every such name exists.
func TestNearestZone(t *testing.T) {
	for name, want := range map[string]string{
		"Europe/Berlim": "Europe/Berlin", "europe/berlin": "Europe/Berlin", "Berlin": "Europe/Berlin", "Asia/Tokio": "Asia/Tokyo",
		"America/New York": "America/New_York", "utc": "UTC", "Mars/Phobos": "", "": "", strings.Repeat("x", 500): "",
	} {
		require.Equal(t, want, nearestZone(name), name)
	}
	for name := range strings.SplitSeq(zoneNames, " ") {
		require.NotNil(t, load(t, name))
	}
}
