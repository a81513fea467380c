package pawl

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// maxLevels is how deeply pointers, interfaces, and containers may nest in
// arguments. It is far more than the guard accepts, and far fewer than overflow a
// stack.
const maxLevels = 1000

// maxContainers is how many lists, maps, and structs checkEndless looks through.
// The arguments have at least one byte for each of them.
const maxContainers = 1 << 20

// checkEndless refuses a value that contains itself, or nests as if it did. The
// encoder of msgpack v5.4.1 follows such a value until the stack overflows, which
// ends the process and cannot be recovered; a pointer to itself does not even
// write a byte on the way.
func checkEndless(value any) error {
	w := walk{left: maxContainers}
	switch endless := w.endless(reflect.ValueOf(value), 1); {
	case endless:
		return fmt.Errorf("%w: %T contains itself, or nests deeper than %d levels", ErrPayloadEncoding, value, maxLevels)
	case w.left < 0:
		return fmt.Errorf("%w: more than %d values within %T; enqueue a reference to the data instead", ErrPayloadTooLarge, maxContainers, value)
	}
	return nil
}

type walk struct{ left int }

func (w *walk) endless(v reflect.Value, level int) bool {
	if !v.IsValid() || !mayRecur(v.Type()) {
		return false
	}
	if level > maxLevels {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return w.endless(v.Elem(), level+1)
	}
	if w.left--; w.left < 0 {
		return false
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if w.endless(v.Index(i), level+1) {
				return true
			}
		}
	case reflect.Map:
		for pair := v.MapRange(); pair.Next(); {
			if w.endless(pair.Key(), level+1) || w.endless(pair.Value(), level+1) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if encoded(v.Type().Field(i)) && w.endless(v.Field(i), level+1) {
				return true
			}
		}
	}
	return false
}

// recurs caches mayRecur: reflect.Type to bool.
var recurs sync.Map

// mayRecur reports whether values of a type may nest to any depth: it has an
// interface in it, or a type that leads back to itself. Most arguments have
// neither, and checkEndless does not walk through them.
func mayRecur(t reflect.Type) bool {
	if known, ok := recurs.Load(t); ok {
		return known.(bool)
	}
	found := leadsBack(t, nil)
	recurs.Store(t, found)
	return found
}

func leadsBack(t reflect.Type, above []reflect.Type) bool {
	if encodesItself(t) {
		return false
	}
	if slices.Contains(above, t) {
		return true
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return leadsBack(t.Elem(), above)
	case reflect.Map:
		return leadsBack(t.Key(), above) || leadsBack(t.Elem(), above)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); encoded(f) && leadsBack(f.Type, above) {
				return true
			}
		}
	}
	return false
}

// encodesItself reports whether msgpack asks the type for its bytes and does not
// look into it.
func encodesItself(t reflect.Type) bool {
	return t == reflect.TypeFor[error]() || implementsAny(t, encoders)
}

var encoders = []reflect.Type{
	reflect.TypeFor[msgpack.CustomEncoder](),
	reflect.TypeFor[msgpack.Marshaler](),
	reflect.TypeFor[encoding.BinaryMarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](),
}
