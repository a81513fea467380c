package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/internal/race"
)

// requireRefused requires that an import fails and stores nothing, and returns the error.
func requireRefused(t *testing.T, export string) error {
	t.Helper()
	w := &watched{}
	_, err := Import(t.Context(), w, strings.NewReader(export), nil)
	require.ErrorIs(t, err, pawl.ErrInvalid, export)
	require.ErrorContains(t, err, "nothing was stored")
	require.Empty(t, w.changes, export)
	return err
}

// mixedLines returns lines of every type.
func mixedLines() []string {
	return []string{
		`{"queue":{"name":"default","paused":true}}`,
		jobLine(simpleJob(1, nil)),
		jobLine(simpleJob(2, func(e *pawl.Envelope) { e.Payload = []byte("\xff\x00"); e.Kind = "\xff" })),
		`{"damaged":{"id":"01000000-0000-7000-8000-000000000003","error":{"base64":"/w=="}}}`,
		`{"damaged":{"id":null,"error":"x"}}`,
		`{"effect":{"kind":"k","key":"a","until":"2999-01-01T00:00:00Z"}}`,
		`{"effect":{"kind":"k","key":"b","until":"2999-01-01T00:00:00Z"}}`,
		scheduleLine("nightly"),
	}
}

// Rule: a truncated export is refused, wherever it was cut, except at the end of its last line.
func TestImportOfACutExport(t *testing.T) {
	export := exportLines(mixedLines()...)
	for n := range len(export) - 1 {
		requireRefused(t, export[:n])
	}
	for _, whole := range []string{export, export[:len(export)-1]} {
		_, err := Import(t.Context(), &watched{}, strings.NewReader(whole), nil)
		require.NoError(t, err)
	}
	require.ErrorContains(t, requireRefused(t, ""), "it was cut")
}

// Rule: an export with a lost or duplicate line, or with its first or last line elsewhere, is
// refused. Other lines may come in any order: the result is the same.
func TestImportOfMovedLines(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(exportLines(mixedLines()...), "\n"), "\n")
	for i := range lines {
		without := append(append([]string(nil), lines[:i]...), lines[i+1:]...)
		requireRefused(t, strings.Join(without, "\n"))
		twice := append(append([]string(nil), lines[:i+1]...), lines[i:]...)
		requireRefused(t, strings.Join(twice, "\n"))
		for j := range i {
			swapped := append([]string(nil), lines...)
			swapped[i], swapped[j] = lines[j], lines[i]
			export := strings.Join(swapped, "\n")
			if j == 0 || i == len(lines)-1 {
				requireRefused(t, export)
				continue
			}
			to := transferQueue(t)
			_, err := Import(t.Context(), Of(to), strings.NewReader(export), nil)
			require.NoError(t, err)
			require.Len(t, jobsIn(t, to), 2)
		}
	}
}

// Rule: if any bit of an export is flipped, the result is an import or an error, and an error
// stores nothing. There is never a panic.
func TestImportOfFlippedBits(t *testing.T) {
	export := []byte(exportLines(mixedLines()...))
	tried, refused := 0, 0
	step := 16 / race.Fewer(2)
	for i := range export {
		for bit := i % step; bit < 8; bit += step { // one of each byte, or of every second byte under the race detector
			tried++
			export[i] ^= 1 << bit
			w := &watched{}
			_, err := Import(t.Context(), w, strings.NewReader(string(export)), nil)
			if err != nil {
				refused++
				require.ErrorIs(t, err, pawl.ErrInvalid)
				require.Empty(t, w.changes)
			}
			export[i] ^= 1 << bit
		}
	}
	require.Greater(t, refused, tried/2, "most are found")
}

