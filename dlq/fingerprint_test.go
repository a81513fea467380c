package dlq_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl/dlq"
)

// Rule: errors with one cause have one fingerprint, whatever numbers, IDs, times and quoted texts
// they contain; errors with different causes have different ones.
func TestFingerprint(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"dial tcp 192.0.2.7:25: connection refused":                                   "dial tcp <addr>: connection refused",
		"order 1042 not found":                                                        "order <n> not found",
		"timeout after 30s\nand a stack\n":                                            "timeout after <duration>",
		"timeout after 1m2.5s":                                                        "timeout after <duration>",
		`no such user "ada \"the first\"" here`:                                       `no such user "…" here`,
		"can't open 'a b'":                                                            `can't open "…"`,
		"it's what's left":                                                            "it's what's left",
		"job 019caa00-0000-7000-8000-000000000003: conflict":                          "job <id>: conflict",
		"its deadline 2026-03-01 11:59:04.25 +0000 UTC has passed":                    "its deadline <time> has passed",
		"at 2026-03-01T11:59:04Z and 2026-03-01T11:59:04.123+01:00, since 2026-03-01": "at <time> and <time>, since <time>",
		"2026/03/01 11:59:04 failed m=+0.1":                                           "<time> failed m=+<n>",
		"2026-03-01 11:59:04.1 +0100 CET m=+0.001":                                    "<time> CET m=+<n>",
		"object ord_8fK2x9pQ, hash deadbeef01, pointer 0xc000123":                     "object <id>, hash <id>, pointer <id>",
		"worker-12 on shard7: 1,000 of 2.5 GB":                                        "worker-<n> on shard<n>: <n> of <n> GB",
		"HTTP 503 from https://api.example.com/v1/charge/77":                          "HTTP <n> from https://api.example.com/v<n>/charge/<n>",
		"größe 5 überschritten":                                                       "größe <n> überschritten",
		"an unended \"quote":                                                          "an unended \"quote",
		"  spaces around \t":                                                          "spaces around",
	} {
		require.Equal(t, want, dlq.Fingerprint(text), text)
	}
	require.NotEqual(t, dlq.Fingerprint("disk full"), dlq.Fingerprint("disk failed"))
}

// Rule: a fingerprint is short and valid UTF-8, whatever the error.
func FuzzFingerprint(f *testing.F) {
	for _, text := range []string{"", "\xff", "'", "0x", "1.", "12:", strings.Repeat("ä", 400), strings.Repeat("9 ", 400), "2026-03-01T"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := dlq.Fingerprint(text)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), 256)
		require.NotContains(t, got, "\n")
	})
}
