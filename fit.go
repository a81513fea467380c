package pawl

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/gopawl/pawl/internal/ellipsis"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// misfit says what a type cannot hold of a value, and where it lies.
type misfit struct {
	path string // within the value, "" for the value itself
	text string
}

func (m *misfit) Error() string {
	if m.path == "" {
		return m.text
	}
	return m.path + ": " + m.text
}

// at puts the place of the value before the path.
func (m *misfit) at(place string) *misfit {
	if m != nil {
		if m.path != "" && m.path[0] != '[' {
			place += "."
		}
		m.path = place + m.path
	}
	return m
}

// fits returns an error that says what the decoder would lose of the value in b. The guard
// has checked b. A nil in place of the whole value means no value.
func fits(b []byte, in slot, unknownFields bool) error {
	if in.shape == nil || b[0] == msgpcode.Nil {
		return nil
	}
	f := fitter{scanner{b: b}, unknownFields}
	if _, m := f.value(0, in); m != nil {
		return m
	}
	return nil
}

type fitter struct {
	scanner
	unknownFields bool // are passed over
}

// value compares the value at b[at] with its place and returns the offset after it. It
// accepts what the decoder refuses by itself.
func (f *fitter) value(at int, in slot) (int, *misfit) {
	code := f.b[at]
	if code == msgpcode.Nil && !in.nilable {
		return 0, &misfit{text: "nil in place of a value"}
	}
	if in.shape == nil || code == msgpcode.Nil {
		return f.behind(at), nil
	}
	switch in.shape.typ.Kind() {
	case reflect.Struct:
		return f.structure(at, in.shape)
	case reflect.Map:
		return f.mapping(at, in.shape)
	case reflect.Slice, reflect.Array:
		return f.list(at, in.shape)
	}
	return f.number(at, in.shape.typ)
}

// behind returns the offset after the value at b[at].
func (f *fitter) behind(at int) int {
	end, err := f.skip(at, 0)
	if err != nil {
		panic(err) // the guard has accepted the same bytes
	}
	return end
}

// size reads the length of a list, a map, a text or bytes: of the codes from fixed on, or of
// those behind wide, which have it in 1, 2 or 4 bytes.
func (f *fitter) size(at int) (n, next int) {
	switch code := f.b[at]; {
	case msgpcode.IsFixedMap(code), msgpcode.IsFixedArray(code):
		return int(code & 0x0f), at + 1
	case msgpcode.IsFixedString(code):
		return int(code & msgpcode.FixedStrMask), at + 1
	case code == msgpcode.Str8 || code == msgpcode.Bin8:
		return int(f.b[at+1]), at + 2
	case code == msgpcode.Str16 || code == msgpcode.Bin16 || code == msgpcode.Array16 || code == msgpcode.Map16:
		return int(binary.BigEndian.Uint16(f.b[at+1:])), at + 3
	}
	return int(binary.BigEndian.Uint32(f.b[at+1:])), at + 5
}

func isMap(code byte) bool {
	return msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32
}

func isList(code byte) bool {
	return msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32
}

func (f *fitter) structure(at int, s *shape) (int, *misfit) {
	if isList(f.b[at]) {
		return f.fields(at, s)
	}
	if !isMap(f.b[at]) {
		return f.behind(at), nil
	}
	n, at := f.size(at)
	for i := range n {
		switch code := f.b[at]; {
		case msgpcode.IsExt(code): // an interned name, which the decoder looks up
			at = f.behind(f.behind(at))
			continue
		case !msgpcode.IsString(code) && !msgpcode.IsBin(code):
			return 0, &misfit{text: fmt.Sprintf("a key of %v that is no text", s.typ)}
		}
		size, from := f.size(at)
		at = from + size
		name := f.b[from:at]
		var in slot
		known := true
		if i < len(s.fields) && s.fields[i].name == string(name) { // as written by the same build
			in = s.fields[i].slot
		} else if in, known = s.byName[string(name)]; !known {
			if !f.unknownFields {
				return 0, &misfit{text: fmt.Sprintf("%v has no field %q", s.typ, ellipsis.Abbreviate(string(name), 64))}
			}
			in = slot{nilable: true}
		}
		var m *misfit
		if at, m = f.value(at, in); m != nil {
			return 0, m.at(string(name))
		}
	}
	return at, nil
}

