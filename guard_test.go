package pawl

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// nested is a value inside n lists.
func nested(n int, value any) any {
	for range n {
		value = []any{value}
	}
	return value
}

// ordinary are values of every form that MessagePack has.
func ordinary() map[string]any {
	values := map[string]any{
		"nil": nil, "true": true, "false": false, "float32": float32(1.5), "float64": 1.5,
		"NaN": math.NaN(), "infinity": math.Inf(-1), "duration": time.Hour,
		"struct": struct {
			A int
			B []string
			C *int
			d int
		}{A: 1, B: []string{"x"}, d: 1},
		"pointer":      new(int),
		"typed map":    map[int8][]float32{-1: {1, 2}, 5: nil},
		"map of lists": map[string]any{"a": []any{1, "b", nil}, "b": map[string]any{}},
		"bool map":     map[string]bool{"x": true},
		"array":        [3]uint16{1, 2, 3},
		"byte array":   [4]byte{1, 2, 3, 4},
		"time zero":    time.Time{},
	}
	for _, n := range []int64{0, 1, -1, -32, -33, 127, 128, 255, 256, -128, -129, math.MaxInt16, math.MinInt16,
		math.MaxUint16, math.MaxUint16 + 1, math.MaxInt32, math.MinInt32, math.MaxUint32, math.MaxUint32 + 1,
		math.MaxInt64, math.MinInt64} {
		for _, v := range []any{
			int(n), int8(n), int16(n), int32(n), n, uint(n), uint8(n), uint16(n), uint32(n), uint64(n),
		} {
			values[fmt.Sprintf("%T %d", v, n)] = v
		}
	}
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		list, pairs := make([]any, n), make(map[int]any, n)
		for i := range n {
			pairs[i] = nil
		}
		values[fmt.Sprintf("string of %d", n)] = strings.Repeat("x", n)
		values[fmt.Sprintf("bytes of %d", n)] = bytes.Repeat([]byte{0xdd}, n)
		values[fmt.Sprintf("list of %d", n)] = list
		values[fmt.Sprintf("map of %d", n)] = pairs
		// An extension may be of any length, and those of 1, 2, 4, 8, 16 have a
		// form of their own.
		for _, size := range []int{n, n / 2, n / 4} {
			values[fmt.Sprintf("extension of %d", size)] = extension(5, bytes.Repeat([]byte{0xc1}, size))
		}
	}
	for _, at := range []time.Time{ // 4, 8 and 12 bytes, and data that begin like a map
		time.Unix(1, 0), time.Unix(1, 1), time.Unix(1<<34, 0), time.Unix(-1, 999_999_999),
		time.Unix(0x80<<24, 0), time.Unix(0, 0x81<<22), time.Unix(9, 0xde<<22),
	} {
		values["time "+at.UTC().String()] = at
	}
	for n := range maxDepth + 1 {
		values[fmt.Sprintf("nested %d deep", n)] = nested(n, 1)
	}
	return values
}

func extension(id int8, data []byte) msgpack.RawMessage {
	var b bytes.Buffer
	if err := msgpack.NewEncoder(&b).EncodeExtHeader(id, len(data)); err != nil {
		panic(err)
	}
	return append(b.Bytes(), data...)
}

func TestGuardAcceptsWhatMarshalProduces(t *testing.T) {
	for name, value := range ordinary() {
		b, err := msgpack.Marshal(value)
		require.NoError(t, err, name)
		require.NoError(t, guard(b), name)

		// The same with compact numbers and structs as lists, and inside others.
		var compact bytes.Buffer
		enc := msgpack.NewEncoder(&compact)
		enc.UseCompactInts(true)
		enc.UseCompactFloats(true)
		enc.UseArrayEncodedStructs(true)
		require.NoError(t, enc.Encode(value), name)
		require.NoError(t, guard(compact.Bytes()), name)
		if !strings.HasPrefix(name, "nested") {
			require.NoError(t, guard(append([]byte{0x92, 0xc0}, b...)), name)
			require.NoError(t, guard(append([]byte{0x81, 0xa1, 'k'}, b...)), name)
		}
	}
}

// A byte less or a byte more is never a value, whatever the value is.
func TestGuardRefusesTruncatedAndTrailingBytes(t *testing.T) {
	for name, value := range ordinary() {
		b, err := msgpack.Marshal(value)
		require.NoError(t, err, name)
		cuts := []int{0, 1, 2, 3, 4, 5, 6, len(b) / 2, len(b) - 1}
		for _, n := range cuts {
			if n < len(b) {
				require.ErrorIs(t, guard(b[:n]), ErrCorrupt, "%s, %d of %d bytes", name, n, len(b))
			}
		}
		require.ErrorIs(t, guard(append(b, 0xc0)), ErrCorrupt, name)
	}
}

