package admin

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// noon is when the jobs of the tests begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func packOf(t testing.TB, v any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(v)
	require.NoError(t, err)
	return b
}

// Each type of value becomes the expected JSON.
func TestDecodeJSON(t *testing.T) {
	type nested struct {
		Name string
		List []int
	}
	for want, v := range map[string]any{
		`null`:                                 nil,
		`true`:                                 true,
		`false`:                                false,
		`0`:                                    0,
		`127`:                                  127,
		`-1`:                                   -1,
		`-32`:                                  -32,
		`-33`:                                  -33,
		`-129`:                                 -129,
		`-32769`:                               -32769,
		`-2147483649`:                          int64(-2147483649),
		`-9223372036854775808`:                 int64(math.MinInt64),
		`65536`:                                65536,
		`18446744073709551615`:                 uint64(math.MaxUint64),
		`1.5`:                                  1.5,
		`0.1`:                                  float32(0.1),
		`"NaN"`:                                math.NaN(),
		`"+Inf"`:                               math.Inf(1),
		`"text \"quoted\" \\ \u001b\n"`:        "text \"quoted\" \\ \x1b\n",
		`"\u202e\udb40\udc01"`:                 "\u202e\U000e0001",
		`"` + strings.Repeat("x", 300) + `"`:   strings.Repeat("x", 300),
		`"` + strings.Repeat("y", 70000) + `"`: strings.Repeat("y", 70000),
		`"AP8="`:                               []byte{0, 255},
		`{"Name":"n","List":[1,2]}`:            nested{"n", []int{1, 2}},
		`{"1":"one"}`:                          map[int]string{1: "one"},
		`{"true":null}`:                        map[bool]any{true: nil},
		`[]`:                                   []int{},
		`{}`:                                   map[string]int{},
		`[[1],[2,[3]]]`:                        []any{[]int{1}, []any{2, []int{3}}},
		`"2026-03-01T12:00:00.000000000Z"`:     noon,
		`"2026-03-01T12:00:00.000000007Z"`:     noon.Add(7),
		`"1900-01-01T00:00:00.000000000Z"`:     time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		text, whole, err := DecodeJSON(packOf(t, v), math.MaxInt)
		require.NoError(t, err, want)
		require.True(t, whole)
		require.Equal(t, want, string(text))
		require.True(t, json.Valid(text), want)
	}
}

