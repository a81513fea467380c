package pawl_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/gopawl/pawl"
	"github.com/gopawl/pawl/driver"
)

// Types with codecs from msgpack.Register, which travel in forms that the types could not hold
// by themselves.
type (
	codecHidden  struct{ text string } // as text
	codecRenamed struct{ Value int }   // as a map with another key
	codecMilli   float32               // as an integer, in thousandths
	codecMaybe   string                // as nil if it is empty
	codecList    []int                 // as a number of bits
	codecDecoded struct{ Sum int }     // with a decoder only, for the sum of a list

	codecAll struct {
		Hidden  codecHidden
		Renamed codecRenamed
		Milli   codecMilli
		Maybe   codecMaybe
		List    codecList
		Many    []codecHidden
		By      map[codecMaybe]codecMilli
		Pointer *codecHidden
		codecRenamedEmbedded
	}
	codecRenamedEmbedded struct{ Inner codecMilli }
)

// It is defined before init registers the codecs, as in many programs.
var codecKind = pawl.Define[codecAll]("codecs")

func init() {
	register := func(zero any, enc func(reflect.Value) any, dec func(reflect.Value, any)) {
		msgpack.Register(zero,
			func(e *msgpack.Encoder, v reflect.Value) error { return e.Encode(enc(v)) },
			func(d *msgpack.Decoder, v reflect.Value) error {
				in, err := d.DecodeInterfaceLoose()
				if err == nil {
					dec(v, in)
				}
				return err
			})
	}
	register(codecHidden{}, func(v reflect.Value) any { return v.Interface().(codecHidden).text },
		func(v reflect.Value, in any) { v.Set(reflect.ValueOf(codecHidden{in.(string)})) })
	register(codecRenamed{}, func(v reflect.Value) any { return map[string]int64{"v": v.Field(0).Int()} },
		func(v reflect.Value, in any) { v.Field(0).SetInt(in.(map[string]any)["v"].(int64)) })
	register(codecMilli(0), func(v reflect.Value) any { return int64(v.Float() * 1000) },
		func(v reflect.Value, in any) { v.SetFloat(float64(in.(int64)) / 1000) })
	register(codecMaybe(""), func(v reflect.Value) any {
		if v.String() == "" {
			return nil
		}
		return v.String()
	}, func(v reflect.Value, in any) {
		text, _ := in.(string)
		v.SetString(text)
	})
	register(codecList(nil), func(v reflect.Value) any {
		bits := int64(0)
		for _, n := range v.Interface().(codecList) {
			bits |= 1 << n
		}
		return bits
	}, func(v reflect.Value, in any) {
		var list codecList
		for n := range 63 {
			if in.(int64)&(1<<n) != 0 {
				list = append(list, n)
			}
		}
		v.Set(reflect.ValueOf(list))
	})
	msgpack.Register(codecDecoded{}, nil, func(d *msgpack.Decoder, v reflect.Value) error {
		list, err := d.DecodeSlice()
		if err == nil {
			v.Field(0).SetInt(int64(len(list)))
		}
		return err
	})
}

// Rule: a type with a codec from msgpack.Register holds what its codec reads, wherever it is in
// the arguments, and also if its kind was defined before the codec was registered.
func TestRegisteredCodecs(t *testing.T) {
	args := codecAll{
		Hidden: codecHidden{"h"}, Renamed: codecRenamed{7}, Milli: 16777.217, Maybe: "", List: codecList{1, 40},
		Many: []codecHidden{{"a"}, {"b"}}, By: map[codecMaybe]codecMilli{"k": 16777.217},
		Pointer: &codecHidden{"p"}, codecRenamedEmbedded: codecRenamedEmbedded{16777.217},
	}
	b, err := driver.EncodePayload(args)
	require.NoError(t, err)
	e, err := codecKind.Envelope(args)
	require.NoError(t, err)
	require.Equal(t, b, e.Payload)
	job, err := codecKind.Job(e)
	require.NoError(t, err)
	require.Equal(t, args, job.Args)

	holds(t, codecHidden{"whole"}, codecHidden{"whole"})
	holds(t, []int{1, 2, 3}, codecDecoded{3})
}

// Rule: what has no codec is checked as before, beside what has one.
func TestTypesBesideCodecsAreChecked(t *testing.T) {
	type beside struct {
		Codec codecMilli
		Small int8
		Time  time.Time
	}
	refuses[beside](t, map[string]any{"Codec": 1, "Small": 300}, "Small: 300 does not fit")
}
