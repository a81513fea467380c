package workflow

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
	"github.com/gopawl/pawl/internal/race"
)

// numbers are integers on both sides of each boundary of MessagePack.
var numbers = []int64{0, 1, 31, 32, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64,
	-1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64}

// lengths are lengths on both sides of each boundary of MessagePack.
var lengths = []int{0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536}

// fill sets each exported field of a struct to a random value.
func fill(v reflect.Value, r *rand.Rand) {
	length := func() int { return lengths[r.IntN(len(lengths))] }
	n := numbers[r.IntN(len(numbers))]
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), r)
			}
		}
	case reflect.String:
		v.SetString(strings.Repeat("x", length()))
	case reflect.Bool:
		v.SetBool(n > 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n) & (math.MaxUint64 >> (64 - v.Type().Bits())))
	case reflect.Array:
		if r.IntN(2) > 0 {
			for i := range v.Len() {
				v.Index(i).SetUint(uint64(r.IntN(256)))
			}
		}
	case reflect.Slice:
		many := length()
		if v.Type().Elem().Kind() != reflect.Uint8 {
			many = min(many, 17)
		}
		if many == 1 {
			return // nil
		}
		v.Set(reflect.MakeSlice(v.Type(), many, many))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			for i := range v.Bytes() {
				v.Bytes()[i] = byte(r.Uint32())
			}
		} else if many > 0 {
			fill(v.Index(0), r)
		}
	default:
		panic(v.Kind()) // write it as package msgpack does, and add it here
	}
}

// Rule: what is written without reflection reads the same with and without it, and so does what reflection writes, as older
// builds did. So a file of any build reads the same, and a field that is added to a row and forgotten here fails.
func TestPackIsMessagePack(t *testing.T) {
	race.SkipLone(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		row, e := new(runRow), new(entry)
		fill(reflect.ValueOf(row).Elem(), r)
		fill(reflect.ValueOf(e).Elem(), r)

		byReflection, err := driver.EncodePayload(row)
		require.NoError(t, err)
		want := new(runRow)
		require.NoError(t, driver.DecodePayload(byReflection, want))
		for _, content := range [][]byte{byReflection, encodeRow(row)} {
			got, err := decodeRow(content)
			require.NoError(t, err)
			require.Equal(t, want, got)
			again := new(runRow)
			require.NoError(t, driver.DecodePayload(content, again))
			require.Equal(t, want, again)
		}

		byReflection, err = driver.EncodePayload(e)
		require.NoError(t, err)
		wantEntry := new(entry)
		require.NoError(t, driver.DecodePayload(byReflection, wantEntry))
		for _, content := range [][]byte{byReflection, encodeEntry(e)} {
			got, err := decodeEntry(content)
			require.NoError(t, err)
			require.Equal(t, wantEntry, got)
			again := new(entry)
			require.NoError(t, driver.DecodePayload(content, again))
			require.Equal(t, wantEntry, again)
		}
	}
}

// usual are rows as most runs write them.
func usual() (*runRow, *entry) {
	return &runRow{Flow: "order", ID: "order-7", Status: Running, Build: "0123456789ab", Queue: "default", Created: 1, Retain: 2,
			Fingerprint: []byte{1, 2}, Input: []byte{3}, Output: []byte{4}, Steps: 5, OutputBytes: -1, Parent: pawl.ID{4}, Attributes: []attribute{{Name: "a", Value: "b"}}},
		&entry{Name: "charge", Occurrence: 1, Kind: KindStep, State: EntryDone, Attempts: 1, Started: 3, Finished: 4, Result: []byte{1}, Size: 1, Build: "b"}
}

// Rule: the usual rows are read without reflection, also those of older builds. Without this test, nobody would notice
// a return of reflection.
func TestPackReadsUsualRows(t *testing.T) {
	row, e := usual()
	ofOlder, err := driver.EncodePayload(row)
	require.NoError(t, err)
	for _, content := range [][]byte{encodeRow(row), ofOlder} {
		u := unpacker{b: content}
		require.True(t, u.row(new(runRow)))
	}
	ofOlder, err = driver.EncodePayload(e)
	require.NoError(t, err)
	for _, content := range [][]byte{encodeEntry(e), ofOlder} {
		u := unpacker{b: content}
		require.True(t, u.entry(new(entry)))
	}
}

// Rule: a row of an older build has no input and output, and is read. They are among the blobs.
func TestPackReadsRowsWithoutValues(t *testing.T) {
	row, _ := usual()
	row.Input, row.Output = nil, nil
	content := encodeRow(row)
	older := append([]byte{msgpcode.Array16, 0, 35}, content[3:len(content)-2]...)
	got, err := decodeRow(older)
	require.NoError(t, err)
	require.Equal(t, row, got)
}

// Rule: what a row lacks takes a byte. Every commit of a run writes such rows, and a page has more of them.
func TestPackIsShort(t *testing.T) {
	row, e := usual()
	row.Parent, row.Created, e.Started, e.Finished = pawl.ID{}, 1<<60, 1<<60, 1<<60
	require.LessOrEqual(t, len(encodeRow(row)), 104)
	require.LessOrEqual(t, len(encodeEntry(e)), 60)
}

// Rule: whatever bytes a row has, it reads as by reflection, and so does an error.
func FuzzUnpack(f *testing.F) {
	row, e := usual()
	f.Add(encodeRow(row))
	f.Add(append([]byte{msgpcode.Array16, 0, 35}, encodeRow(row)[3:]...))
	f.Add(encodeEntry(e))
	f.Add(encodeEntry(&entry{At: -1, Kind: KindVersion, Error: strings.Repeat("e", 300), Chain: []errorText{{}}, Child: pawl.ID{1}}))
	f.Fuzz(func(t *testing.T, content []byte) {
		wantRow, wantEntry := new(runRow), new(entry)
		want := driver.DecodePayload(completed(content), wantRow)
		gotRow, got := decodeRow(content)
		require.Equal(t, want == nil, got == nil, "%v, %v", want, got)
		if want == nil {
			require.Equal(t, wantRow, gotRow)
		}
		want = driver.DecodePayload(content, wantEntry)
		gotEntry, got := decodeEntry(content)
		require.Equal(t, want == nil, got == nil, "%v, %v", want, got)
		if want == nil {
			require.Equal(t, wantEntry, gotEntry)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	row, e := usual()
	packed, entryPacked := encodeRow(row), encodeEntry(e)
	for _, c := range []struct {
		name string
		fn   func()
	}{
		{"EncodeRow", func() { encodeRow(row) }},
		{"DecodeRow", func() { _, _ = decodeRow(packed) }},
		{"EncodeEntry", func() { encodeEntry(e) }},
		{"DecodeEntry", func() { _, _ = decodeEntry(entryPacked) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.fn()
			}
		})
	}
}