// A signed code for a nonnegative number gives the same number.
func TestDecodeJSONSignedCodes(t *testing.T) {
	for given, want := range map[string]string{
		"\xd0\x05": "5", "\xd0\xfb": "-5",
		"\xd1\x00\x05": "5", "\xd1\xff\xfb": "-5",
		"\xd2\x00\x00\x00\x05": "5", "\xd2\xff\xff\xff\xfb": "-5",
		"\xd3\x00\x00\x00\x00\x00\x00\x00\x05": "5", "\xd3\xff\xff\xff\xff\xff\xff\xff\xfb": "-5",
	} {
		text, _, err := DecodeJSON([]byte(given), math.MaxInt)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// Bytes other than exactly one well-formed value are not MessagePack, whatever lengths they
// declare.
func TestDecodeJSONRefuses(t *testing.T) {
	for given, want := range map[string]error{
		"":                            errEndsEarly,
		"\x01\x02":                    errTrailing,
		"\xc1":                        errCode,
		"\xa5abc":                     errEndsEarly,
		"\xdd\xff\xff\xff\xff":        errEndsEarly, // a list of 4 billion values
		"\xdf\xff\xff\xff\xff":        errEndsEarly,
		"\xdb\xff\xff\xff\xff":        errEndsEarly,
		"\xc6\xff\xff\xff\xffx":       errEndsEarly,
		"\xc9\xff\xff\xff\xff":        errEndsEarly,
		"\xcf1234567":                 errEndsEarly,
		"\x81\x01":                    errEndsEarly,
		"\x81\xa1k":                   errEndsEarly,
		"\xd4\x01":                    errEndsEarly,
		"\xd9":                        errEndsEarly,
		strings.Repeat("\x91", 1<<20): errTooDeep,
		strings.Repeat("\x81", 1<<20): errTooDeep,
		strings.Repeat("\x91", maxDepth+1) + "\x01": errTooDeep,
	} {
		_, _, err := DecodeJSON([]byte(given), math.MaxInt)
		require.ErrorIs(t, err, want, "%.20q", given)
		require.ErrorIs(t, wellFormed([]byte(given)), want, "%.20q", given)
	}
	_, _, err := DecodeJSON([]byte(strings.Repeat("\x91", maxDepth)+"\x01"), math.MaxInt)
	require.NoError(t, err)
}

// Keys that JSON does not support become strings, without growing at each level.
func TestDecodeJSONKeys(t *testing.T) {
	for given, want := range map[string]string{
		"\x81\xc4\x01\xff\x01":         `{"/w==":1}`,
		"\x81\xca\x3f\xc0\x00\x00\xc0": `{"1.5":null}`,
		"\x81\x91\x01\x02":             `{"0x9101":2}`,
		"\x81\xd4\x05\xaa\x01":         `{"0xd405aa":1}`,
		"\x81\xa2\x1b\xff\x01":         `{"\u001b\ufffd":1}`,
	} {
		text, _, err := DecodeJSON([]byte(given), math.MaxInt)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	// A map whose key is a map whose key is a map …
	deep := strings.Repeat("\x81", maxDepth) + "\x01" + strings.Repeat("\x02", maxDepth)
	text, _, err := DecodeJSON([]byte(deep), math.MaxInt)
	require.NoError(t, err)
	require.Less(t, len(text), 4*len(deep))
}

// An extension other than a time is an object with its type and bytes, and a time in any of its
// three lengths is a string; this also applies to keys.
func TestDecodeJSONExtensions(t *testing.T) {
	for given, want := range map[string]string{
		"\xd4\x05\xaa":                             `{"extension":5,"data":"qg=="}`,
		"\xc7\x00\x80":                             `{"extension":-128,"data":""}`,
		"\xc8\x00\x01\x07\x00":                     `{"extension":7,"data":"AA=="}`,
		"\xc7\x03\xff\x00\x00\x00":                 `{"extension":-1,"data":"AAAA"}`,
		"\xd6\xff\x69\xa4\x2b\xc0":                 `"2026-03-01T12:06:24.000000000Z"`,
		"\xd7\xff\x00\x00\x00\x04\x00\x00\x00\x01": `"1970-01-01T00:00:01.000000001Z"`,
		"\x81\xd6\xff\x00\x00\x00\x01\xc0":         `{"1970-01-01T00:00:01.000000000Z":null}`,
	} {
		text, _, err := DecodeJSON([]byte(given), math.MaxInt)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		require.True(t, json.Valid(text))
	}
}

// The output is bounded, and the rest is still checked.
func TestDecodeJSONLimit(t *testing.T) {
	long := make([]string, 10000)
	for i := range long {
		long[i] = "item"
	}
	list := packOf(t, long)
	for _, b := range [][]byte{list, packOf(t, strings.Repeat("x", 10000)), packOf(t, make([]byte, 10000)), packOf(t, strings.Repeat("ü", 5000)), packOf(t, "x"+strings.Repeat("ü", 5000))} {
		text, whole, err := DecodeJSON(b, 100)
		require.NoError(t, err)
		require.False(t, whole)
		require.Less(t, len(text), 200)
		require.NotContains(t, string(text), "\\ufffd", "it is cut between two characters")
	}
	_, _, err := DecodeJSON(list[:len(list)-1], 100)
	require.ErrorIs(t, err, errEndsEarly)
}

// Any bytes give valid JSON or an error, and the text has no character that a terminal obeys.
func FuzzDecodeJSON(f *testing.F) {
	for _, v := range []any{nil, 1, -1, "text", []byte{1}, []any{1, "a"}, map[string]any{"k": 1.5}, noon} {
		b, err := msgpack.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, whole, err := DecodeJSON(b, math.MaxInt)
		require.Equal(t, err == nil, wellFormed(b) == nil)
		if err != nil {
			return
		}
		require.True(t, whole)
		require.True(t, json.Valid(text), "%q", text)
		for _, r := range string(text) {
			require.True(t, unicode.IsPrint(r))
		}
		_, _, err = DecodeJSON(b, 10)
		require.NoError(t, err)
	})
}