// fields compares a struct that travels as a list.
func (f *fitter) fields(at int, s *shape) (int, *misfit) {
	n, next := f.size(at)
	if n != len(s.fields) {
		return 0, &misfit{text: fmt.Sprintf("a list of %d values in place of %v with %d fields", n, s.typ, len(s.fields))}
	}
	for _, field := range s.fields {
		var m *misfit
		if next, m = f.value(next, field.slot); m != nil {
			return 0, m.at(field.name)
		}
	}
	return next, nil
}

func (f *fitter) mapping(at int, s *shape) (int, *misfit) {
	if msgpcode.IsExt(f.b[at]) {
		return 0, &misfit{text: fmt.Sprintf("an extension in place of %v", s.typ)}
	}
	if !isMap(f.b[at]) {
		return f.behind(at), nil
	}
	n, at := f.size(at)
	for i := range n {
		place := func(m *misfit) *misfit { return m.at(fmt.Sprintf("[entry %d]", i)) }
		var m *misfit
		if at, m = f.value(at, s.key); m != nil {
			return 0, place(m)
		}
		if at, m = f.value(at, s.elem); m != nil {
			return 0, place(m)
		}
	}
	return at, nil
}

func (f *fitter) list(at int, s *shape) (int, *misfit) {
	if !isList(f.b[at]) {
		return f.behind(at), nil
	}
	if s.elem.shape == nil && s.elem.nilable {
		return f.behind(at), nil
	}
	n, at := f.size(at)
	for i := range n {
		var m *misfit
		if at, m = f.value(at, s.elem); m != nil {
			return 0, m.at(fmt.Sprintf("[%d]", i))
		}
	}
	return at, nil
}

// number compares an integer with the type of a number. Other values are left to the
// decoder: it takes no float for an integer, and no wide float for a narrow one.
func (f *fitter) number(at int, t reflect.Type) (int, *misfit) {
	n, negative, next := f.integer(at)
	if next == 0 {
		return f.behind(at), nil
	}
	if holds(t, n, negative) {
		return next, nil
	}
	m := &misfit{text: fmt.Sprintf("%d does not fit in %v", n, t)}
	if negative {
		m.text = fmt.Sprintf("%d does not fit in %v", int64(n), t)
	}
	return 0, m
}

// integer reads the integer at b[at]. Next is the offset after it, or 0 if the value is no
// integer. A negative integer is in two's complement.
func (f *fitter) integer(at int) (n uint64, negative bool, next int) {
	b := f.b[at+1:]
	switch code := f.b[at]; code {
	case msgpcode.Uint8:
		return uint64(b[0]), false, at + 2
	case msgpcode.Uint16:
		return uint64(binary.BigEndian.Uint16(b)), false, at + 3
	case msgpcode.Uint32:
		return uint64(binary.BigEndian.Uint32(b)), false, at + 5
	case msgpcode.Uint64:
		return binary.BigEndian.Uint64(b), false, at + 9
	case msgpcode.Int8:
		return uint64(int8(b[0])), int8(b[0]) < 0, at + 2
	case msgpcode.Int16:
		signed := int16(binary.BigEndian.Uint16(b))
		return uint64(signed), signed < 0, at + 3
	case msgpcode.Int32:
		signed := int32(binary.BigEndian.Uint32(b))
		return uint64(signed), signed < 0, at + 5
	case msgpcode.Int64:
		signed := int64(binary.BigEndian.Uint64(b))
		return uint64(signed), signed < 0, at + 9
	default:
		if !msgpcode.IsFixedNum(code) {
			return 0, false, 0
		}
		return uint64(int8(code)), int8(code) < 0, at + 1
	}
}

// holds reports whether a type of number holds an integer exactly. The decoder reads
// integers for floats as int64.
func holds(t reflect.Type, n uint64, negative bool) bool {
	switch kind := t.Kind(); kind {
	case reflect.Float32, reflect.Float64:
		exact := float64(n)
		if negative {
			exact = float64(int64(n))
		}
		if kind == reflect.Float32 {
			exact = float64(float32(exact))
		}
		if negative {
			return int64(exact) == int64(n)
		}
		return n <= math.MaxInt64 && uint64(exact) == n
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		limit := uint64(1) << (t.Bits() - 1)
		if negative {
			return -n <= limit
		}
		return n < limit
	}
	return !negative && n <= math.MaxUint64>>(64-t.Bits())
}