// Rule: the check refuses what no queue would have stored, with the line and the problem, before
// anything is stored.
func TestImportRefuses(t *testing.T) {
	good := `"id":"01000000-0000-7000-8000-000000000001","kind":"k","state":"ready"`
	job := func(fields string) string { return `{"job":{` + fields + `}}` }
	with := func(fields string) string { return job(good + `,` + fields) }
	require.NoError(t, func() error {
		_, err := Import(t.Context(), &watched{}, strings.NewReader(exportLines(job(good))), nil)
		return err
	}(), "what the cases change is fine")
	_, rest, _ := strings.Cut(exportLines(), "\n")
	for _, c := range []struct{ rule, line, says string }{
		{"not JSON", `{"job":`, "line 2: it is not JSON"},
		{"an empty line", ``, "line 2: it is not JSON"},
		{"a list", `[]`, "cannot unmarshal array"},
		{"a text", `"job"`, "cannot unmarshal string"},
		{"null", `null`, "it has 0 of queue, schedule, group, job"},
		{"an object without anything", `{}`, "it has 0 of queue, schedule, group, job"},
		{"two sorts in one line", `{"job":{` + good + `},"queue":{"name":"a","paused":false}}`, "it has 2 of queue, schedule, group, job"},
		{"a sort that is null", `{"job":null}`, "it has 0 of queue, schedule, group, job"},
		{"an unknown sort", `{"lease":{}}`, `unknown field "lease"`},
		{"a second header", `{"pawl_export":1}`, `unknown field "pawl_export"`},
		{"an unknown field of a job", with(`"colour":"red"`), `unknown field "colour"`},
		{"an unknown field of a history", with(`"failures":1,"history":[{"attempt":1,"at":null,"error":"x","colour":"red"}]`), `unknown field "colour"`},
		{"an unknown field of a queue", `{"queue":{"name":"a","paused":false,"colour":"red"}}`, `unknown field "colour"`},
		{"a name twice", with(`"kind":"other"`), `the name "kind" twice`},
		{"an ID twice", job(good) + "\n" + job(good), "line 3: job 01000000-0000-7000-8000-000000000001 is in line 2 already"},
		{"an ID that is none", strings.Replace(job(good), "01000000", "0100000x", 1), "no hexadecimal digit"},
		{"an ID that is a number", job(`"id":5,"kind":"k","state":"ready"`), "cannot unmarshal number"},
		{"no kind", job(`"state":"ready"`), "invalid kind: it is empty"},
		{"a kind with a NUL", job(`"kind":"a\u0000","state":"ready"`), "NUL"},
		{"a kind that is too long", job(`"kind":"` + strings.Repeat("k", 256) + `","state":"ready"`), "longer than 255"},
		{"no state", job(`"kind":"k"`), "invalid state"},
		{"an unknown state", job(`"kind":"k","state":"asleep"`), "invalid state"},
		{"an unknown state of uniqueness", with(`"unique_key":"u","unique_in":["asleep"]`), "invalid unique states"},
		{"a priority out of range", with(`"priority":128`), "invalid priority"},
		{"a number that is too large", with(`"attempts":99999999999999999999`), "cannot unmarshal number"},
		{"a number with an exponent", with(`"attempts":1e999999999`), "cannot unmarshal number"},
		{"a number that is a fraction", with(`"attempts":1.5`), "cannot unmarshal number"},
		{"a number that is a text", with(`"attempts":"1"`), "cannot unmarshal string"},
		{"a negative sequence", with(`"sequence":-1`), "cannot unmarshal number"},
		{"negative attempts", with(`"attempts":-1`), "invalid attempts"},
		{"attempts that would wrap", with(`"attempts":9223372036854775807`), "invalid attempts"},
		{"negative crashes", with(`"crashes":-1`), "invalid crashes"},
		{"negative failures", with(`"failures":-1`), "invalid failures"},
		{"negative retries", with(`"max_retries":-1`), "invalid max retries"},
		{"too many retries", with(`"max_retries":1001`), "invalid max retries"},
		{"a history that its failures do not have", with(`"history":[{"attempt":1,"at":null,"error":"x"}]`), "invalid history"},
		{"failures without their history", with(`"failures":3`), "invalid history"},
		{"an error that is too long", with(`"failures":1,"history":[{"attempt":1,"at":null,"error":"` + strings.Repeat("x", 4097) + `"}]`), "invalid history"},
		{"a negative attempt", with(`"failures":1,"history":[{"attempt":-1,"at":null,"error":"x"}]`), "invalid history"},
		{"a history of a bomb", with(`"history":[` + strings.Repeat("{},", 5000) + `{}]`), "more than 4096 elements"},
		{"a time that is none", with(`"created_at":"yesterday"`), "invalid time"},
		{"a time that is a number", with(`"created_at":5`), "cannot unmarshal number"},
		{"a year with five digits", with(`"created_at":"10000-01-01T00:00:00Z"`), "invalid time"},
		{"a month that is none", with(`"created_at":"2026-13-01T00:00:00Z"`), "invalid time"},
		{"a duration that is none", with(`"timeout":"soon"`), "invalid duration"},
		{"a duration that would wrap", with(`"timeout":"9999999h"`), "invalid duration"},
		{"a negative timeout", with(`"timeout":"-1s"`), "invalid timeout"},
		{"a negative retention", with(`"retain":"-1s"`), "invalid retention"},
		{"a negative time of a key", with(`"idempotency_key":"x","idempotency_ttl":"-1s"`), "invalid idempotency TTL"},
		{"a key that is too long", with(`"unique_key":"` + strings.Repeat("x", 256) + `"`), "invalid unique key"},
		{"a header that is too long", with(`"headers":{"a":"` + strings.Repeat("x", 8192) + `"}`), "invalid headers"},
		{"too many headers", with(`"headers":[` + strings.Repeat(`{"key":"a","value":"b"},`, 5000) + `{"key":"a","value":"b"}]`), "more than 4096 elements"},
		{"a signature that is too long", with(`"signature":"` + strings.Repeat("AAAA", 30) + `"`), "invalid signature"},
		{"a signature that is no base64", with(`"signature":"?"`), "illegal base64"},
		{"a payload that is no base64", with(`"payload":{"size_bytes":1,"base64":"?"}`), "invalid payload"},
		{"a payload of another size", with(`"payload":{"size_bytes":2,"base64":"AA=="}`), "invalid payload"},
		{"a payload that was left out", with(`"payload":{"size_bytes":2}`), "invalid payload"},
		{"a text that is no base64", with(`"unique_key":{"base64":"?"}`), "illegal base64"},
		{"a policy that is none", with(`"policy":"hope"`), "invalid policy"},
		{"a policy with a negative base", with(`"policy_data":{"form":"fixed","base":"-1s"}`), "invalid policy"},
		{"a death of a job that is ready", with(`"reason":"exhausted","died_at":"2026-01-01T00:00:00Z"`), "invalid death"},
		{"a dead job without a death", job(`"kind":"k","state":"dead"`), "invalid death"},
		{"a death without a time", job(`"kind":"k","state":"dead","reason":"r"`), "invalid death: it has no time"},
		{"a death without a reason", job(`"kind":"k","state":"dead","died_at":"2026-01-01T00:00:00Z"`), "invalid death"},
		{"a completed job without its time", job(`"kind":"k","state":"completed","retain":"1h"`), "invalid completed"},
		{"a completed job that is not retained", job(`"kind":"k","state":"completed","completed_at":"2026-01-01T00:00:00Z"`), "invalid retention"},
		{"a completion of a job that is ready", with(`"completed_at":"2026-01-01T00:00:00Z"`), "invalid completed"},
		{"a delay, which is for an enqueue", with(`"delay":"1h"`), "for jobs that are enqueued"},
		{"what to do on a conflict, likewise", with(`"on_conflict":"replace"`), "for jobs that are enqueued"},
		{"a queue without a name", `{"queue":{"name":"","paused":true}}`, "invalid queue"},
		{"a queue twice", `{"queue":{"name":"a","paused":false}}` + "\n" + `{"queue":{"name":"a","paused":true}}`, `line 3: queue "a" has a line already`},
		{"an effect without a kind", `{"effect":{"kind":"","key":"x","until":null}}`, "invalid kind"},
		{"an effect without a key", `{"effect":{"kind":"k","key":"","until":null}}`, "invalid idempotency key"},
		{"a damage with an ID that is none", `{"damaged":{"id":"5","error":"x"}}`, "invalid id"},
		{"bytes that are not UTF-8", job("\"kind\":\"\xff\",\"state\":\"ready\""), "not UTF-8"},
		{"nesting of a bomb", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "more than 64 deep"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			export := exportLines(strings.Split(c.line, "\n")...)
			err := requireRefused(t, export)
			require.ErrorContains(t, err, c.says)
			require.Contains(t, err.Error(), "invalid export: line ")
			require.Less(t, len(err.Error()), 1000, "an error is no copy of the line")
		})
	}
	for rule, first := range map[string]string{
		"no header":                   `{"queue":{"name":"a","paused":true}}`,
		"a header of no version":      `{"pawl_export":0}`,
		"a negative version":          `{"pawl_export":-1}`,
		"a version that is a text":    `{"pawl_export":"1"}`,
		"a list":                      `[1]`,
		"a header with unknown names": `{"pawl_export":1,"lamp":"on"}`,
	} {
		t.Run(rule, func(t *testing.T) {
			require.ErrorContains(t, requireRefused(t, first+"\n"+rest), "line 1: ")
		})
	}
	for rule, end := range map[string]string{
		"a negative count":     `{"end":{"queues":0,"jobs":-1,"effects":0,"damaged":0}}`,
		"a count that is less": `{"end":{"queues":0,"jobs":0,"effects":0,"damaged":0}}`,
		"a count that is more": `{"end":{"queues":0,"jobs":2,"effects":0,"damaged":0}}`,
		"no counts":            `{"end":{}}`,
	} {
		t.Run(rule, func(t *testing.T) {
			lines := strings.Split(exportLines(job(good)), "\n")
			err := requireRefused(t, strings.Join([]string{lines[0], lines[1], end}, "\n"))
			require.ErrorContains(t, err, "line 3: it counts")
		})
	}
}

// Rule: times that other programs reject are imported unchanged.
func TestImportOfRareTimes(t *testing.T) {
	to := transferQueue(t)
	for i, at := range []string{"0001-01-01T00:00:00.000000001Z", "1969-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59Z", "@253402300800.000000000", "2026-01-01T00:00:00+14:00"} {
		line := fmt.Sprintf(`{"job":{"kind":"k","state":"ready","created_at":"%s","not_before":"%s"}}`, at, at)
		_, err := Import(t.Context(), Of(to), strings.NewReader(exportLines(line)), nil)
		require.NoError(t, err, at)
		var want Stamp
		require.NoError(t, want.UnmarshalJSON([]byte(`"`+at+`"`)))
		jobs := jobsIn(t, to)
		require.Len(t, jobs, i+1)
		require.True(t, jobs[i].Created.Equal(want.Time), at)
	}
}
