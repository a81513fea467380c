package pawl

import (
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// How many levels misplaced looks at, since it decodes each level again, and how many values of each
// level.
const (
	maxMisplaced       = 16
	maxMisplacedValues = 1000
)

// misplaced returns the path of the first value within b that does not decode into the type, "" if that is
// b itself. The errors of the decoder name no field.
func misplaced(b []byte, t reflect.Type, depth int) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, err := scan(b); err != nil || depth == maxMisplaced {
		return ""
	}
	if decodesItself(t) || hasCodec(t) {
		return ""
	}
	f, in := fitter{scanner: scanner{b: b}}, func(string) reflect.Type { return t.Elem() }
	object := isMap(b[0])
	switch kind := t.Kind(); {
	case object && kind == reflect.Map:
	case object && kind == reflect.Struct:
		in = func(name string) reflect.Type { return fieldNamed(t, name) }
	case isList(b[0]) && (kind == reflect.Slice || kind == reflect.Array):
	default:
		return ""
	}
	n, at := f.size(0)
	for i := range min(n, maxMisplacedValues) {
		name := ""
		if object {
			key := at
			if at = f.behind(at); msgpcode.IsString(b[key]) {
				size, from := f.size(key)
				name = string(b[from : from+size])
			}
		}
		value := b[at:f.behind(at)]
		at += len(value)
		typ := in(name)
		if typ == nil || decodeValue(value, reflect.New(typ).Interface(), true) == nil {
			continue
		}
		if !object {
			name = fmt.Sprintf("[%d]", i)
		}
		m := &misfit{path: misplaced(value, typ, depth+1)}
		return m.at(name).path
	}
	return ""
}

// fieldNamed returns the type of the field of a struct that travels under a name; nil if there is none.
func fieldNamed(t reflect.Type, name string) reflect.Type {
	for _, f := range fieldsOf(t, nil, hasCodec) {
		if !f.inlined && (f.name == name || f.alias != "" && f.alias == name) {
			return f.typ
		}
	}
	return nil
}
