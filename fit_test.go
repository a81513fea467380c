package pawl_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// decodeAs encodes one value and decodes it as another type.
func decodeAs[T any](t *testing.T, from any) (to T, err error) {
	t.Helper()
	b, err := driver.EncodePayload(from)
	require.NoError(t, err)
	err = driver.DecodePayload(b, &to)
	return to, err
}

func refuses[T any](t *testing.T, from any, text string) {
	t.Helper()
	got, err := decodeAs[T](t, from)
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding, "%v became %v", from, got)
	require.ErrorContains(t, err, text)
}

func holds[T any](t *testing.T, from any, want T) {
	t.Helper()
	got, err := decodeAs[T](t, from)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Rule: a number that its type cannot hold is an error, and never another number.
func TestNumbersDoNotWrap(t *testing.T) {
	refuses[int8](t, 300, "300 does not fit in int8")
	refuses[int8](t, 128, "128")
	refuses[int8](t, -129, "-129 does not fit in int8")
	refuses[int16](t, 1<<15, "32768")
	refuses[int32](t, int64(math.MinInt32)-1, "-2147483649")
	refuses[int](t, uint64(1<<63), "9223372036854775808 does not fit in int")
	refuses[int64](t, uint64(math.MaxUint64), "18446744073709551615")
	refuses[time.Duration](t, uint64(1<<63), "time.Duration")
	refuses[uint8](t, 256, "256")
	refuses[uint16](t, 1<<16, "65536")
	refuses[uint32](t, int64(-1), "-1 does not fit in uint32")
	refuses[uint32](t, int64(5_000_000_000), "5000000000")
	refuses[uint64](t, -1, "-1 does not fit in uint64")
	refuses[uint](t, int64(math.MinInt64), "-9223372036854775808")
	refuses[float64](t, int64(1)<<53+1, "9007199254740993 does not fit in float64")
	refuses[float64](t, -(int64(1)<<53 + 1), "-9007199254740993")
	refuses[float64](t, uint64(1<<63), "9223372036854775808")
	refuses[float64](t, int64(math.MaxInt64), "9223372036854775807")
	refuses[float32](t, 1<<24+1, "16777217 does not fit in float32")
	refuses[float32](t, math.MaxFloat64, "float32")
	refuses[int](t, 1.5, "")
	refuses[int](t, 1.0, "")

	holds[int8](t, 127, 127)
	holds[int8](t, -128, -128)
	holds[int8](t, int64(-33), -33)
	holds[int16](t, -1<<15, -1<<15)
	holds[int32](t, math.MaxInt32, math.MaxInt32)
	holds[int64](t, int64(math.MinInt64), math.MinInt64)
	holds[int64](t, uint64(math.MaxInt64), math.MaxInt64)
	holds[uint8](t, 255, 255)
	holds[uint32](t, int64(math.MaxUint32), math.MaxUint32)
	holds[uint64](t, uint64(math.MaxUint64), math.MaxUint64)
	holds[float64](t, int64(1)<<53, 1<<53)
	holds[float64](t, int64(math.MinInt64), math.MinInt64)
	holds[float64](t, float32(1.5), 1.5)
	holds[float32](t, 1<<24, 1<<24)
	holds[float32](t, int64(1)<<40, 1<<40)
	holds[time.Duration](t, time.Duration(math.MinInt64), math.MinInt64)
	holds[any](t, uint64(math.MaxUint64), any(uint64(math.MaxUint64)))
}

type wide struct {
	N    int64
	List []int64
	Map  map[int64]int64
	In   *wide
	Any  any
}

type narrow struct {
	N    int8
	List []int8
	Map  map[int8]int16
	In   *narrow
	Any  any
}

// Rule: the check reaches whatever the decoder fills, and the error names the place.
func TestNumbersDoNotWrapWithin(t *testing.T) {
	refuses[narrow](t, wide{N: 300}, "N: 300 does not fit in int8")
	refuses[*narrow](t, wide{N: 300}, "N: 300")
	refuses[**narrow](t, wide{In: &wide{N: 300}}, "In.N: 300")
	refuses[narrow](t, wide{In: &wide{In: &wide{Map: map[int64]int64{300: 1}}}}, "In.In.Map[entry 0]: 300")
	refuses[narrow](t, wide{Map: map[int64]int64{1: 1 << 15}}, "Map[entry 0]: 32768")
	refuses[[]narrow](t, []wide{{}, {N: -129}}, "[1].N: -129")
	refuses[map[string][]int8](t, map[string][]int{"a": {1, 300}}, "[entry 0][1]: 300")
	refuses[[2]int8](t, []int{1, 300}, "[1]: 300")
	refuses[struct{ At [2]struct{ N *uint8 } }](t, map[string]any{"At": []any{map[string]any{"N": 256}}}, "At[0].N: 256")

	type list struct {
		//lint:ignore U1000 msgpack reads its tag
		_msgpack struct{} `msgpack:",as_array"`

		A string
		N int8
	}
	refuses[list](t, []any{"a", 300}, "N: 300")
	refuses[list](t, []any{}, "a list of 0 values")
	refuses[list](t, []any{"a"}, "a list of 1 values")
	holds[list](t, []any{"a", 100}, list{A: "a", N: 100})

	// Through an interface that holds a pointer, as the decoder follows it.
	b, err := driver.EncodePayload(300)
	require.NoError(t, err)
	var small int8
	var target any = &small
	require.ErrorIs(t, driver.DecodePayload(b, &target), pawl.ErrPayloadEncoding)
	require.Zero(t, small)
}

// Rule: nil becomes no other value where the type has no nil.
func TestNilIsNotZero(t *testing.T) {
	type from struct {
		N *int
		S *string
		B *bool
		T *struct{ A int }
		L []int
		M map[string]any
	}
	refuses[struct{ N int }](t, struct{ N *int }{}, "N: nil in place of a value")
	refuses[struct{ S string }](t, struct{ S *string }{}, "S: nil")
	refuses[struct{ B bool }](t, struct{ B *bool }{}, "B: nil")
	refuses[struct{ T struct{ A int } }](t, struct{ T *struct{ A int } }{}, "T: nil")
	refuses[map[string]string](t, map[string]any{"a": nil}, "[entry 0]: nil")
	refuses[[]string](t, []any{nil}, "[0]: nil")
	refuses[struct{ A [4]byte }](t, struct{ A []byte }{}, "A: nil")
	holds(t, from{}, from{})
	holds[from](t, nil, from{}) // no arguments at all
	holds[any](t, nil, nil)
}

type embedded struct{ N int8 }

type Outer struct {
	embedded
	Name string `json:"name,omitempty"`
	Skip int    `json:"-"`
	Both int    `msgpack:"packed" json:"other"`
	Old  string `msgpack:"New,alias:Old"`
}

type Part struct{ P int8 }

// Rule: fields travel by their msgpack tag, or else by their json tag, or else by their
// name, embedded structs inlined; and each value that was written is read.
func TestNamesOfFields(t *testing.T) {
	b, err := driver.EncodePayload(Outer{embedded: embedded{3}, Name: "ada", Skip: 7, Both: 1, Old: "o"})
	require.NoError(t, err)
	var names map[string]any
	require.NoError(t, driver.DecodePayload(b, &names))
	require.Equal(t, map[string]any{"N": int8(3), "name": "ada", "packed": int8(1), "New": "o"}, names)

	var back Outer
	require.NoError(t, driver.DecodePayload(b, &back))
	require.Equal(t, Outer{embedded: embedded{3}, Name: "ada", Both: 1, Old: "o"}, back)
	holds[Outer](t, map[string]any{"Old": "o", "name": "n"}, Outer{Name: "n", Old: "o"})
	refuses[Outer](t, map[string]any{"N": 300}, "N: 300")
	refuses[Outer](t, map[string]any{"embedded": map[string]any{"N": 300}}, "embedded.N: 300")
}

// Rule: the fields of an embedded pointer travel as nil where it is nil.
func TestEmbeddedPointer(t *testing.T) {
	type whole struct {
		*Part
		N int
	}
	holds(t, whole{Part: &Part{3}, N: 1}, whole{Part: &Part{3}, N: 1})
	got, err := decodeAs[whole](t, whole{N: 1})
	require.NoError(t, err)
	require.Equal(t, 1, got.N)
	refuses[whole](t, map[string]any{"P": 300}, "P: 300")
}

type tree struct {
	Kids map[string]*tree
	Ages []int8
}

// Rule: a type that contains itself, and one that reads itself, can be arguments.
func TestTypesOfEveryForm(t *testing.T) {
	holds(t, tree{Kids: map[string]*tree{"a": {Ages: []int8{1}}}}, tree{Kids: map[string]*tree{"a": {Ages: []int8{1}}}})
	refuses[tree](t, map[string]any{"Kids": map[string]any{"a": map[string]any{"Ages": []int{300}}}}, "Kids[entry 0].Ages[0]: 300")

	type mixed struct {
		At  time.Time
		Big *big.Int
		ID  pawl.ID
		Err error
		Raw []byte
	}
	want := mixed{At: time.Unix(1, 2), Big: big.NewInt(1 << 60), ID: pawl.NewID(time.Now()), Raw: []byte{1}}
	got, err := decodeAs[mixed](t, want)
	require.NoError(t, err)
	require.True(t, want.At.Equal(got.At))
	got.At = want.At
	require.Equal(t, want, got)
}

// Rule: a struct of which nothing would be stored is refused when the kind is first used,
// wherever in the arguments it is. One without fields has nothing to store.
func TestStructsWithoutExportedFieldsAreRefused(t *testing.T) {
	type hollow struct{ to string }
	_, err := pawl.Define[hollow]("k").Envelope(hollow{"ada"})
	requireInvalid(t, err, "arguments")
	require.ErrorContains(t, err, "hollow")
	_, err = pawl.Define[*hollow]("k").Policy()
	requireInvalid(t, err, "arguments")
	_, err = pawl.Define[map[string][]struct{ In hollow }]("k").Policy()
	requireInvalid(t, err, "arguments")
	_, err = pawl.Define[struct {
		A int `json:"-"`
	}]("k").Policy()
	requireInvalid(t, err, "arguments")

	for _, problem := range []func() (pawl.Policy, error){
		pawl.Define[struct{}]("k").Policy, pawl.Define[time.Time]("k").Policy, pawl.Define[any]("k").Policy,
		pawl.Define[tree]("k").Policy, pawl.Define[*big.Int]("k").Policy, pawl.Define[map[string]struct{}]("k").Policy,
	} {
		_, err := problem()
		require.NoError(t, err)
	}
}

// Rule: a job with a field that the type lacks is not decoded, at any depth, unless its kind
// allows that. A field that the job lacks is zero.
func TestUnknownFields(t *testing.T) {
	type person struct{ Name string }
	type before struct {
		To    string
		Cc    []person
		Empty *person
	}
	type after struct {
		Address string
		Cc      []person
		Empty   *person
		Added   int
	}
	job := func(args before) *pawl.Envelope {
		e, err := pawl.Define[before]("k").Envelope(args)
		require.NoError(t, err)
		return e
	}
	_, err := pawl.Define[after]("k").Job(job(before{To: "ada"}))
	require.ErrorIs(t, err, pawl.ErrPayloadEncoding)
	require.ErrorContains(t, err, `after has no field "To"`)

	lenient, err := pawl.Define[after]("k", pawl.AllowUnknownFields()).Job(job(before{To: "ada"}))
	require.NoError(t, err)
	require.Equal(t, after{}, lenient.Args)

	_, err = pawl.Define[struct {
		To    string
		Empty *person
		Cc    []struct{ First string }
	}]("k").Job(job(before{Cc: []person{{"ada"}}}))
	require.ErrorContains(t, err, `Cc[0]: struct { First string } has no field "Name"`)

	grown, err := pawl.Define[struct {
		before
		Added int
	}]("k").Job(job(before{To: "ada"}))
	require.NoError(t, err)
	require.Equal(t, "ada", grown.Args.To)

	renamed, err := pawl.Define[struct {
		Address string `msgpack:"Address,alias:To"`
		Cc      []person
		Empty   *person
	}]("k").Job(job(before{To: "ada"}))
	require.NoError(t, err)
	require.Equal(t, "ada", renamed.Args.Address)
}

// Rule: what only a kind can have is refused on a job, and a kind has each name once.
func TestOptionsOfAKind(t *testing.T) {
	k := pawl.Define[mail]("new", pawl.Alias("old"), pawl.Alias("older"), pawl.AllowUnknownFields())
	require.Equal(t, []string{"old", "older"}, k.Aliases())
	e, err := k.Envelope(mail{})
	require.NoError(t, err)
	require.Equal(t, "new", e.Kind)
	for _, opt := range []pawl.Option{pawl.Alias("x"), pawl.AllowUnknownFields()} {
		_, err := k.Envelope(mail{}, opt)
		requireInvalid(t, err, "option")
	}
	for _, opts := range [][]pawl.Option{{pawl.Alias("new")}, {pawl.Alias("a"), pawl.Alias("a")}} {
		_, err := pawl.Define[mail]("new", opts...).Policy()
		requireInvalid(t, err, "alias")
	}
	_, err = pawl.Define[mail]("new", pawl.Alias("")).Policy()
	requireInvalid(t, err, "kind")
}
