package admin

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
)

// invoice has arguments of every type.
type invoice struct {
	Customer string
	Number   int64
	Small    int8
	Large    uint64
	Amount   float64
	Rate     float32
	Paid     bool
	Due      time.Time
	Note     []byte
	Scan     []byte
	Lines    []line
	Tags     map[string]int
	By       *string
	Nobody   *string
	Missing  string
	Any      any
	Took     time.Duration
}

type line struct {
	SKU   string `msgpack:"sku"`
	Count uint16
}

// JSON becomes the payload that the handler of a kind decodes into its Go type.
func TestEncodeJSONIsWhatAHandlerDecodes(t *testing.T) {
	payload, err := EncodeJSON([]byte(`{
		"Customer": "Ada \u00fc\ud83d\ude00\n", "Number": -9007199254740993, "Small": -128, "Large": 18446744073709551615,
		"Amount": 12.5, "Rate": 3, "Paid": true, "Due": {"$time": "2026-03-01T13:00:00.000000007+01:00"},
		"Note": "as text", "Scan": {"$base64": "AP8="},
		"Lines": [{"sku": "a-1", "Count": 65535}, {"sku": "b", "Count": 0}],
		"Tags": {"": 1, "x": -200}, "By": "Bob", "Nobody": null, "Any": [1, "a", null], "Took": 1000000000
	}`))
	require.NoError(t, err)
	job, err := pawl.Define[invoice]("invoice").Job(&pawl.Envelope{Kind: "invoice", Payload: payload})
	require.NoError(t, err)
	by := "Bob"
	require.True(t, job.Args.Due.Equal(noon.Add(7)))
	job.Args.Due = time.Time{}
	require.Equal(t, invoice{
		Customer: "Ada ü😀\n", Number: -9007199254740993, Small: -128, Large: math.MaxUint64,
		Amount: 12.5, Rate: 3, Paid: true, Note: []byte("as text"), Scan: []byte{0, 255},
		Lines: []line{{"a-1", 65535}, {"b", 0}}, Tags: map[string]int{"": 1, "x": -200}, By: &by,
		Any: []any{int8(1), "a", nil}, Took: time.Second,
	}, job.Args)
}

// Arguments other than a struct are plain values.
func TestEncodeJSONOfPlainArguments(t *testing.T) {
	payload, err := EncodeJSON([]byte(` "hello" `))
	require.NoError(t, err)
	text, err := pawl.Define[string]("text").Job(&pawl.Envelope{Payload: payload})
	require.NoError(t, err)
	require.Equal(t, "hello", text.Args)

	payload, err = EncodeJSON([]byte("null"))
	require.NoError(t, err)
	_, err = pawl.Define[struct{}]("nothing").Job(&pawl.Envelope{Payload: payload})
	require.NoError(t, err)
}

// Every value uses the shortest form of MessagePack, so that a payload is as large as the
// library's own.
func TestEncodeJSONIsShort(t *testing.T) {
	many := strings.Repeat("0,", 69999) + "0"
	for text, want := range map[string]string{
		"0": "\x00", "127": "\x7f", "128": "\xcc\x80", "256": "\xcd\x01\x00", "65536": "\xce\x00\x01\x00\x00",
		"4294967296": "\xcf\x00\x00\x00\x01\x00\x00\x00\x00",
		"-1":         "\xff", "-32": "\xe0", "-33": "\xd0\xdf", "-129": "\xd1\xff\x7f", "-32769": "\xd2\xff\xff\x7f\xff",
		"-2147483649": "\xd3\xff\xff\xff\xff\x7f\xff\xff\xff", "-0": "\x00",
		"-9223372036854775808": "\xd3\x80\x00\x00\x00\x00\x00\x00\x00",
		"1.0":                  "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00",
		`""`:                   "\xa0", `"` + strings.Repeat("x", 31) + `"`: "\xbf" + strings.Repeat("x", 31),
		`"` + strings.Repeat("x", 32) + `"`:    "\xd9\x20" + strings.Repeat("x", 32),
		`"` + strings.Repeat("x", 256) + `"`:   "\xda\x01\x00" + strings.Repeat("x", 256),
		`"` + strings.Repeat("x", 65536) + `"`: "\xdb\x00\x01\x00\x00" + strings.Repeat("x", 65536),
		"[]":                                   "\x90", "{}": "\x80", `{"a":[1]}`: "\x81\xa1a\x91\x01",
		"[" + strings.Repeat("0,", 14) + "0]": "\x9f" + strings.Repeat("\x00", 15),
		"[" + strings.Repeat("0,", 15) + "0]": "\xdc\x00\x10" + strings.Repeat("\x00", 16),
		"[" + many + "]":                      "\xdd\x00\x01\x11\x70" + strings.Repeat("\x00", 70000),
		`{"$base64":""}`:                      "\xc4\x00",
		`{"$base64":"AA==","x":1}`:            "\x82\xa7$base64\xa4AA==\xa1x\x01",
	} {
		payload, err := EncodeJSON([]byte(text))
		require.NoError(t, err, "%.40s", text)
		require.Equal(t, want, string(payload), "%.40s", text)
	}
}