func TestGuardRefusesBombs(t *testing.T) {
	deep, err := msgpack.Marshal(nested(maxDepth+1, 1))
	require.NoError(t, err)
	deepMap := append(bytes.Repeat([]byte{0x81, 0xa0}, maxDepth+1), 0xc0)
	deepKey := append(bytes.Repeat([]byte{0x81}, maxDepth+1), bytes.Repeat([]byte{0xc0}, maxDepth+2)...)

	for name, b := range map[string][]byte{
		"list of 4 G values":        {0xdd, 0xff, 0xff, 0xff, 0xff},
		"map of 4 G pairs":          {0xdf, 0xff, 0xff, 0xff, 0xff},
		"map of 2 G pairs":          {0xdf, 0x80, 0x00, 0x00, 0x00, 0xc0}, // the double overflows 32 bits
		"4 GiB of bytes":            {0xc6, 0xff, 0xff, 0xff, 0xff},
		"string of 4 GiB":           {0xdb, 0xff, 0xff, 0xff, 0xff},
		"extension of 4 GiB":        {0xc9, 0xff, 0xff, 0xff, 0xff, 0x05},
		"list of 65535 values":      {0xdc, 0xff, 0xff},
		"map of 65535 pairs":        {0xde, 0xff, 0xff},
		"list of one value too few": {0x92, 0xc0},
		"map without its value":     {0x81, 0xc0},
		"extension without data":    {0xd4, 0x05},
		"a bomb in a list":          {0x92, 0xc0, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"a bomb as a key":           {0x81, 0xdd, 0xff, 0xff, 0xff, 0xff},
		"a bomb as a value":         {0x81, 0xa1, 'k', 0xc6, 0xff, 0xff, 0xff, 0xff},
		"33 lists":                  deep,
		"33 maps":                   deepMap,
		"33 maps in keys":           deepKey,
		"5 MB of lists":             bytes.Repeat([]byte{0x91}, 5<<20),
		"5 MB of maps":              bytes.Repeat([]byte{0x81}, 5<<20),
		"unused code":               {0xc1},
		"unused code in a list":     {0x92, 0x01, 0xc1},
		"nothing":                   {},
		"two values":                {0x01, 0x02},
		// One byte of extension is read as a code by all who expect one.
		"extension that is the head of a map":    {0x92, 0xd4, 0x80, 0xde, 0xc0},
		"extension that is the head of a 4G map": {0x92, 0xc7, 0x01, 0x05, 0xdf, 0xc0},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, guard(b), ErrCorrupt)
			require.Less(t, testing.AllocsPerRun(5, func() { _ = guard(b) }), 10.0, "it costs an error, nothing else")
		})
	}
}

func TestScanFindsExtensionsThatPoseAsMaps(t *testing.T) {
	list := []any{
		extension(5, []byte{0xc0, 0x80}),       // no: it begins otherwise
		extension(5, []byte{0x81, 0xa0}),       // data at 1 + 4 + 2
		extension(5, []byte{0x8f}),             // no: a single byte leads to checked values
		extension(5, nil),                      // no: there are no data
		extension(-1, []byte{0xde, 1, 2, 3}),   // data at 9 + 3 + 3 + 2
		"\x81\x81",                             // no: not an extension
		extension(5, []byte{0xdf, 1, 2, 3, 4}), // data at 21 + 3 + 3
	}
	b, err := msgpack.Marshal(list)
	require.NoError(t, err)
	posing, err := scan(b)
	require.NoError(t, err)
	require.Equal(t, []int{7, 17, 27}, posing)
}

// FuzzGuard looks for bytes that the guard accepts and that make msgpack panic, or
// that msgpack takes for something else than one value.
func FuzzGuard(f *testing.F) {
	for name, value := range ordinary() {
		b, err := msgpack.Marshal(value)
		if err != nil {
			f.Fatal(name, err)
		}
		if len(b) < 1000 {
			f.Add(b)
		}
	}
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x94, 0x80, 0xc0, 0x90, 0xa0}) // a struct as a list, with a nil for the time
	f.Add([]byte{0x81, 0xa1, 'm', 0xc7, 0x07, 0x05, 0x81, 0xa0, 0xdd, 0xff, 0xff, 0xff, 0xff})

	f.Fuzz(func(t *testing.T, b []byte) {
		if guard(b) != nil {
			return
		}
		r := bytes.NewReader(b)
		require.NoError(t, msgpack.NewDecoder(r).Skip())
		require.Zero(t, r.Len(), "the guard and msgpack disagree where the value ends")

		// Into a value without a type msgpack never panics.
		var anything any
		_ = msgpack.Unmarshal(b, &anything)

		// Into what a handler asks for it may, and that is recovered. A bomb is not.
		_ = decodePayload(b, new(map[string]any), false)
		_ = decodePayload(b, new(map[string]map[string][]any), false)
		_ = decodePayload(b, new([]map[int]string), false)
		_ = decodePayload(b, new(struct {
			M map[string]any `msgpack:"m"`
			T time.Time
			S []*struct{ K map[string]string }
			I string `msgpack:",intern"`
		}), true)
	})
}
