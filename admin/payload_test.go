package admin

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
)

// A term applies to the value at its path, compared according to its type.
func TestPayloadTerms(t *testing.T) {
	payload := packOf(t, map[string]any{
		"user":  map[string]any{"id": 42, "name": "Ada Lovelace", "big": uint64(math.MaxUint64), "low": int64(math.MinInt64), "nil": nil, "on": true},
		"items": []any{map[string]any{"sku": "a-1"}, map[string]any{"sku": "b-2"}},
		"a.b":   map[string]any{"=": "odd"},
		"text":  "42", "float": 1.5, "single": float32(0.1), "raw": []byte{0, 255}, "at": noon, "empty": "",
		"7": "seven",
	})
	for _, test := range []struct {
		rule  string
		holds []string
		fails []string
	}{
		{"a path alone asks that the field is there", []string{"user", "user.id", "user.nil", "items.1", "items.0.sku", "empty"}, []string{"nobody", "user.id.x", "items.2", "items.-1", "items.x", "items.sku", "text.x"}},
		{"whole numbers are compared exactly", []string{"user.id=42", "user.big=18446744073709551615", "user.low=-9223372036854775808", "user.id=42.0", "user.id=4.2e1"}, []string{"user.id=43", "user.id=042x", "user.big=18446744073709551614", "user.low=-9223372036854775807", "user.id=", "user.id=forty"}},
		{"floats are compared as floats, of their width", []string{"float=1.5", "float=15e-1", "single=0.1"}, []string{"float=1.50001", "float=NaN", "float=x", "single=0.2"}},
		{"truth and null are words", []string{"user.on=true", "user.nil=null"}, []string{"user.on=false", "user.on=1", "user.nil=", "user.nil=false"}},
		{"a text is compared whole", []string{"text=42", "user.name=Ada Lovelace", "empty="}, []string{"user.name=Ada", "user.name=ada lovelace", "text=42.0"}},
		{"a quoted value is a text and nothing else", []string{`text="42"`, `empty=""`, `user.name="Ada\u0020Lovelace"`}, []string{`user.id="42"`, `user.on="true"`}},
		{"bytes and times are compared as JSON shows them", []string{"raw=AP8=", "at=2026-03-01T12:00:00.000000000Z"}, []string{"raw=x", "at=2026-03-01"}},
		{"a list or map has no value", nil, []string{"user=", "items=", "user={}", "items~a", "user~a"}},
		{"not equal is the opposite, also of what is not there", []string{"user.id!=43", "nobody!=1", "user!=", "items.2!=x"}, []string{"user.id!=42", "text!=42", "user.nil!=null"}},
		{"a part is found in upper or lower case", []string{"user.name~LOVE", "user.name~", "user.id~4", "at~2026-03", "user.on~RU", `user.name~"a l"`}, []string{"user.name~bob", "nobody~", "user.id~5"}},
		{"a quoted name may have anything in it", []string{`"a.b"."="=odd`, `"user".id=42`, `user."id"`}, []string{`"a.b".x`, `a.b`}},
		{"a number in a path is a key where there is a map", []string{"7=seven"}, []string{"8=seven"}},
		{"a value may have operators in it", []string{"text!=a=b", "user.name!=x~y"}, []string{"text=a=b"}},
	} {
		for want, terms := range map[bool][]string{true: test.holds, false: test.fails} {
			for _, text := range terms {
				f := Filter{Payload: []string{text}}
				require.NoError(t, ParsePayload(f.Payload), text)
				require.Equal(t, want, f.Matches(&pawl.Envelope{Payload: payload}), "%s: %s", test.rule, text)
			}
		}
	}
}

// A dot alone is the payload itself.
func TestPayloadTermsOfPlainArguments(t *testing.T) {
	for _, test := range []struct {
		args any
		term string
		want bool
	}{
		{"hello", ".=hello", true}, {"hello", ".~ELL", true}, {"hello", ".=bye", false}, {"hello", ".", true},
		{7, ".=7", true}, {7, ".!=7", false}, {[]int{1, 2}, "1=2", true}, {nil, ".=null", true},
	} {
		f := Filter{Payload: []string{test.term}}
		require.Equal(t, test.want, f.Matches(&pawl.Envelope{Payload: packOf(t, test.args)}), "%v %s", test.args, test.term)
	}
}

// A payload that is not MessagePack has no fields, and the last of duplicate keys counts.
func TestPayloadTermsOfHostileBytes(t *testing.T) {
	for _, payload := range []string{"", "\xc1", "\x81\xa1a", "\x81\xa1a\x01\x00", "\xdf\xff\xff\xff\xff", strings.Repeat("\x81\xa1a", 1<<16) + "\x01"} {
		for term, want := range map[string]bool{"a": false, "a=1": false, "a!=1": true, "a~1": false, ".": false} {
			f := Filter{Payload: []string{term}}
			require.Equal(t, want, f.Matches(&pawl.Envelope{Payload: []byte(payload)}), "%.20q %s", payload, term)
		}
	}
	twice := Filter{Payload: []string{"a=2"}}
	require.True(t, twice.Matches(&pawl.Envelope{Payload: []byte("\x82\xa1a\x01\xa1a\x02")}))
	odd := Filter{Payload: []string{`""=1`}} // a list as a key, which has no text
	require.True(t, odd.Matches(&pawl.Envelope{Payload: []byte("\x81\x91\x07\x01")}))
}

