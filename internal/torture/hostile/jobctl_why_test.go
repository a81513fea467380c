package hostile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: for a job of a damaged file, the answer of jobctl may lack obstacles whose rows may be lost, and jobs that
// run. Otherwise it equals the right answer, in the same order, and each text says what its obstacle is.
func TestWrongObstacleIsSeen(t *testing.T) {
	const two, three = "00000000-0000-0000-0000-000000000002", "00000000-0000-0000-0000-000000000003"
	line := func(obstacles string) string { return `{"id":"1","obstacles":[` + obstacles + `]}` + "\n" }
	key := func(name, until, counts, holders, text string) string {
		return `{"what":"key","text":"key \"` + text + `","key":"` + name + `","until_at":` + until + `,` + counts + `,"holders":[` + holders + `]}`
	}
	rate := func(until, text string) string {
		return `{"what":"key_rate","text":"the rate of key \"a\" lets its next job start at ` + text + `","key":"a","until_at":"` + until + `","holders":[]}`
	}
	const (
		stop  = `{"what":"stopped","text":"no process has the queue open","holders":[]}`
		dead  = `{"what":"dead","text":"it is dead since 2030-01-01T00:00:00Z (cancelled), until somebody retries it","until_at":"2030-01-01T00:00:00Z"}`
		of2   = `"running":2,"limit":2`
		both  = `"` + two + `","` + three + `"`
		year  = "2030-01-01T00:00:00Z"
		full  = `a\" has 2 of 2 jobs running: ` + two + ", " + three
		other = `{"id":"2","obstacles":[` + dead + `]}` + "\n"
	)
	place, next := key("a", "null", of2, both, full), rate(year, year)
	sound := map[string]bool{line(place + "," + next + "," + stop): true, other: true}
	for _, test := range []struct {
		rule string
		text string
		want bool
	}{
		{"all", line(place + "," + next + "," + stop), true},
		{"no rate", line(place + "," + stop), true},
		{"what lasts", line(stop), true},
		{"a job that runs is lost", line(key("a", "null", `"running":1,"limit":2`, `"`+three+`"`, `a\" has 1 of 2 jobs running: `+three) + "," + stop), true},
		{"another moment", line(rate("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z") + "," + stop), true},

		{"nothing", line(""), false},
		{"no list", `{"id":"1","obstacles":null}`, false},
		{"what lasts is missing", line(place), false},
		{"the death is missing", `{"id":"2","obstacles":[]}`, false},
		{"another order", line(stop + "," + place), false},
		{"one twice", line(place + "," + place + "," + stop), false},
		{"more running", line(key("a", "null", `"running":3,"limit":2`, both, `a\" has 3 of 2 jobs running: `+two+", "+three) + "," + stop), false},
		{"another holder", line(key("a", "null", of2, `"4"`, `a\" has 2 of 2 jobs running: 4`) + "," + stop), false},
		{"another limit", line(key("a", "null", `"running":2,"limit":3`, both, `a\" has 2 of 3 jobs running: `+two+", "+three) + "," + stop), false},
		{"another key", line(key("b", "null", of2, both, `b\" has 2 of 2 jobs running: `+two+", "+three) + "," + stop), false},
		{"a time", line(key("a", `"2026-01-01T00:00:00Z"`, of2, both, full) + "," + stop), false},
		{"another obstacle", line(`{"what":"paused"},` + stop), false},
		{"another text", line(key("a", "null", of2, both, `a\" has 1 of 2 jobs running: `+two+", "+three) + "," + stop), false},
		{"the text of more holders", line(key("a", "null", `"running":1,"limit":2`, `"`+three+`"`, full) + "," + stop), false},
		{"the text of another moment", line(rate("2026-01-01T00:00:00Z", year) + "," + stop), false},
		{"no text", line(`{"what":"stopped","holders":[]}`), false},
		{"another reason", `{"id":"2","obstacles":[{"what":"dead","text":"it is dead since 2030-01-01T00:00:00Z (poison), until somebody retries it","until_at":"2030-01-01T00:00:00Z"}]}`, false},
		{"another job", `{"id":"3","obstacles":[` + stop + `]}`, false},
		{"something else", `{"id":"1","counts":[]}`, false},
		{"another type", `{"id":"1","obstacles":"no"}`, false},
	} {
		require.Equal(t, test.want, partOfWhy(test.text, sound), test.rule)
	}
}
