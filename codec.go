package pawl

import (
	"bytes"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// hasCodec reports whether msgpack.Register has a codec for a type. Package msgpack has no
// function for that, so hasCodec compares what the package does with a few values to what it
// does without a codec. It misses a codec that makes no difference for all of them.
func hasCodec(t reflect.Type) bool {
	return !encodesPlainly(t) || !decodesPlainly(t)
}

// encodesPlainly reports whether values of a type are encoded as their kind is.
func encodesPlainly(t reflect.Type) bool {
	zero, ok := encodeValue(reflect.New(t).Elem()) // addressable, for methods of pointers
	if !ok {
		return true // this proves nothing: many types refuse their zero value
	}
	switch t.Kind() {
	case reflect.Struct:
		return namesFields(zero, t)
	case reflect.Slice:
		empty, ok := encodeValue(reflect.MakeSlice(t, 0, 0))
		return ok && zero[0] == msgpcode.Nil && (isList(empty[0]) || empty[0] == msgpcode.Bin8)
	case reflect.Map:
		empty, ok := encodeValue(reflect.MakeMap(t))
		return ok && zero[0] == msgpcode.Nil && isMap(empty[0])
	case reflect.Array:
		return isList(zero[0]) || t.Elem().Kind() == reflect.Uint8 && msgpcode.IsBin(zero[0])
	case reflect.Pointer:
		full, ok := encodeValue(reflect.New(t.Elem()))
		value, valueOK := encodeValue(reflect.New(t.Elem()).Elem())
		if !ok || !valueOK {
			return true
		}
		return zero[0] == msgpcode.Nil && bytes.Equal(full, value)
	}
	plain, basic := basics[t.Kind()]
	if !basic || plain == t {
		return true
	}
	for _, n := range []int{0, 1, 100} {
		v := reflect.New(t).Elem()
		switch {
		case v.CanInt():
			v.SetInt(int64(n))
		case v.CanUint():
			v.SetUint(uint64(n))
		case v.CanFloat():
			v.SetFloat(float64(n))
		case t.Kind() == reflect.Bool:
			v.SetBool(n > 0)
		default:
			v.SetString("abcdef"[:min(n, 6)])
		}
		own, ok := encodeValue(v)
		want, _ := encodeValue(v.Convert(plain))
		if !ok || !bytes.Equal(own, want) {
			return false
		}
	}
	return true
}

// basics are the types without a name of the kinds that have one value.
var basics = make(map[reflect.Kind]reflect.Type)

func init() {
	for _, v := range []any{
		false, "", int(0), int8(0), int16(0), int32(0), int64(0),
		uint(0), uint8(0), uint16(0), uint32(0), uint64(0), float32(0), float64(0),
	} {
		basics[reflect.TypeOf(v).Kind()] = reflect.TypeOf(v)
	}
}

// namesFields reports whether b is a struct of type t: a map of the names of its fields, or a
// list.
func namesFields(b []byte, t reflect.Type) bool {
	if isList(b[0]) {
		return true
	}
	if !isMap(b[0]) {
		return false
	}
	names := make(map[string]bool) // with those of all embedded structs
	for _, f := range fieldsOf(t, nil, func(reflect.Type) bool { return false }) {
		names[f.name] = true
	}
	f := fitter{scanner{b: b}, false}
	n, at := f.size(0)
	for range n {
		if !msgpcode.IsString(b[at]) {
			return false
		}
		size, from := f.size(at)
		if !names[string(b[from:from+size])] {
			return false
		}
		at = f.behind(from + size)
	}
	return true
}

// encodeValue encodes a value as part of arguments; ok is false if the encoder refuses it.
func encodeValue(v reflect.Value) (b []byte, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	var w bytes.Buffer
	enc := msgpack.NewEncoder(&w)
	enc.SetCustomStructTag(fieldTag)
	err := enc.EncodeValue(v)
	return w.Bytes(), err == nil && guard(w.Bytes()) == nil
}

// decodesPlainly reports whether a type and its kind refuse an unknown MessagePack code with
// the same error.
func decodesPlainly(t reflect.Type) bool {
	plain := basics[t.Kind()]
	switch t.Kind() {
	case reflect.Struct:
		plain = reflect.TypeFor[struct{ X int }]()
	case reflect.Map:
		plain = reflect.TypeFor[map[int]int]()
	case reflect.Slice, reflect.Array:
		plain = reflect.TypeFor[[]int]()
		if t.Elem().Kind() == reflect.Uint8 {
			plain = reflect.TypeFor[[]byte]()
		}
	case reflect.Pointer:
		plain = t.Elem()
	}
	return plain == nil || plain == t || refusal(t) == refusal(plain)
}

// refusal is the error of decoding a code that MessagePack does not have.
func refusal(t reflect.Type) (text string) {
	defer func() {
		if recover() != nil {
			text = "panic"
		}
	}()
	dec := msgpack.NewDecoder(bytes.NewReader([]byte{0xc1}))
	if err := dec.DecodeValue(reflect.New(t).Elem()); err != nil {
		return err.Error()
	}
	return ""
}