// All terms must hold.
func TestPayloadTermsAreAnd(t *testing.T) {
	payload := packOf(t, map[string]int{"a": 1, "b": 2})
	for want, terms := range map[bool][]string{true: {"a=1", "b=2"}, false: {"a=1", "b=3"}} {
		f := Filter{Payload: terms}
		require.Equal(t, want, f.Matches(&pawl.Envelope{Payload: payload}))
	}
}

// An invalid term is rejected before anything is read, and selects nothing.
func TestPayloadTermsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":          "has no name",
		"=1":        "has no name",
		"a..b":      "has no name",
		"a.":        "has no name",
		".a":        "begins with a dot",
		"a!b":       "has a ! that is no !=",
		`"a`:        "begins with a quote and does not end with one",
		`"a"b=1`:    "behind a quoted name",
		`a="1`:      "begins with a quote and does not end with one",
		`a="1"2`:    "begins with a quote and does not end with one",
		"a=1\x00.b": "",
	} {
		err := ParsePayload([]string{"a=1", text})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, pawl.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
		f := Filter{Payload: []string{text}}
		require.False(t, f.Matches(&pawl.Envelope{Payload: []byte{0x80}}))
	}
}

// Any term has a result for any bytes.
func FuzzPayloadTerm(f *testing.F) {
	payload := packOf(f, map[string]any{"a": []any{1, "x", map[string]any{"b": noon}}})
	for _, text := range []string{"a.0=1", "a.2.b~2026", `"a"!="x"`, ".", "a.1"} {
		f.Add(text, payload)
	}
	f.Fuzz(func(t *testing.T, text string, payload []byte) {
		filter := Filter{Payload: []string{text}}
		if filter.Matches(&pawl.Envelope{Payload: payload}) {
			require.NoError(t, ParsePayload(filter.Payload))
		}
	})
}

// Each field of a filter works by itself, and a job must match all of them.
func TestFilterMatches(t *testing.T) {
	dead := &pawl.Envelope{
		State: pawl.Dead, Queue: "email", Kind: "mail", Created: noon, NotBefore: noon.Add(time.Minute),
		Death:   &pawl.Death{Reason: pawl.ReasonExhausted, At: noon.Add(time.Hour)},
		History: []pawl.Failure{{Error: "first: refused"}, {Error: "Timeout after 30s"}}, Payload: []byte{0x07},
	}
	hour := func(f pawl.Filter) Filter { return Filter{Filter: f} }
	for _, test := range []struct {
		rule string
		f    Filter
		want bool
	}{
		{"nothing chooses all", Filter{}, true},
		{"the state", hour(pawl.Filter{State: pawl.Dead}), true},
		{"another state", hour(pawl.Filter{State: pawl.Ready}), false},
		{"another queue", hour(pawl.Filter{Queue: "x"}), false},
		{"another kind", hour(pawl.Filter{Kind: "x"}), false},
		{"another reason", hour(pawl.Filter{Reason: pawl.ReasonPoison}), false},
		{"the last error, in any case", Filter{Error: "TIMEOUT"}, true},
		{"an error before the last", Filter{Error: "refused"}, false},
		{"created at the beginning", Filter{Since: noon}, true},
		{"created before the beginning", Filter{Since: noon.Add(1)}, false},
		{"created before the end", Filter{Until: noon.Add(1)}, true},
		{"created at the end", Filter{Until: noon}, false},
		{"in its state before that", Filter{Before: noon.Add(time.Hour + 1)}, true},
		{"in its state since then", Filter{Before: noon.Add(time.Hour)}, false},
		{"the payload", Filter{Payload: []string{".=7"}}, true},
		{"another payload", Filter{Payload: []string{".=8"}}, false},
		{"all at once", Filter{Filter: pawl.Filter{State: pawl.Dead, Queue: "email"}, Error: "time", Payload: []string{".=7"}, Since: noon, Until: noon.Add(1), Before: noon.Add(2 * time.Hour)}, true},
		{"all but one", Filter{Filter: pawl.Filter{State: pawl.Dead, Queue: "x"}, Error: "time", Payload: []string{".=7"}, Since: noon, Until: noon.Add(1), Before: noon.Add(2 * time.Hour)}, false},
	} {
		require.Equal(t, test.want, test.f.Matches(dead), test.rule)
	}
}

// The record of a job determines since when it has been in its state.
func TestStateSince(t *testing.T) {
	e := pawl.Envelope{
		Created: noon, NotBefore: noon.Add(1), LeasedSince: noon.Add(2), Completed: noon.Add(3),
		Death: &pawl.Death{At: noon.Add(4)},
	}
	for state, want := range map[pawl.State]time.Duration{
		pawl.Ready: 1, pawl.Delayed: 0, pawl.Leased: 2, pawl.Completed: 3, pawl.Dead: 4,
	} {
		e.State = state
		require.Equal(t, noon.Add(want), StateSince(&e), string(state))
	}
	e.State, e.BackoffSince = pawl.Delayed, noon.Add(5)
	require.Equal(t, noon.Add(5), StateSince(&e), "a retry waits since its run failed")
}
