package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/cmd/jobctl/internal/plain"
)

// Text that moves, hides or reorders other text is escaped; ordinary text is not.
func TestEscape(t *testing.T) {
	for given, want := range map[string]string{
		"plain text, ümläut, 漢字, ×": "plain text, ümläut, 漢字, ×",
		`C:\temp\x1b`:               `C:\temp\x1b`,
		"\x00\x07\x1b\x7f":          `\x00\x07\x1b\x7f`,
		"a\nb\tc\rd":                `a\nb\tc\x0dd`,
		"\u009b31m":                 `\u009b31m`, // the one-character form of ESC [
		"\x9b31m":                   `\x9b31m`,
		"a\u202eb\u2066c\u200f":     `a\u202eb\u2066c\u200f`,
		"\u200b\u00ad\ufeff\u2028":  `\u200b\u00ad\ufeff\u2028`,
		"\U000e0041":                `\U000e0041`, // an invisible tag character
		"\xff\xfe\xc3":              `\xff\xfe\xc3`,
		"\ufffd":                    "\ufffd",
		"\xed\xa0\x80":              `\xed\xa0\x80`, // half a surrogate
	} {
		require.Equal(t, want, plain.Text(given))
	}
	for b := range 256 {
		for _, r := range plain.Text(string([]byte{byte(b)})) {
			require.True(t, plain.Harmless(r) && r != utf8.RuneError, "byte %#x", b)
		}
	}
	require.Equal(t, "one\n  two\\x1b\n  three", escapeLines("one\ntwo\x1b\nthree\n", "  "))
}

// A cell has at most its width, and shows that something is missing.
func TestCell(t *testing.T) {
	require.Equal(t, "12345", cell("12345", 5))
	require.Equal(t, "1234…", cell("123456", 5))
	require.Equal(t, "éééé…", cell("éééééé", 5))
	require.Equal(t, `a\nb`, cell("a\nb", 5))
	require.Equal(t, "a …", firstLine("a\nb", 5))
	require.Equal(t, "a", firstLine("a\n", 5))
	require.Equal(t, "12… …", firstLine("12345\nb", 5))
}

// Texts are cut between characters.
func TestTruncate(t *testing.T) {
	for given, want := range map[string]string{"abc": "abc", "abcd": "abcd", "abcde": "abcd", "abcé": "abc", "\x80\x80\x80\x80\x80": ""} {
		cut, whole := truncate(given, 4)
		require.Equal(t, want, cut)
		require.Equal(t, given == want, whole)
	}
}

// Ages have at most two units and never a sign.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                              "0s",
		999 * time.Millisecond:         "0s",
		12 * time.Second:               "12s",
		time.Minute:                    "1m00s",
		242 * time.Second:              "4m02s",
		time.Hour - time.Nanosecond:    "59m59s",
		3*time.Hour + 59*time.Minute:   "3h",
		23*time.Hour + 59*time.Minute:  "23h",
		48 * time.Hour:                 "2d",
		-12 * time.Second:              "12s",
		time.Duration(math.MinInt64):   "106751d",
		time.Duration(math.MaxInt64):   "106751d",
		400*24*time.Hour + time.Second: "400d",
	} {
		require.Equal(t, want, plain.Span(d))
	}
	require.Equal(t, "12s ago", relative(today, today.Add(-12*time.Second)))
	require.Equal(t, "in 12s", relative(today, today.Add(12*time.Second)))
}

// A stamp always has nine digits and UTC, and the years of RFC 3339.
func TestStamp(t *testing.T) {
	zone := time.FixedZone("", 3600)
	require.Equal(t, "2026-03-01T08:00:00.000000001Z", stamp(time.Date(2026, 3, 1, 9, 0, 0, 1, zone)))
	for _, seconds := range []int64{math.MinInt64, -1 << 62, -1 << 40, 0, 1 << 40, 1 << 62, math.MaxInt64} {
		text := stamp(time.Unix(seconds, 999_999_999))
		require.Len(t, text, len("2026-03-01T08:00:00.000000001Z"))
		_, err := time.Parse(time.RFC3339Nano, text)
		require.NoError(t, err)
		require.NotEmpty(t, (&app{now: time.Now}).moment(time.Unix(seconds, 0)))
	}
}

// Sizes have one decimal from a kibibyte on.
func TestByteSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 13002342: "12.4 MiB", 5 << 30: "5.0 GiB", math.MaxInt64: "8388608.0 TiB",
	} {
		require.Equal(t, want, plain.Size(n))
	}
}

// JSON carries every text whole, without a character that a terminal obeys.
func TestEncode(t *testing.T) {
	for _, text := range []string{"a<b>&c", "\x1b\u009b\u202e\u2028\U000e0041\U0001f600", "\x00\"\\\n", strings.Repeat("é", 100)} {
		b, err := encode(text)
		require.NoError(t, err)
		var back string
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, text, back)
		for _, r := range string(b) {
			require.True(t, plain.Harmless(r))
		}
	}
	b, _ := encode("<&>")
	require.Equal(t, `"<&>"`, string(b))
}

// A manual page shows a line unchanged even if roff would take it for a request.
func TestRoff(t *testing.T) {
	require.Equal(t, `a\-b \e`+"\n"+`\&.TH x`, roff("a-b \\\n.TH x"))
}