// Invalid payloads are rejected with the position of the error.
func TestEncodeJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "line 1, column 1: it ends too early",
		"  ":                                  "line 1, column 3: it ends too early",
		"{":                                   "line 1, column 2: it ends too early",
		`{"a"`:                                "line 1, column 5: it ends too early",
		`"abc`:                                "line 1, column 5: it ends too early",
		"[1,\n 2,\n x]":                       "line 3, column 2: invalid character 'x'",
		"[1,]":                                "line 1, column 4: invalid character ']'",
		"[1 2]":                               "line 1, column 4: invalid character '2'",
		"{1:2}":                               "line 1, column 2: ",
		"01":                                  "line 1, column 2: ",
		"{} {}":                               "line 1, column 4: invalid character '{' after top-level value",
		"1 2":                                 "line 1, column 3: invalid character '2' after top-level value",
		"{\n \"a\": 1,\n \"ü\": 2, \"a\": 3}": "line 3, column 10: the key \"a\" is there twice",
		`{"a":1,"\u0061":1}`:                  "line 1, column 8: the key \"a\" is there twice",
		"18446744073709551616":                "line 1, column 1: the whole number 18446744073709551616 has more than 64 bits; write it as a text",
		"[-9223372036854775809]":              "line 1, column 2: the whole number -9223372036854775809 has more than 64 bits",
		"1e999":                               "line 1, column 1: the number 1e999 is too large",
		strings.Repeat("[", 34) + strings.Repeat("]", 34): "line 1, column 34: nested deeper than 32 levels",
		strings.Repeat("[", 1<<20):                        "column 10001: invalid character '[' exceeded max depth",
		`{"a":"` + "\xff" + `"}`:                          "line 1, column 7: bytes that are no UTF-8",
		"[,1]":                                            "line 1, column 2: invalid character ','",
		"[tru]":                                           "line 1, column 5: invalid character ']'",
		`{"$time":"today"}`:                               `the value of "$time" is "today", which is not of the form`,
		`{"$base64":1}`:                                   `the value of "$base64" is no text`,
		`{"$base64":"?"}`:                                 `the value of "$base64": illegal base64`,
		"NaN":                                             "line 1, column 1: invalid character 'N'",
		"'a'":                                             "line 1, column 1: invalid character",
	} {
		_, err := EncodeJSON([]byte(text))
		require.ErrorIs(t, err, pawl.ErrInvalid, "%.40s", text)
		require.ErrorContains(t, err, want, "%.40s", text)
	}
}

// EncodeJSON restores a payload without bytes and times from its DecodeJSON.
func FuzzEncodeJSON(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2,3.5,"x",null,true]}`, `"\ud800"`, "[[[]]]", "1e300", `{"$base64":"AAE="}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		payload, err := EncodeJSON(text)
		if err != nil {
			require.ErrorIs(t, err, pawl.ErrInvalid)
			return
		}
		require.NoError(t, wellFormed(payload))
		require.NoError(t, msgpack.Unmarshal(payload, new(any)))
		if strings.Contains(string(text), "$") || strings.Contains(string(text), "\\") || strings.ContainsAny(string(text), ".eE") {
			return
		}
		back, _, err := DecodeJSON(payload, math.MaxInt)
		require.NoError(t, err)
		again, err := EncodeJSON(back)
		require.NoError(t, err)
		require.Equal(t, payload, again)
	})
}
